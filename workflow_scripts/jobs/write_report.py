"""Write the page about one study: tables, figures, data (rule write_report)."""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workflow_scripts.columns.claims import CLAIMS, NOT_RUN
from workflow_scripts.columns.corpora import CONTAMINATION, DROPPED, EXEMPLARS, PAIRS, WORD_COUNTS
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.columns.training import HISTORY
from workflow_scripts.provenance.artefacts import read_table, write_page
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting import coverage, page
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.headings import headings_of
from workflow_scripts.reporting.labels import split_labels
from workflow_scripts.reporting.layout import lay_out
from workflow_scripts.reporting.records import record_of, wildcard
from workflow_scripts.reporting.trainings import (
    between,
    environments,
    kept,
    machines,
    seconds,
    sentences,
    steps,
)
from workflow_scripts.settings.page import Config as PageConfig


def main(job: Job) -> None:
    """Collect the study's results, fill the template, write."""
    config = PageConfig.parse(job.settings["page"], "report.page")
    record = job.record()
    report = job.outputs["report"]
    corpora = _corpora(job, config.top_words)
    tables = [headings_of(path) for path in job.many("tables")]
    experiments = [table.experiment for table in tables]
    shared = _Shared.of(job)
    text = page.render(
        page.Page(
            study=job.settings["name"],
            config=config,
            called=shared.called,
            summary=page.summarise(experiments, sum(corpus.sentences for corpus in corpora)),
            labels=split_labels(record.labels),
            sections=[_section(job, path, shared) for path in [*job.many("tables"), *job.many("extraction")]],
            datasets=_datasets(job),
            corpora=corpora,
            pools=[_pool(path, report) for path in job.many("exemplars")],
            development=[_development(path, report) for path in job.many("development")],
            claims=_claims(job),
            coverage=[(coverage.PAPERS[line.paper], line) for line in _coverage(job)],
            file=page.linked(report.as_posix(), report),
            commit=record.origin.commit,
            dirty=record.origin.dirty,
        ),
        job.inputs["template"].read_text("utf-8"),
    )
    write_page(report, text, record)


class _Shared(NamedTuple):
    """What sections share, read once: a study has thousands of histories and dozens of tables."""

    called: Called
    captions: Mapping[str, str]
    times: Mapping[str, Path]
    """Name of a table to the file with its times."""
    figures: Mapping[str, Sequence[Path]]
    """Name of a table to the figures that stand below it."""
    histories: Sequence[tuple[str, int, Path]]
    """Run, seed and file of each training."""

    @classmethod
    def of(cls, job: Job) -> "_Shared":
        figures: dict[str, list[Path]] = {}
        for path in job.many("figures"):
            figures.setdefault(_stands_below(path), []).append(path)
        return cls(
            Called.parse(job.settings["called"], "names"),
            {path.stem: path.read_text("utf-8") for path in job.many("captions")},
            {headings_of(path).name: path for path in job.many("times")},
            figures,
            [(wildcard(path, "run"), int(wildcard(path, "seed")), path) for path in job.many("histories")],
        )


def _section(job: Job, table: Path, shared: _Shared) -> page.Section:
    report, shown = job.outputs["report"], headings_of(table)
    times = [read_table(shared.times[shown.name], TABLE)] if shown.name in shared.times else []
    sheet = lay_out(
        pa.concat_tables([read_table(table, TABLE), *times]),
        shown.experiment,
        shown.alpha,
        {run: shared.called.run(run) for run in shared.called.runs} | dict(shown.shown),
    )
    histories = _histories(shared, [line.run for line in sheet.lines], shown.experiment.seeds)
    records = [record_of(path) for paths in histories.values() for path in paths]
    return page.Section(
        name=shown.name,
        settings=shown.settings,
        sheet=sheet,
        table=page.linked(table.as_posix(), report),
        trainings=[_training(job, run, paths) for run, paths in histories.items()],
        environments=environments(records),
        machines=machines(records),
        drawings=[
            page.drawing(path.read_text("utf-8"), record_of(path), shared.captions, report)
            for path in shared.figures.get(shown.name, ())
        ],
    )


def _histories(shared: _Shared, runs: Sequence[str], seeds: Sequence[int]) -> dict[str, list[Path]]:
    """Histories of the trained ones of a table's runs."""
    made: dict[str, list[Path]] = {}
    for run, seed, path in shared.histories:
        if seed in seeds:
            made.setdefault(run, []).append(path)
    return {run: made[run] for run in runs if run in made}


