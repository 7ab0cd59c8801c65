"""The alignment-uniformity plane: a point per run, lower left is better.

Wang and Isola, ICML 2020. What counts as a positive pair, on which dataset, and whether vectors are
normalised differs between papers; it is a task of its suite, and its note goes into the figure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.significance import Summary, summarise
from workflow_scripts.figures.axis_labels import column_label
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.named_points import (
    HOW_DRAWN,
    Mark,
    draw_marks,
    names_of,
    without_point,
)
from workflow_scripts.figures.style import colour_bar
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.experiment import experiment_of
from workflow_scripts.settings.figures.alignment_uniformity import Config

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
_COLOURS = ListedColormap(
    colormaps["cividis"](np.linspace(0.12, 1, 48))
)  # from 50 on, the bar becomes a bitmap

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


def draw(points: pa.Table, request: Request[Config]) -> Figure:
    """Draw the plane, coloured by the experiment's headline."""
    (table,) = request.inputs["table"]
    heading = column_label(experiment_of(table), headline_of(table).heading, request.called)
    return draw_plane(points, request, heading)


def draw_plane(points: pa.Table, request: Request[Config], heading: str) -> Figure:
    """Draw the plane; bars are one standard deviation over seeds, an open point has no score."""
    every = points.to_pylist()
    rows = [row for row in every if row["alignment"] is not None]
    undrawn = without_point([row["run"] for row in every if row["alignment"] is None], request.called)
    if not rows:
        return request.empty("Alignment and uniformity are gaps for every run.")
    data, called = request.called.dataset(request.config.task), request.called
    tasks = ", ".join(sorted({row["note"] for row in rows if row["note"]}))
    names = names_of([row["run"] for row in rows], called)
    notes = [HOW_DRAWN, f"{data}: {tasks}." if tasks else "", *names.footnotes, *undrawn]
    figure = request.new_figure(_PANEL_INCHES, [*filter(None, notes)])
    axes = figure.subplots()
    axes.grid()
    axes.set_xlabel(f"uniformity on {data} (lower is better)")
    axes.set_ylabel(f"alignment on {data} (lower is better)")
    axes.margins(0.14)
    shade = _shades(figure, axes, [row["score"] for row in rows], heading)
    marks = [
        Mark(row["run"], row["uniformity"], row["alignment"], row["uniformity_sd"], row["alignment_sd"])
        for row in rows
    ]
    draw_marks(axes, marks, [shade(row["score"]) for row in rows], names.short)
    return figure


def _shades(
    figure: Figure, axes: Axes, scores: Sequence[float | None], heading: str
) -> Callable[[float | None], Any]:
    """The colour of a score, with a bar of them where there are some; none for a run without a score."""
    scored = [score for score in scores if score is not None]
    if not scored:
        return lambda score: "none"
    source = axes.scatter([], [], c=[], cmap=_COLOURS, norm=Normalize(min(scored), max(scored)))
    colour_bar(figure, source, heading, ax=axes, aspect=30, pad=0.02)
    return lambda score: "none" if score is None else _COLOURS(source.norm(np.array([score])))[0]
