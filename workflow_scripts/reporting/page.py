"""One self-contained HTML page about a study: tables, figures, data; nothing to fetch.

Everything that comes from data is escaped when it is printed. Only figures are inserted as they are, after
``svg_check`` has made sure that they contain nothing but shapes and text. The page forbids all scripts but its own,
which sorts and filters tables and is named by its hash.
"""

import hashlib
import os
from base64 import b64encode
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from workflow_scripts.graph.runs import runs_of
from workflow_scripts.provenance.artefacts import RECORD_KEY
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.claim_text import p_text, printed_sides
from workflow_scripts.reporting.coverage import Line
from workflow_scripts.reporting.labels import Labels, split_labels
from workflow_scripts.reporting.layout import Sheet
from workflow_scripts.reporting.svg_check import checked_svg
from workflow_scripts.reporting.svg_panels import panels_of
from workflow_scripts.reporting.trainings import Checkpoint, checkpoint_text
from workflow_scripts.settings.experiment import Experiment
from workflow_scripts.settings.page import Config


class File(NamedTuple):
    """An artefact that a reader may want to open: its path, and the page's link to it."""

    path: str
    link: str


class Drawing(NamedTuple):
    """A figure with its caption and the data it was drawn from."""

    svg: Markup
    title: str
    notes: str
    """How it is drawn."""
    labels: Labels
    caption: Sequence[Markup]
    file: File
    data: File


class TrainingLine(NamedTuple):
    """How one run was trained; of several seeds, each."""

    run: str
    steps: str
    batch: int
    sentences: int
    """That one seed read, repeats counted."""
    passes: float | None
    """Over the corpus; None where its size is not known."""
    tokens: int
    """Longer sentences are cut."""
    rate: str
    seconds: str
    """That the steps of one seed took; of several, the shortest and the longest. Empty where nothing was measured."""
    all_seconds: str
    """Of all seeds together."""
    kept: Sequence[tuple[int, Checkpoint, File]]
    """Seed, what was kept of it, and its history."""


class Section(NamedTuple):
    """One table with its figures."""

    name: str
    settings: str
    """Configuration file that defines it."""
    sheet: Sheet
    table: File
    trainings: Sequence[TrainingLine]
    """Runs of the table that were trained."""
    environments: Sequence[str]
    """Packages and settings of the machine behind them."""
    machines: Sequence[str]
    """What they computed on."""
    drawings: Sequence[Drawing]


class DatasetLine(NamedTuple):
    """One dataset: rows kept, rows dropped by reason, and the labels of its source."""

    name: str
    rows: int
    dropped: Sequence[tuple[str, int]]
    labels: Sequence[str]
    file: File


class OverlapLine(NamedTuple):
    """Texts of one evaluation set, and how many of them occur in a corpus: exactly, normalised, in another text."""

    task: str
    texts: int
    exact: int
    normalised: int
    contained: int
    rows: int
    """Rows with a text that occurs in the corpus after normalisation."""


class Overlap(NamedTuple):
    """The overlap of one corpus with the evaluation sets."""

    lines: Sequence[OverlapLine]
    file: File


class CorpusLine(NamedTuple):
    """One corpus: its size, its most frequent words, and its overlap with evaluation sets."""

    name: str
    sentences: int
    words: Sequence[tuple[str, int]]
    lost: Sequence[tuple[str, int]]
    """Round trips that are not trained on, by reason."""
    overlap: Overlap | None
    file: File


class PoolLine(NamedTuple):
    """One pool of exemplars: its sentences, and the language models or corpora that they come from."""

    name: str
    sentences: int
    listed_share: float
    sources: Sequence[str]
    file: File


class DevelopmentLine(NamedTuple):
    """One development set: the number of pairs in each of its subsets."""

    name: str
    subsets: Sequence[tuple[str, int]]
    file: File

    @property
    def pairs(self) -> int:
        """Number of all pairs."""
        return sum(count for _, count in self.subsets)


class ClaimLine(NamedTuple):
    """What a paper says of its numbers, and what this study says of that."""

    paper: str
    place: str
    says: str
    printed: str
    verdict: str
    reason: str
    p: str
    """Of the claim alone, and corrected for the number of claims; empty where nothing was tested."""


class Claims(NamedTuple):
    """The claims that this study can test, and those that it cannot."""

    lines: Sequence[ClaimLine]
    others: Sequence[ClaimLine]
    file: File


