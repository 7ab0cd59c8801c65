"""What a page says of each table: its cells, what they rest on, how its runs were trained, its figures."""

import re
import xml.etree.ElementTree as ET
from base64 import b64encode
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from workflow_scripts.columns.training import HISTORY
from workflow_scripts.provenance.artefacts import page_text, read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting import trainings
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.data_on_page import File, Line, linked, rows_of
from workflow_scripts.reporting.experiment import experiment_of
from workflow_scripts.reporting.layout import Sheet, lay_out
from workflow_scripts.reporting.records import record_of, wildcard
from workflow_scripts.reporting.views import View, view_of


class Section(NamedTuple):
    """One table with its figures."""

    name: str
    settings: str
    """Configuration file that defines it."""
    sheet: Sheet
    rests_on: str
    """Steps, data and seeds."""
    headline: Sequence[Row]
    """Cells of the column by which its runs are compared (``columns.tables.TABLE``); none where it compares no runs."""
    table: File
    trainings: Sequence[Line]
    """Runs of the table that were trained."""
    environments: Sequence[str]
    """Packages and settings of the machine behind them."""
    machines: Sequence[str]
    """What they computed on."""
    drawings: Sequence[Line]


def sections(job: Job, called: Called) -> list[Section]:
    """One for each table of the study, in order; what they share is read once, since histories may be thousands."""
    figures: dict[str, list[Path]] = {}
    for path in job.many("figures"):
        figures.setdefault(_stands_below(record_of(path)), []).append(path)
    captions = {path.stem: path.read_text("utf-8") for path in job.many("captions")}
    times = {path.stem: path for path in job.many("times")}
    histories: dict[str, list[Path]] = {}
    for path in job.many("histories"):
        histories.setdefault(wildcard(path, "run"), []).append(path)
    made = []
    for path in [*job.many("tables"), *job.many("extraction")]:
        view = view_of(path, times.get(path.stem))
        drawings = [drawing(one, captions, job.outputs["report"]) for one in figures.get(view.name, ())]
        made.append(_section(job, path, view, called, histories, drawings))
    return made


def _section(
    job: Job,
    path: Path,
    view: View,
    called: Called,
    histories: Mapping[str, Sequence[Path]],
    drawings: Sequence[Line],
) -> Section:
    experiment = experiment_of(path) if view.of_experiment else None
    sheet = lay_out(view, {run: called.run(run) for run in called.runs})
    trained = {
        line.run: [one for one in histories[line.run] if int(wildcard(one, "seed")) in experiment.seeds]
        for line in sheet.lines
        if experiment and line.run in histories
    }
    lines = [_training(job, run, paths) for run, paths in trained.items()]
    records = [record_of(one) for paths in trained.values() for one in paths]
    headline = experiment and experiment.headline_column().heading
    return Section(
        name=view.name,
        settings=view.settings,
        sheet=sheet,
        rests_on=rests_on(
            lines, view.rows, called, {wildcard(one, "dataset") for one in job.many("datasets")}
        ),
        headline=[row for row in view.rows if row["heading"] == headline],
        table=linked(path, job.outputs["report"]),
        trainings=lines,
        environments=trainings.environments(records),
        machines=trainings.machines(records),
        drawings=drawings,
    )


def rests_on(lines: Sequence[Line], rows: Sequence[Row], called: Called, datasets: Collection[str]) -> str:
    """Steps, data and seeds of a table in one line; the data are named where they are few."""
    of_suites: dict[str, list[str]] = {}
    for row in rows:
        if row["scale"] is not None:  # not computed from other columns
            of_suites.setdefault(row["suite"], []).append(row["task"])
    tasks = [
        task
        for named in of_suites.values()
        for task in [one for one in named if one in datasets] or named  # others measure the vectors of these
    ]
    corpora = dict.fromkeys(called.corpus(line["corpus"]) for line in lines)
    steps = trainings.between([count for line in lines for count in line["counts"]])
    seeds = max(row["seeds"] for row in rows)
    scored = dict.fromkeys(map(called.dataset, tasks))
    parts = [f"Trained for {steps} steps on {', '.join(corpora)}" if lines else "Nothing is trained"]
    parts += [f"{seeds} seed{'s' if seeds > 1 else ''} each"] if lines else []
    parts += [f"scored on {', '.join(scored)}"] if 0 < len(scored) < 4 else []
    return "; ".join(parts) + "."


def _training(job: Job, run: str, histories: Sequence[Path]) -> Line:
    """How one run was trained: steps, sentences read, passes over the corpus, seconds, checkpoints kept."""
    record = record_of(histories[0])
    training, corpus = record.settings["training"], record.inputs["corpus"].path
    tables = {path: read_table(path, HISTORY) for path in histories}
    counts = [trainings.steps(table) for table in tables.values()]
    took = [
        trainings.seconds(_speed(job, path), training["batch_size"], count)
        for path, count in zip(histories, counts, strict=True)
    ]
    measured = [one for one in took if one is not None]
    rows = next((rows_of(path) for path in job.many("train") if path.as_posix() == corpus), None)
    read = trainings.sentences(max(counts), rows, training["batch_size"], training["last_batch"])
    return {
        "run": run,
        "corpus": Path(corpus).parent.name,
        "counts": counts,
        "steps": trainings.between(counts),
        "batch": training["batch_size"],
        "sentences": read,
        "passes": read / rows if rows else None,
        "tokens": training["max_tokens"],
        "rate": f"{training['learning_rate']:.2g}",
        "seconds": trainings.between(measured),
        "all_seconds": f"{sum(measured):,.0f}" if measured and len(measured) == len(took) else "",
        "kept": [
            (wildcard(path, "seed"), trainings.kept(table), linked(path, job.outputs["report"]))
            for path, table in tables.items()
        ],
    }


def _speed(job: Job, history: Path) -> Path:
    """Where the training with this history leaves its speed."""
    made = (wildcard(history, "run"), f"seed{wildcard(history, 'seed')}.speed.parquet")
    return Path("benchmarks", job.settings["name"], "train_encoder", *made)


def _stands_below(figure: Record) -> str:
    """Name of the table that a figure is placed below."""
    below: str = figure.settings["config"].get("below", figure.wildcards["experiment"])
    return below


def drawing(path: Path, captions: Mapping[str, str], page: Path) -> Line:
    """A figure as an image, in which nothing runs and nothing is fetched, with its caption and its data.

    Args:
        path: Of the figure.
        captions: Name of a figure's module to its caption, which is also used in Snakemake's own report.
        page: Path of the page.
    """
    record, svg = record_of(path), page_text(path)
    data = next(made for made in record.outputs if made.endswith(".parquet"))
    return {
        "image": f"data:image/svg+xml;base64,{b64encode(svg).decode()}",
        "spoken": _spoken(svg.decode()),
        "caption": list(_caption(captions[record.settings["module"]], record)),
        "file": linked(path, page),
        "data": linked(Path(data), page),
    }


def _spoken(svg: str) -> str:
    """A figure's own title and description."""
    tree = ET.fromstring(svg)
    return " ".join("".join(node.itertext()) for node in tree if re.search(r"}(title|desc)$", node.tag))


def environment() -> Environment:
    """Templates that escape what they print and refuse unknown names."""
    return Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)


def _caption(template: str, record: Record) -> Iterator[Markup]:
    text = environment().from_string(template).render(snakemake={"wildcards": record.wildcards})
    for paragraph in text.strip().split("\n\n"):
        yield Markup(" ".join(paragraph.split()))