def _training(job: Job, run: str, histories: Sequence[Path]) -> page.TrainingLine:
    record = record_of(histories[0])
    training, corpus = record.settings["training"], record.inputs["corpus"].path
    tables = {path: read_table(path, HISTORY) for path in histories}
    counts = [steps(table) for table in tables.values()]
    took = [
        seconds(_speed(job, path), training["batch_size"], count)
        for path, count in zip(histories, counts, strict=True)
    ]
    measured = [one for one in took if one is not None]
    rows = next((_rows(path) for path in job.many("train") if path.as_posix() == corpus), None)
    read = sentences(max(counts), rows, training["batch_size"], training["last_batch"])
    return page.TrainingLine(
        run=run,
        steps=between(counts),
        batch=training["batch_size"],
        sentences=read,
        passes=read / rows if rows else None,
        tokens=training["max_tokens"],
        rate=f"{training['learning_rate']:.2g}",
        seconds=between(measured),
        all_seconds=f"{sum(measured):,.0f}" if measured and len(measured) == len(took) else "",
        kept=[
            (int(wildcard(path, "seed")), kept(table), page.linked(path.as_posix(), job.outputs["report"]))
            for path, table in tables.items()
        ],
    )


def _speed(job: Job, history: Path) -> Path:
    """Where the training with this history leaves its speed."""
    made = (wildcard(history, "run"), f"seed{wildcard(history, 'seed')}.speed.parquet")
    return Path("benchmarks", job.settings["name"], "train_encoder", *made)


def _stands_below(figure: Path) -> str:
    """Name of the table that a figure is placed below."""
    record = record_of(figure)
    below: str = record.settings["config"].get("below", record.wildcards["experiment"])
    return below


def _datasets(job: Job) -> list[page.DatasetLine]:
    dropped = {wildcard(path, "dataset"): read_table(path, DROPPED) for path in job.many("dropped")}
    lines = []
    for path in job.many("datasets"):
        name = wildcard(path, "dataset")
        file = page.linked(path.as_posix(), job.outputs["report"])
        lines.append(
            page.DatasetLine(name, _rows(path), _counts(dropped[name]), record_of(path).labels, file)
        )
    return lines


def _counts(dropped: pa.Table) -> list[tuple[str, int]]:
    return [(row["reason"], row["count"]) for row in dropped.to_pylist()]


def _rows(path: Path) -> int:
    return int(pq.read_metadata(path).num_rows)


def _corpora(job: Job, top_words: int) -> list[page.CorpusLine]:
    words = {
        wildcard(path, "corpus"): read_table(path, WORD_COUNTS).slice(0, top_words)
        for path in job.many("words")
    }
    overlaps = {
        wildcard(path, "corpus"): page.Overlap(
            page.overlap_lines(read_table(path, CONTAMINATION)),
            page.linked(path.as_posix(), job.outputs["report"]),
        )
        for path in job.many("contamination")
    }
    lost = {wildcard(path, "corpus"): _counts(read_table(path, DROPPED)) for path in job.many("lost")}
    lines = []
    for path in job.many("train"):
        name = wildcard(path, "corpus")
        counts = zip(*(words[name][column].to_pylist() for column in ("word", "count")), strict=True)
        lines.append(
            page.CorpusLine(
                name,
                _rows(path),
                list(counts),
                lost.get(name, []),
                overlaps.get(name),
                page.linked(path.as_posix(), job.outputs["report"]),
            )
        )
    return lines


def _pool(path: Path, report: Path) -> page.PoolLine:
    pool = read_table(path, EXEMPLARS)
    listed, words = (pc.sum(pool[column]).as_py() for column in ("listed_words", "words"))
    sources = sorted(set(pool["source"].to_pylist()))
    return page.PoolLine(
        wildcard(path, "pool"), len(pool), listed / words, sources, page.linked(path.as_posix(), report)
    )


def _claims(job: Job) -> page.Claims | None:
    """Claims and their verdicts; None where the study is held to none."""
    for path in job.many("claims"):
        lines = page.claim_lines(read_table(path, CLAIMS), coverage.PAPERS)
        tested, others = (
            [line for line in lines if (line.verdict == NOT_RUN) == left] for left in (False, True)
        )
        return page.Claims(tested, others, page.linked(path.as_posix(), job.outputs["report"]))
    return None


def _coverage(job: Job) -> list[coverage.Line]:
    """The ledger of printed numbers, with what this study has measured of them."""
    tables = [*job.many("tables"), *job.many("extraction"), *job.many("times")]
    measured = {
        target
        for path in tables
        for target in coverage.targets_in(read_table(path, TABLE).to_pylist(), headings_of(path).name)
    }
    measured |= {(headings_of(path).name, "", "table") for path in tables}
    measured |= {(path.parent.name, "", path.stem) for path in job.many("figures")}
    ledgers = {
        path.stem: coverage.read_ledger(path.read_text("utf-8"), str(path)) for path in job.many("ledger")
    }
    cells = [
        cell
        for path in job.many("published")
        for cell in coverage.read_cells(path.read_text("utf-8"), path.stem)
    ]
    return coverage.lines(cells, ledgers, [measured]) if ledgers else []


def _development(path: Path, report: Path) -> page.DevelopmentLine:
    wildcards = record_of(path).wildcards
    subsets = Counter(read_table(path, PAIRS, ["subset"])["subset"].to_pylist())
    name = wildcards["dataset"] if "dataset" in wildcards else f"of corpus {wildcards['corpus']}"
    return page.DevelopmentLine(name, list(subsets.items()), page.linked(path.as_posix(), report))
