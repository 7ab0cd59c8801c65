"""One self-contained HTML page about a study: its main comparison, claims, tables, figures, data; nothing to fetch.

Everything that comes from data is escaped when it is printed. Figures are images, in which no script runs. The page
forbids all scripts but its own, which sorts and filters tables and is named by its hash.
"""

import hashlib
from base64 import b64encode
from collections import Counter
from collections.abc import Iterable, Sequence
from math import ceil, floor, log10
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.compute as pc

from workflow_scripts.columns.claims import CLAIMS, NOT_RUN
from workflow_scripts.columns.corpora import CONTAMINATION, DROPPED, EXEMPLARS, PAIRS, WORD_COUNTS
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.evaluation.significance import half_width
from workflow_scripts.graph.runs import runs_of
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting import coverage
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.layout import Sheet
from workflow_scripts.reporting.numbers import number, p_text, printed_sides
from workflow_scripts.reporting.published import read_printed
from workflow_scripts.reporting.records import record_of, split_labels, wildcard
from workflow_scripts.reporting.sections import Shown, environment, linked, rows_of, sections
from workflow_scripts.settings.experiment import Experiment
from workflow_scripts.settings.page import Config


def page(job: Job) -> str:
    """The page about the study of a job."""
    config = Config.parse(job.settings["page"], "report.page")
    called = Called.parse(job.settings["called"], "names")
    record, report = job.record(), job.outputs["report"]
    corpora = _corpora(job, config.top_words)
    made = sections(job, called)
    led = next((section for section in made if section.headline), None)
    templates = environment()
    templates.filters["policy_hash"] = _policy_hash
    return templates.from_string(job.inputs["template"].read_text("utf-8")).render(
        study=job.settings["name"],
        config=config,
        called=called,
        summary=summarise(
            [section.experiment for section in made if section.experiment],
            sum(corpus["sentences"] for corpus in corpora),
        ),
        labels=split_labels(record.labels),
        led=led,
        comparison=compare_runs(led.sheet, led.headline) if led else {},
        sections=made,
        datasets=_datasets(job),
        corpora=corpora,
        pools=_pools(job),
        development=_development(job),
        claims=_claims(job),
        coverage=_coverage(job),
        papers=coverage.PAPERS,
        file=linked(report, report),
        commit=record.origin.commit,
        dirty=record.origin.dirty,
    )


def _policy_hash(script: str) -> str:
    """What a content security policy names an inline script by."""
    digest = b64encode(hashlib.sha256(str(script).encode()).digest()).decode()
    return f"'sha256-{digest}'"


def summarise(experiments: Sequence[Experiment], sentences: int) -> str:
    """A summary of the study in one sentence.

    Args:
        experiments: All of it.
        sentences: Those of its corpora.
    """
    named = [pair for experiment in experiments for pair in runs_of(experiment.model_dump()).items()]
    runs = dict(named)
    trained = sum(bool(run.corpus) for run in runs.values())
    trainings = {(name, seed) for name, run in named if run.corpus for seed in run.seeds}
    tasks = {column.task for one in experiments for column in one.columns if hasattr(column, "task")}
    parts = [
        _counted(len(experiments), "experiment"),
        f"{_counted(len(runs), 'run')} ({len(runs) - trained} frozen, {trained} trained)",
        _counted(len(trainings), "training"),
        f"{_counted(len(tasks), 'task')} in tables",
        _counted(sentences, "training sentence"),
    ]
    return ", ".join(parts) + "."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")


class Axis(NamedTuple):
    """The numbers at the left and the right end of a picture."""

    low: float
    high: float

    @classmethod
    def over(cls, values: Sequence[float]) -> "Axis":
        """From the least of some values to the greatest, with some air at both ends."""
        low, high = min(values), max(values)
        air = (high - low or 1.0) / 20
        return cls(low - air, high + air)

    def place(self, value: float | None) -> float | None:
        """Where a value is, in percent of the axis from the left."""
        return None if value is None else round(100 * (value - self.low) / (self.high - self.low), 2)

    def ticks(self) -> list[tuple[float | None, str]]:
        """Places and numbers of three to six round values."""
        wanted = (self.high - self.low) / 6
        unit = 10.0 ** floor(log10(wanted))
        step = next(unit * by for by in (1, 2, 5, 10) if unit * by >= wanted)
        steps = range(ceil(self.low / step), floor(self.high / step) + 1)
        digits = max(0, -floor(log10(step)))
        return [(self.place(count * step), number(count * step, digits)) for count in steps]


