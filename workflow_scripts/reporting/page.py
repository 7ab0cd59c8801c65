"""Self-contained HTML page about a study: main comparison, claims, tables, figures and data.

All text from data is escaped when it is printed. Figures are images, in which no script runs, one for wide and one for
narrow screens; their texts are part of the page. The page forbids all scripts except its own, which sorts and filters
tables and is allowed by its hash.
"""

import hashlib
import json
import os
from base64 import b64encode
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from jinja2 import Environment, StrictUndefined

from workflow_scripts.columns import (
    CLAIMS,
    CONTAMINATION,
    DROPPED,
    EXEMPLARS,
    HISTORY,
    NOT_RUN,
)
from workflow_scripts.evaluation.significance import half_width
from workflow_scripts.provenance.artefacts import read_table, write_page
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Label, Record
from workflow_scripts.reporting.cells import Row, between, level_text, number, p_text, printed_sides
from workflow_scripts.reporting.records import experiment_of, kept, record_of, split_labels, steps, wildcard
from workflow_scripts.reporting.sheets import Sheet, sheet_of
from workflow_scripts.settings.grids import PAPERS
from workflow_scripts.settings.report import CLAIM_FIGURES
from workflow_scripts.settings.report import Page as Config

Shown = dict[str, Any]
"""Values for the template, by the template's names."""


def page(job: Job) -> str:
    """Return the page about the study of a job."""
    config = Config.parse(job.settings["page"], "report.page")
    report = job.outputs["report"]
    drawings = _drawings(job)
    sections = _sections(job, drawings)
    led = next((section for section in sections if section["headline"]), {})
    templates = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    templates.filters["policy_hash"] = _policy_hash
    templates.filters["capfirst"] = lambda text: text[:1].upper() + text[1:]
    templates.filters["link"] = lambda path: quote(os.path.relpath(path, report.parent))
    return templates.from_string(job.input("template").read_text("utf-8")).render(
        study=job.settings["name"],
        config=config,
        labels=split_labels(job.start.labels),
        led=led,
        comparison=compare_runs(led["sheet"], led["headline"]) if led else {},
        sections=sections,
        datasets=_datasets(job),
        corpora=_corpora(job),
        pools=_pools(job),
        development=_development(job),
        claims=_claims(job, drawings.get(CLAIM_FIGURES, ())),
        file=report,
    )


def _policy_hash(script: str) -> str:
    """Return the hash by which a content security policy allows an inline script."""
    digest = hashlib.sha256(str(script).encode()).digest()
    return f"'sha256-{b64encode(digest).decode()}'"


def _rows_of(path: Path) -> int:
    """Return the number of rows of a table, without reading them."""
    return int(pq.read_metadata(path).num_rows)


def compare_runs(sheet: Sheet, heading: str) -> Shown:
    """Return the runs of a table by one of its columns, to be drawn by the template as dots with intervals.

    The interval of a mean over seeds is Student's, at one less the level of the table's tests; one seed has none.

    Args:
        sheet: The table.
        heading: Heading of the column.

    Returns:
        Places in percent of the picture's width, from the left; empty if no run has a value.
    """
    column = sheet.headings.index(heading)
    cells = [line["cells"][column] for line in sheet.run_rows]
    drawn = [_ends(row, sheet.alpha) for row in cells]
    if not any("mean" in ends for ends in drawn):
        return {}
    values = [value for ends in drawn for value in ends.values()]
    low, high = min(values), max(values)
    air = (high - low or 1.0) / 20
    positions = [
        {end: round(100 * (value - low + air) / (high - low + 2 * air), 2) for end, value in ends.items()}
        for ends in drawn
    ]
    of_run = dict(zip((row["run"] for row in cells), positions, strict=True))
    return {
        "head": sheet.columns[column],
        "level": level_text(sheet.alpha),
        "base": of_run.get(sheet.only_baseline, {}).get("mean"),
        "printed": any("published" in ends for ends in drawn),
        "spread": any(row["sd"] is not None for row in cells),
        "of_two": half_width(1.0, 2, sheet.alpha) if any(row["seeds"] == 2 for row in cells) else None,
        "runs": [*zip(sheet.run_rows, cells, positions, strict=True)],
    }


