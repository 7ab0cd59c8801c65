"""The path of 3R's threshold c and the number of dimensions below it, over optimiser steps (3R, Table 7)."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.columns.training import METRICS
from workflow_scripts.config import Settings
from workflow_scripts.figures.base import Needs, Request
from workflow_scripts.figures.curves import CURVES, SINGLE, what_diamonds_are
from workflow_scripts.figures.style import (
    DASHES,
    FigureStyle,
    Names,
    empty_figure,
    label_ends,
    line_look,
    new_figure,
    short_names,
)
from workflow_scripts.reporting.records import RunTable, run_tables

NEEDS = Needs(
    inputs={"metrics": "<results>/runs/{run}/seed{seed}/metrics.parquet"},
    method={"module": "three_r"},
)
Config = Settings  # it has none
COLUMNS = CURVES
TITLE = "Threshold of redundant dimensions: {title}"
DESCRIPTION = (
    "Lines over optimiser steps, one per run and seed: the threshold c above, the dimensions below it below."
)
METRIC_NAMES = ("threshold", "reduced_dimensions")

_MOST_POINTS = 200  # of a line; more than a figure of this width shows
_PANEL_INCHES = 1.9
_NAME_INCHES = 0.145
HOW_DRAWN = (
    "A line is one seed: where a threshold begins is drawn at random, so a mean over seeds is no path."
)


def points(request: Request[Settings]) -> pa.Table:
    """Points of all runs and seeds."""
    return paths(run_tables(request.inputs["metrics"], METRICS))


def paths(metrics: Iterable[RunTable]) -> pa.Table:
    """The points to draw; runs without a threshold have none."""
    parts = [_points(history, metric) for history in metrics for metric in METRIC_NAMES]
    return pa.concat_tables([COLUMNS.empty_table(), *parts])


def _points(history: RunTable, metric: str) -> pa.Table:
    table = history.table.filter(pc.equal(history.table["metric"], metric))
    rows = np.unique(np.linspace(0, len(table) - 1, min(_MOST_POINTS, len(table))).astype(np.int64))
    table = table.take(pa.array(rows))
    columns: Mapping[str, Sequence[object] | pa.ChunkedArray] = {
        "run": [history.run] * len(table),
        "seed": [history.seed] * len(table),
        "metric": table["metric"],
        "step": table["step"].cast(pa.float64()),
        "value": table["value"],
    }
    return pa.table(dict(columns), schema=COLUMNS)


def draw(
    points: pa.Table, request: Request[Settings], style: FigureStyle, title: str, footnotes: Sequence[str]
) -> Figure:
    """Draw the paths, a line for each run and seed; the seeds of a run share its colour."""
    runs = list(dict.fromkeys(points["run"].to_pylist()))
    if not runs:
        return empty_figure(style, title, footnotes, "No run of this experiment has a threshold.")
    names = short_names(runs, request.called)
    lines = list(dict.fromkeys(zip(points["run"].to_pylist(), points["seed"].to_pylist(), strict=True)))
    height = max(_PANEL_INCHES, _NAME_INCHES * len(lines))
    figure = new_figure(
        style,
        2 * height,
        title,
        [f"{HOW_DRAWN} {what_diamonds_are(points)}".strip(), *names.footnotes],
        footnotes,
    )
    above, below = figure.subplots(2, 1, sharex=True)
    ends = [
        (axes, _draw_seeds(axes, points, metric, lines, names))
        for axes, metric in zip((above, below), METRIC_NAMES, strict=True)
    ]
    above.set_ylabel("threshold c")
    below.set_ylabel("dimensions below c")
    below.set_xlabel("optimiser steps")
    below.set_xlim(0, None)
    below.margins(x=0)
    figure.align_ylabels()
    for axes, drawn in ends:
        axes.set_ylim(0, None)
        axes.grid(axis="y")
        label_ends(axes, drawn)
    return figure


def _draw_seeds(
    axes: Axes, points: pa.Table, metric: str, lines: Sequence[tuple[str, int]], names: Names
) -> list[tuple[str, float, str]]:
    """Draw one panel; returns name, last value and colour of each line."""
    runs, ends, chosen = list(names.short), [], points.filter(pc.equal(points["metric"], metric))
    for run, seed in lines:
        own = chosen.filter(pc.and_(pc.equal(chosen["run"], run), pc.equal(chosen["seed"], seed)))
        among = [other for of_run, other in lines if of_run == run].index(seed)
        if not len(own):
            continue
        look = line_look(runs.index(run)) | {"linestyle": DASHES[among % len(DASHES)]}
        look |= SINGLE if len(own) == 1 else {}
        axes.plot(own["step"].to_numpy(), own["value"].to_numpy(), **look)
        name = f"seed {seed}" if len(runs) == 1 else f"{names.short[run]}, seed {seed}"
        ends.append((name, own["value"][-1].as_py(), str(look["color"])))
    return ends
