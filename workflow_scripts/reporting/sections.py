"""What a page says of each table: its cells, what they rest on, how its runs were trained, its figures."""

import os
import re
import xml.etree.ElementTree as ET
from base64 import b64encode
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from workflow_scripts.columns.training import HISTORY
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import page_text, read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.layout import Sheet, View, lay_out, view_of
from workflow_scripts.reporting.numbers import number
from workflow_scripts.reporting.records import kept, record_of, steps, wildcard
from workflow_scripts.settings.experiment import Experiment
from workflow_scripts.settings.training import LastBatch, batches

Shown = dict[str, Any]
"""What the template prints of one thing, by the names that it uses."""
_PACKAGES = ("torch", "transformers", "tokenizers")


class File(NamedTuple):
    """An artefact that a reader may want to open: its path, and the page's link to it."""

    path: str
    link: str


def linked(path: Path, page: Path) -> File:
    """An artefact and its link relative to the folder of ``page``."""
    return File(path.as_posix(), quote(os.path.relpath(path, page.parent)))


def rows_of(path: Path) -> int:
    """Rows of a table, without reading it."""
    return int(pq.read_metadata(path).num_rows)


class Section(NamedTuple):
    """One table with its figures."""

    view: View
    sheet: Sheet
    experiment: Experiment | None
    """The grid that it was made for; None for a table of the extraction study."""
    rests_on: str
    """Steps, data and seeds."""
    headline: Sequence[Row]
    """Cells of the column by which its runs are compared (``columns.tables.TABLE``); none where it compares no runs."""
    table: File
    trainings: Sequence[Shown]
    """Runs of the table that were trained."""
    environments: Collection[str]
    """Packages and settings of the machine behind them."""
    machines: Collection[str]
    """What they computed on; another machine may give the same bytes."""
    drawings: Sequence[Shown]


def sections(job: Job, called: Called) -> list[Section]:
    """One for each table of the study, in order; what they share is read once, since histories may be thousands."""
    figures, histories = defaultdict[str, list[Path]](list), defaultdict[str, list[Path]](list)
    for path in job.many("figures"):
        record = record_of(path)
        figures[record.settings["config"].get("below", record.wildcards["experiment"])].append(path)
    for path in job.many("histories"):
        histories[wildcard(path, "run")].append(path)
    times = {path.stem: path for path in job.many("times")}
    made = []
    for path in [*job.many("tables"), *job.many("extraction")]:
        view = view_of(path, times.get(path.stem))
        made.append(_section(job, path, view, called, histories, figures[view.name]))
    return made


def _section(
    job: Job,
    path: Path,
    view: View,
    called: Called,
    histories: Mapping[str, Sequence[Path]],
    figures: Sequence[Path],
) -> Section:
    block = record_of(path).settings.get("experiment")
    experiment = block and Experiment.parse(block, f"{path}: experiment")
    sheet = lay_out(view, {run: called.run(run) for run in called.runs})
    trained = {
        line.run: [one for one in histories[line.run] if int(wildcard(one, "seed")) in experiment.seeds]
        for line in sheet.lines
        if experiment and line.run in histories
    }
    lines = [_training(job, run, paths) for run, paths in trained.items()]
    records = [record_of(one) for paths in trained.values() for one in paths]
    headline = experiment and experiment.headline_column().heading
    datasets = {wildcard(one, "dataset") for one in job.many("datasets")}
    captions = {one.stem: one.read_text("utf-8") for one in job.many("captions")}
    return Section(
        view=view,
        sheet=sheet,
        experiment=experiment,
        rests_on=rests_on(lines, view.rows, called, datasets),
        headline=[row for row in view.rows if row["heading"] == headline],
        table=linked(path, job.outputs["report"]),
        trainings=lines,
        environments=dict.fromkeys(map(_environment, records)).keys(),
        machines=dict.fromkeys(one.origin.gpu or one.origin.processor for one in records).keys(),
        drawings=[drawing(one, captions, job.outputs["report"]) for one in figures],
    )


def rests_on(lines: Sequence[Shown], rows: Sequence[Row], called: Called, datasets: Collection[str]) -> str:
    """Steps, data and seeds of a table in one line; the data are named where they are few."""
    of_suites = defaultdict[str, list[str]](list)
    for row in rows:
        if row["scale"] is not None:  # not computed from other columns
            of_suites[row["suite"]].append(row["task"])
    tasks = [
        task
        for named in of_suites.values()
        for task in [one for one in named if one in datasets] or named  # others measure the vectors of these
    ]
    scored = dict.fromkeys(map(called.dataset, tasks))
    parts = ["Nothing is trained"]
    if lines:
        corpora = dict.fromkeys(called.corpus(line["corpus"]) for line in lines)
        counts, seeds = (
            between([count for line in lines for count in line["counts"]]),
            max(row["seeds"] for row in rows),
        )
        parts = [
            f"Trained for {counts} steps on {', '.join(corpora)}",
            f"{seeds} seed{'s' if seeds > 1 else ''} each",
        ]
    parts += [f"scored on {', '.join(scored)}"] if 0 < len(scored) < 4 else []
    return "; ".join(parts) + "."