def _ends(row: Row, alpha: float) -> dict[str, float]:
    """Return mean, ends of its interval, and the paper's value of a cell, as far as they are known."""
    mean, printed = row["mean"], row["published"]
    reach = 0.0 if row["sd"] is None else half_width(row["sd"], row["seeds"], alpha)
    measured = {} if mean is None else {"low": mean - reach, "mean": mean, "high": mean + reach}
    return measured | ({} if printed is None else {"published": printed})


def _drawings(job: Job) -> dict[str, list[Shown]]:
    """Return all figures, by the table below which they are shown, or ``CLAIM_FIGURES``."""
    drawings = defaultdict[str, list[Shown]](list)
    for path in job.inputs("figures"):
        record = record_of(path)
        said = json.loads(path.with_name("texts.json").read_text("utf-8"))
        for name, figure_settings in record.settings["figures"].items():
            below = figure_settings["config"].get("below", record.wildcards["experiment"])
            drawings[below].append(_drawing(path.with_name(f"{name}.svg"), record, said[name]))
    return drawings


def _sections(job: Job, drawings: Mapping[str, Sequence[Shown]]) -> list[Shown]:
    """Return a section for each table of the study, in order; files shared by tables are read only once."""
    histories = defaultdict[str, list[Path]](list)
    for path in job.inputs("histories"):
        histories[wildcard(path, "run")].append(path)
    return [
        _section(job, path, histories, drawings)
        for path in [*job.inputs("tables"), *job.inputs("extraction")]
    ]


def _section(
    job: Job,
    path: Path,
    histories: Mapping[str, Sequence[Path]],
    drawings: Mapping[str, Sequence[Shown]],
) -> Shown:
    """Return one table: its cells, their data, the trainings of its runs, its figures."""
    times = next((file for file in job.inputs("times") if file.stem == path.stem), None)
    sheet = sheet_of(path, times)
    experiment = experiment_of(path) if "experiment" in record_of(path).settings else None
    trained = {
        run: [file for file in histories[run] if int(wildcard(file, "seed")) in experiment.runs[run].seeds]
        for run in sheet.cells["run"].unique()
        if experiment and run in histories
    }
    return {
        "sheet": sheet,
        "headline": experiment and experiment.headline_column().heading,
        "table": path,
        "trainings": [_training(run, paths) for run, paths in trained.items()],
        "drawings": drawings.get(sheet.name, ()),
    }


def _training(run: str, histories: Sequence[Path]) -> Shown:
    """Return the training of one run: steps, sentences per step, rate, selected checkpoints."""
    training = record_of(histories[0]).settings["training"]
    tables = {path: read_table(path, HISTORY) for path in histories}
    return {
        "run": run,
        "steps": between([steps(table) for table in tables.values()]),
        "batch": training["batch_size"],
        "tokens": training["max_tokens"],
        "rate": f"{training['learning_rate']:.2g}",
        "kept": [
            (
                wildcard(path, "seed"),
                f"step {step:,}" if score is None else f"step {step:,} ({number(score, 3)})",
                path,
            )
            for path, table in tables.items()
            for step, score in [kept(table)]
        ],
    }


def _drawing(path: Path, record: Record, said: Shown) -> Shown:
    """Return a figure as images, which run no script and fetch nothing, with its texts and data."""
    caption: str = record.settings["figures"][path.stem]["caption"]
    images = {width: path.with_suffix(f".{width}.svg") for width in ("wide", "narrow")}
    return {
        "name": path.stem,
        "images": {width: _as_link(file) for width, file in images.items() if file.is_file()},
        "spoken": f"{said['title']} {said['description']}",
        "title": said["title"],
        "notes": said["notes"],
        "labels": said["labels"],
        "caption": caption.format(figure=path.stem, **record.wildcards).split("\n\n"),
        "file": path,
        "data": path.with_suffix(".parquet"),
    }