def compare_runs(sheet: Sheet, rows: Sequence[Row]) -> dict[str, Any]:
    """The runs of a table by one of its columns, as the template draws them: a dot and an interval each.

    The interval of a mean over seeds is Student's, at one less the level of the table's tests; one seed has none.

    Args:
        sheet: The table.
        rows: Cells of the column (``columns.tables.TABLE``), a run each, in the order of the table.

    Returns:
        Nothing where no run has a value.
    """
    alpha = sheet.view.alpha
    reaches = [0 if row["sd"] is None else half_width(row["sd"], row["seeds"], alpha) for row in rows]
    ends = [
        (row["mean"] - reach, row["mean"] + reach) if row["mean"] is not None else (None, None)
        for row, reach in zip(rows, reaches, strict=True)
    ]
    values = [end for pair in ends for end in pair if end is not None]
    if not values:
        return {}
    printed = [row["published"] for row in rows if row["published"] is not None]
    axis = Axis.over(values + printed)
    column = next(place for place, head in enumerate(sheet.heads) if head.text == rows[0]["heading"])
    return {
        "head": sheet.heads[column],
        "level": f"{1 - alpha:.0%}",
        "base": axis.place(next((row["mean"] for row in rows if row["run"] == sheet.only_baseline), None)),
        "ticks": axis.ticks(),
        "printed": bool(printed),
        "runs": [
            {
                "line": line,
                "cell": line.cells[column],
                "at": axis.place(row["mean"]),
                "ends": [axis.place(end) for end in pair],
                "printed_at": axis.place(row["published"]),
            }
            for line, row, pair in zip(sheet.lines, rows, ends, strict=True)
        ],
    }


def _datasets(job: Job) -> list[Shown]:
    """Rows kept, rows dropped by reason, and the labels of each dataset's source."""
    dropped = _by(job, "dropped", "dataset")
    return [
        {
            "name": name,
            "rows": rows_of(path),
            "dropped": _counts(dropped[name]),
            "labels": record_of(path).labels,
            "file": linked(path, job.outputs["report"]),
        }
        for name, path in _by(job, "datasets", "dataset").items()
    ]


def _corpora(job: Job, top_words: int) -> list[Shown]:
    """Size, most frequent words, lost round trips and overlap with evaluation sets of each corpus."""
    page = job.outputs["report"]
    words, overlaps, lost = (_by(job, role, "corpus") for role in ("words", "contamination", "lost"))
    return [
        {
            "name": name,
            "sentences": rows_of(path),
            "words": read_table(words[name], WORD_COUNTS).slice(0, top_words).to_pylist(),
            "lost": _counts(lost[name]) if name in lost else [],
            "overlap": _overlap(overlaps[name]) if name in overlaps else [],
            "overlap_file": linked(overlaps[name], page) if name in overlaps else None,
            "file": linked(path, page),
        }
        for name, path in _by(job, "train", "corpus").items()
    ]


def _by(job: Job, role: str, name: str) -> dict[str, Path]:
    """The files of a role by a wildcard of the jobs that made them."""
    return {wildcard(path, name): path for path in job.many(role)}


def _counts(dropped: Path) -> list[tuple[str, int]]:
    return [(row["reason"], row["count"]) for row in read_table(dropped, DROPPED).to_pylist()]


def _overlap(path: Path) -> list[Shown]:
    """A line for each evaluation set: its texts, and how many of them occur in the corpus in each sense."""
    by_task: dict[str, Shown] = {}
    for row in read_table(path, CONTAMINATION).to_pylist():
        by_task.setdefault(row["task"], {"task": row["task"]})[row["match"]] = row
    return list(by_task.values())


def _pools(job: Job) -> list[Shown]:
    """Size, sources and share of listed words of each pool of exemplars."""
    return [
        {
            "name": wildcard(path, "pool"),
            "sentences": len(pool),
            "listed_share": pc.sum(pool["listed_words"]).as_py() / pc.sum(pool["words"]).as_py(),
            "sources": sorted(set(pool["source"].to_pylist())),
            "file": linked(path, job.outputs["report"]),
        }
        for path in job.many("exemplars")
        for pool in [read_table(path, EXEMPLARS)]
    ]


def _development(job: Job) -> list[Shown]:
    """The number of pairs in each subset of each development set."""
    return [
        {
            "name": found["dataset"] if "dataset" in found else f"of corpus {found['corpus']}",
            "subsets": Counter(read_table(path, PAIRS, ["subset"])["subset"].to_pylist()),
            "file": linked(path, job.outputs["report"]),
        }
        for path in job.many("development")
        for found in [record_of(path).wildcards]
    ]


def _claims(job: Job) -> Shown:
    """Claims that this study compares with their verdicts, and the others; empty where it is held to none."""
    for path in job.many("claims"):
        rows = read_table(path, CLAIMS).to_pylist()
        for row in rows:
            tested = [p_text(row[name]) for name in ("p_value", "corrected_p")]
            row["title"] = coverage.PAPERS.get(row["paper"], row["paper"])
            row |= {"printed": printed_sides(row), "p": " / ".join(filter(None, tested))}
        lines, others = (
            [row for row in rows if (row["verdict"] == NOT_RUN) == left] for left in (False, True)
        )
        return {"lines": lines, "others": others, "file": linked(path, job.outputs["report"])}
    return {}


def _coverage(job: Job) -> Iterable[coverage.Line]:
    """The ledger of printed numbers, with what this study has measured of them."""
    measured = {(path.parent.name, "", path.stem) for path in job.many("figures")}
    for path in [*job.many("tables"), *job.many("extraction"), *job.many("times")]:
        measured |= {
            (path.stem, "", "table"),
            *coverage.targets_in(read_table(path, TABLE).to_pylist(), path.stem),
        }
    ledgers = {
        path.stem: coverage.read_ledger(path.read_text("utf-8"), str(path)) for path in job.many("ledger")
    }
    cells = [
        cell for path in job.many("published") for cell in read_printed(path.read_bytes(), path.as_posix())
    ]
    return coverage.lines(cells, ledgers, measured)