def _training(job: Job, run: str, histories: Sequence[Path]) -> Shown:
    """How one run was trained: steps, sentences read, passes over the corpus, seconds, checkpoints kept."""
    record = record_of(histories[0])
    training, corpus = record.settings["training"], record.inputs["corpus"].path
    tables = {path: read_table(path, HISTORY) for path in histories}
    counts = [steps(table) for table in tables.values()]
    took = [_seconds(job, path, training["batch_size"], steps(table)) for path, table in tables.items()]
    measured = [one for one in took if one is not None]
    rows = next((rows_of(path) for path in job.many("train") if path.as_posix() == corpus), None)
    read = sentences(max(counts), rows, training["batch_size"], training["last_batch"])
    return {
        "run": run,
        "corpus": Path(corpus).parent.name,
        "counts": counts,
        "steps": between(counts),
        "batch": training["batch_size"],
        "sentences": read,
        "passes": read / rows if rows else None,
        "tokens": training["max_tokens"],
        "rate": f"{training['learning_rate']:.2g}",
        "seconds": between(measured),
        "all_seconds": f"{sum(measured):,.0f}" if measured and len(measured) == len(took) else "",
        "kept": [
            (wildcard(path, "seed"), _checkpoint(table), linked(path, job.outputs["report"]))
            for path, table in tables.items()
        ],
    }


def _checkpoint(history: pa.Table) -> str:
    step, score = kept(history)
    return f"step {step:,}" + ("" if score is None else f" ({number(score, 3)})")


def _seconds(job: Job, history: Path, batch_size: int, trained_steps: int) -> float | None:
    """How long the steps of a training took, its development scores included; None where nothing was measured.

    Of a training that was stopped and went on, the file of its speed has the steps since: their mean stands for all.

    Raises:
        DataError: if the file is damaged.
    """
    made = (wildcard(history, "run"), f"seed{wildcard(history, 'seed')}.speed.parquet")
    speed = Path("benchmarks", job.settings["name"], "train_encoder", *made)
    if not speed.is_file():
        return None
    try:
        rates = pq.read_table(speed)["sentences_per_second"].to_pylist()
    except (pa.ArrowException, OSError, KeyError) as error:
        raise DataError(
            f"{speed}: no table of speeds. Delete it: the page says then that nothing was measured."
        ) from error
    return trained_steps * fmean(batch_size / rate for rate in rates) if rates else None


def sentences(trained_steps: int, rows: int | None, batch_size: int, last_batch: LastBatch) -> int:
    """Sentences that so many steps read; where nobody knows the rows of the corpus, as if all batches were whole."""
    if rows is None or rows < batch_size:
        return trained_steps * batch_size
    per_epoch = batches(rows, batch_size, last_batch)
    epochs, more = divmod(trained_steps, per_epoch)
    return epochs * min(rows, per_epoch * batch_size) + more * batch_size


def between(numbers: Sequence[float | int]) -> str:
    """The lowest and the highest number as a page prints them; empty where there is none."""
    ends = (f"{end:,.0f}" for end in (min(numbers), max(numbers))) if numbers else ()
    return " to ".join(dict.fromkeys(ends))


def _environment(record: Record) -> str:
    training = record.settings["training"]
    threads, gpus = training.get("cpu_threads"), training.get("gpus")
    parts = [f"{name} {record.packages[name]}" for name in _PACKAGES if name in record.packages]
    parts += [f"precision {training['precision']}"] if "precision" in training else []
    parts += [f"{threads} CPU thread{'s' if threads > 1 else ''}"] if threads else []
    parts += [f"up to {gpus} GPU{'s' if gpus > 1 else ''}"] if gpus else []
    return ", ".join(parts)


def drawing(path: Path, captions: Mapping[str, str], page: Path) -> Shown:
    """A figure as an image, in which nothing runs and nothing is fetched, with its caption and its data.

    Args:
        path: Of the figure.
        captions: Name of a figure's module to its caption, which is also used in Snakemake's own report.
        page: Path of the page.
    """
    record, svg = record_of(path), page_text(path)
    spoken = [node for node in ET.fromstring(svg) if re.search(r"}(title|desc)$", node.tag)]
    return {
        "image": f"data:image/svg+xml;base64,{b64encode(svg).decode()}",
        "spoken": " ".join("".join(node.itertext()) for node in spoken),
        "caption": list(_caption(captions[record.settings["module"]], record)),
        "file": linked(path, page),
        "data": linked(Path(next(made for made in record.outputs if made.endswith(".parquet"))), page),
    }


def environment() -> Environment:
    """Templates that escape what they print and refuse unknown names."""
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _caption(template: str, record: Record) -> Iterator[Markup]:
    text = environment().from_string(template).render(snakemake={"wildcards": record.wildcards})
    for paragraph in text.strip().split("\n\n"):
        yield Markup(" ".join(paragraph.split()))