class Page(NamedTuple):
    """Everything that the template prints."""

    study: str
    config: Config
    called: Called
    summary: str
    labels: Labels
    sections: Sequence[Section]
    datasets: Sequence[DatasetLine]
    corpora: Sequence[CorpusLine]
    pools: Sequence[PoolLine]
    development: Sequence[DevelopmentLine]
    claims: Claims | None
    coverage: Sequence[tuple[str, Line]]
    """Title of each paper and how many of its numbers have a run, table by table; ``measured`` is by this study."""
    file: File
    commit: str | None
    dirty: bool


def environment() -> Environment:
    """Templates that escape what they print and refuse unknown names."""
    made = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True)
    made.filters |= {"policy_hash": _policy_hash, "checkpoint": checkpoint_text}
    return made


def _policy_hash(script: str) -> str:
    """What a content security policy names an inline script by."""
    digest = b64encode(hashlib.sha256(str(script).encode()).digest()).decode()
    return f"'sha256-{digest}'"


def render(page: Page, template: str) -> str:
    """Fill the page's template."""
    return environment().from_string(template).render(page._asdict())


def linked(path: str, page: Path) -> File:
    """An artefact and its link relative to the folder of ``page``."""
    return File(path, quote(os.path.relpath(path, page.parent)))


def claim_lines(table: pa.Table, titles: Mapping[str, str]) -> list[ClaimLine]:
    """One line for each claim of a table with the columns of ``columns.claims.CLAIMS``.

    Args:
        table: Claims with their verdicts.
        titles: Name of a paper to what it is called.
    """
    return [
        ClaimLine(
            paper=titles.get(row["paper"], row["paper"]),
            place=row["place"],
            says=row["says"],
            printed=printed_sides(row),
            verdict=row["verdict"],
            reason=row["reason"],
            p="" if row["p_value"] is None else f"{p_text(row['p_value'])} / {p_text(row['corrected_p'])}",
        )
        for row in table.to_pylist()
    ]


def overlap_lines(table: pa.Table) -> list[OverlapLine]:
    """One line for each evaluation set of a table with the columns of ``columns.corpora.CONTAMINATION``."""
    by_task: dict[str, dict[str, dict[str, Any]]] = {}
    for row in table.to_pylist():
        by_task.setdefault(row["task"], {})[row["match"]] = row
    return [
        OverlapLine(
            task=task,
            texts=found["exact"]["texts"],
            exact=found["exact"]["shared_texts"],
            normalised=found["normalised"]["shared_texts"],
            contained=found["contained"]["shared_texts"],
            rows=found["normalised"]["rows_with_any"],
        )
        for task, found in by_task.items()
    ]


def drawing(svg: str, record: Record, captions: Mapping[str, str], page: Path) -> Drawing:
    """Prepare a figure for a page.

    Args:
        svg: Text of the figure's file.
        record: The figure's record, which names the file with its data.
        captions: Name of a figure's module to its caption, which is also used in Snakemake's own report.
        page: Path of the page.
    """
    figure, data = (
        next(path for path in record.outputs if path.endswith(end)) for end in (".svg", ".parquet")
    )
    drawn = svg[svg.index("<svg") :].rpartition(f"<!-- {RECORD_KEY} ")[0]  # labels may contain a closing tag
    panels = panels_of(checked_svg(drawn.rstrip(), figure))
    return Drawing(
        svg=Markup(panels.svg),
        title=panels.title.removesuffix(f": {record.settings['title']}"),
        notes=panels.notes,
        labels=split_labels(record.labels),
        caption=_caption(captions[record.settings["module"]], record),
        file=linked(figure, page),
        data=linked(data, page),
    )


def _caption(template: str, record: Record) -> list[Markup]:
    text = environment().from_string(template).render(snakemake={"wildcards": record.wildcards})
    return [Markup(" ".join(paragraph.split())) for paragraph in text.strip().split("\n\n")]


def summarise(experiments: Sequence[Experiment], sentences: int) -> str:
    """A summary of the study in one sentence.

    Args:
        experiments: All of it.
        sentences: Those of its corpora.
    """
    named = [
        (name, run) for experiment in experiments for name, run in runs_of(experiment.model_dump()).items()
    ]
    runs = {name for name, _ in named}
    trained = {name for name, run in named if run.corpus}
    trainings = {(name, seed) for name, run in named if run.corpus for seed in run.seeds}
    tasks = {
        column.task for experiment in experiments for column in experiment.columns if hasattr(column, "task")
    }
    parts = [
        _counted(len(experiments), "experiment"),
        f"{_counted(len(runs), 'run')} ({len(runs) - len(trained)} frozen, {len(trained)} trained)",
        _counted(len(trainings), "training"),
        f"{_counted(len(tasks), 'task')} in tables",
        _counted(sentences, "training sentence"),
    ]
    return ", ".join(parts) + "."


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}" + ("" if count == 1 else "s")