def _as_link(svg: Path) -> str:
    """Return a picture as a data link."""
    return f"data:image/svg+xml;base64,{b64encode(svg.read_bytes()).decode()}"


def _datasets(job: Job) -> list[Shown]:
    """Return for each dataset the kept rows, the dropped rows by reason, and the labels of its source."""
    dropped = _by(job, "dropped", "dataset")
    return [
        {
            "name": name,
            "rows": _rows_of(path),
            "dropped": _rows(dropped[name], DROPPED),
            "labels": record_of(path).labels,
            "file": path,
        }
        for name, path in _by(job, "datasets", "dataset").items()
    ]


def _corpora(job: Job) -> list[Shown]:
    """Return for each corpus its size, lost round trips and overlap with evaluation sets."""
    overlaps, lost = (_by(job, role, "corpus") for role in ("contamination", "lost"))
    return [
        {
            "name": name,
            "sentences": _rows_of(path),
            "lost": _rows(lost[name], DROPPED) if name in lost else [],
            "overlap": _overlap(overlaps[name]) if name in overlaps else [],
            "overlap_file": overlaps.get(name),
            "file": path,
        }
        for name, path in _by(job, "train", "corpus").items()
    ]


def _by(job: Job, role: str, name: str) -> dict[str, Path]:
    """Return the files of a role by a wildcard of the jobs that made them."""
    return {wildcard(path, name): path for path in job.inputs(role)}


def _rows(path: Path, schema: pa.Schema) -> list[Row]:
    rows: list[Row] = read_table(path, schema).to_pylist()
    return rows


def _overlap(path: Path) -> list[Shown]:
    """Return a row for each evaluation set: its number of texts, and of those in the corpus in each sense."""
    by_task: dict[str, Shown] = {}
    for row in _rows(path, CONTAMINATION):
        by_task.setdefault(row["task"], {"task": row["task"]})[row["match"]] = row
    return list(by_task.values())


def _pools(job: Job) -> list[Shown]:
    """Return for each pool of exemplars its size, sources and share of listed words."""
    return [
        {
            "name": wildcard(path, "pool"),
            "sentences": len(pool),
            "listed_share": pc.sum(pool["listed_words"]).as_py() / pc.sum(pool["words"]).as_py(),
            "sources": sorted(set(pool["source"].to_pylist())),
            "file": path,
        }
        for path in job.inputs("exemplars")
        for pool in [read_table(path, EXEMPLARS)]
    ]


def _development(job: Job) -> list[Shown]:
    """Return the number of pairs in each development set."""
    return [
        {
            "name": wildcards["dataset"] if "dataset" in wildcards else f"of corpus {wildcards['corpus']}",
            "pairs": _rows_of(path),
            "file": path,
        }
        for path in job.inputs("development")
        for wildcards in [record_of(path).wildcards]
    ]


def _claims(job: Job, drawings: Sequence[Shown]) -> Shown:
    """Return the claims that this study compares, with verdicts and figures, and the others; empty if it tests none."""
    paths = job.inputs("claims")
    if not paths:
        return {}
    (path,) = paths
    rows = [
        row
        | {
            "title": PAPERS.get(row["paper"], row["paper"]),
            "printed": printed_sides(row),
            "p": " / ".join(filter(None, (p_text(row[name]) for name in ("p_value", "corrected_p")))),
        }
        for row in _rows(path, CLAIMS)
    ]
    compared = [row for row in rows if row["verdict"] != NOT_RUN]
    labels = split_labels(Label.model_validate(label) for row in compared for label in row["labels"])
    for row in compared:
        row["marks"] = labels.marks(row["labels"])
    return {
        "lines": compared,
        "substitutions": labels.letters,
        "drawings": drawings,
        "others": [row for row in rows if row["verdict"] == NOT_RUN],
        "file": path,
        "tested": any(row["p"] for row in compared),
        "intervals": any(row["low"] is not None for row in compared),
    }


def write_report(job: Job) -> None:
    """Write the page about one study: main comparison, claims, tables, figures, data (rule write_report)."""
    write_page(job.outputs["report"], page(job), job.record())
