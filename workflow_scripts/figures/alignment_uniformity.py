"""The alignment-uniformity plane: a point per run, lower left is better.

Wang and Isola, ICML 2020. What counts as a positive pair, on which dataset, and whether vectors are
normalised differs between papers; it is a task of its suite, and its note goes into the figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy import linspace

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.significance import Summary, summarise
from workflow_scripts.figures.axis_labels import column_label
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.named_points import (
    HOW_DRAWN,
    Mark,
    draw_mark,
    name_marks,
    numbers,
    without_point,
    words,
)
from workflow_scripts.figures.style import INK, empty_figure, new_figure
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.experiment import experiment_of
from workflow_scripts.settings.figures.alignment_uniformity import NEEDS as NEEDS
from workflow_scripts.settings.figures.alignment_uniformity import Config
from workflow_scripts.settings.style import FigureStyle

COLUMNS = pa.schema(
    [
        ("run", pa.string()),
        ("seeds", pa.int32()),
        ("alignment", pa.float64()),
        ("alignment_sd", pa.float64()),
        ("uniformity", pa.float64()),
        ("uniformity_sd", pa.float64()),
        ("score", pa.float64()),
        ("note", pa.string()),
    ]
)
"""One point of the alignment-uniformity plane per run, means and standard deviations over seeds; the note says what
was measured, or why there is no point. ``score`` is the mean of the grid's headline column, times its scale."""
TITLE = "Alignment and uniformity: {title}"
DESCRIPTION = (
    "A point per run: uniformity to the right, alignment upwards, both better when lower; colour: score."
)

_PANEL_INCHES = 4.2
_COLOURS = ListedColormap(colormaps["cividis"](linspace(0.12, 1, 48)))  # from 50 on, the bar becomes a bitmap

Row = dict[str, Any]


class Headline(NamedTuple):
    """The column that gives the points their colour: what it is called, and each run's mean."""

    heading: str
    means: Mapping[str, float | None]


def points(request: Request[Config]) -> pa.Table:
    """A point for every run."""
    scores = (read_table(path, SCORES) for path in request.inputs["scores"])
    return plane(scores, headline_of(*request.inputs["table"]), request.config)


def headline_of(path: Path) -> Headline:
    """The column of a table that its experiment names as its headline."""
    heading = experiment_of(path).headline_column().heading
    table = read_table(path, TABLE)
    column = table.filter(pc.equal(table["heading"], heading))
    return Headline(heading, dict(zip(column["run"].to_pylist(), column["mean"].to_pylist(), strict=True)))


def plane(scores: Iterable[pa.Table], headline: Headline, config: Config) -> pa.Table:
    """A row per run in the order of its first score.

    Raises:
        ConfigError: if no score is of the task.
    """
    of_run: dict[str, list[Row]] = {}
    for table in scores:
        for row in table.to_pylist():
            if row["task"] == config.task:
                of_run.setdefault(row["run"], []).append(row)
    if not of_run:
        raise ConfigError(
            f"alignment_uniformity: no scores of {config.task}. Add its suite to the grid, or correct the name."
        )
    return pa.Table.from_pylist(
        [_point(run, rows) | {"score": headline.means[run]} for run, rows in of_run.items()],
        schema=COLUMNS,
    )


def _point(run: str, rows: Sequence[Row]) -> Row:
    alignment, uniformity = (_over_seeds(rows, metric) for metric in ("alignment", "uniformity"))
    notes = dict.fromkeys(row["note"] for row in rows if row["note"])
    return {
        "run": run,
        "seeds": alignment.n if alignment else 0,
        "alignment": alignment and alignment.mean,
        "alignment_sd": alignment and alignment.sd,
        "uniformity": uniformity and uniformity.mean,
        "uniformity_sd": uniformity and uniformity.sd,
        "note": "; ".join(notes) or None,
    }


def _over_seeds(rows: Sequence[Row], metric: str) -> Summary | None:
    values = [row["value"] for row in rows if row["metric"] == metric and row["value"] is not None]
    return summarise(values) if values else None


def draw(
    points: pa.Table, request: Request[Config], style: FigureStyle, title: str, footnotes: Sequence[str]
) -> Figure:
    """Draw the plane, coloured by the experiment's headline."""
    (table,) = request.inputs["table"]
    heading = column_label(experiment_of(table), headline_of(table).heading, request.called)
    return draw_plane(points, heading, request, style, title, footnotes)


def draw_plane(
    points: pa.Table,
    heading: str,
    request: Request[Config],
    style: FigureStyle,
    title: str,
    footnotes: Sequence[str],
) -> Figure:
    """Draw the plane; bars are one standard deviation over seeds, an open point has no score."""
    every = points.to_pylist()
    rows = [row for row in every if row["alignment"] is not None]
    undrawn = without_point([row["run"] for row in every if row["alignment"] is None], request.called)
    if not rows:
        return empty_figure(style, title, footnotes, "Alignment and uniformity are gaps for every run.")
    data, called = request.called.dataset(request.config.task), request.called
    tasks = ", ".join(sorted({row["note"] for row in rows if row["note"]}))
    for named in (words, numbers):
        names = named([row["run"] for row in rows], called)
        notes = [HOW_DRAWN, f"{data}: {tasks}." if tasks else "", *names.footnotes, *undrawn]
        figure = new_figure(style, _PANEL_INCHES, title, [*filter(None, notes)], footnotes)
        axes = figure.subplots()
        axes.grid()
        axes.set_xlabel(f"uniformity on {data} (lower is better)")
        axes.set_ylabel(f"alignment on {data} (lower is better)")
        axes.margins(0.14)
        marks = _draw_points(figure, axes, rows, heading)
        if name_marks(axes, marks, names.short, crowded=named is numbers):
            break
    return figure


def _draw_points(figure: Figure, axes: Axes, rows: Sequence[Row], heading: str) -> list[Mark]:
    """Draw the points in the colours of their scores, with a bar of these; returns where they are."""
    scored = [row["score"] for row in rows if row["score"] is not None]
    shades = Normalize(min(scored), max(scored)) if scored else Normalize(0, 1)
    marks = [
        Mark(row["run"], row["uniformity"], row["alignment"], row["uniformity_sd"], row["alignment_sd"])
        for row in rows
    ]
    for row, mark in zip(rows, marks, strict=True):
        draw_mark(axes, mark, "none" if row["score"] is None else _COLOURS(shades(row["score"])))
    if scored:
        source = axes.scatter([], [], c=[], cmap=_COLOURS, norm=shades)
        bar = figure.colorbar(source, ax=axes, aspect=30, pad=0.02)
        bar.set_label(heading)
        assert bar.solids is not None
        bar.solids.set_edgecolor("face")  # viewers leave gaps between its steps
        bar.outline.set_edgecolor(INK)
    return marks
