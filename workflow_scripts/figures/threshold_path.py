"""The path of 3R's threshold c and the number of dimensions below it, over optimiser steps (3R, Table 7)."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.columns.training import METRICS
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.curves import CURVES, SINGLE, what_diamonds_are
from workflow_scripts.figures.style import (
    line_look,
    name_lines,
    short_names,
    upright,
)
from workflow_scripts.reporting.records import RunTable, run_tables
from workflow_scripts.settings.figures.threshold_path import Config

COLUMNS = CURVES
TITLE = "Threshold of redundant dimensions: {title}"
DESCRIPTION = (
    "Lines over optimiser steps, a row per run, a line per seed: threshold c, and dimensions below it."
)
METRIC_NAMES = ("threshold", "reduced_dimensions")

_MOST_POINTS = 200  # of a line; more than a figure of this width shows
_LABELS = ("threshold c", "dimensions below c")
_ROW_INCHES = 1.4
_NAME_INCHES = 0.145
HOW_DRAWN = (
    "A line is one seed: where a threshold begins is drawn at random, so a mean over seeds is no path."
)


def points(request: Request[Config]) -> pa.Table:
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


def draw(points: pa.Table, request: Request[Config]) -> Figure:
    """Draw the paths: a row of panels for each run, a line for each seed."""
    runs, seeds = (list(dict.fromkeys(points[column].to_pylist())) for column in ("run", "seed"))
    if not runs:
        return request.empty("No run of this experiment has a threshold.")
    names = short_names(runs, request.called)
    notes = [f"{HOW_DRAWN} {what_diamonds_are(points)}".strip(), *names.footnotes]
    height = max(_ROW_INCHES, _NAME_INCHES * len(seeds) + 0.6)
    figure = request.new_figure(height * len(runs), notes)
    panels = figure.subplots(len(runs), 2, squeeze=False, sharex=True, sharey="col")
    for across, run in zip(panels, runs, strict=True):
        _draw_run(across, points, run, seeds)
        across[0].set_title(names.short[run] if len(runs) > 1 else "")
        for axes, label in zip(across, _LABELS, strict=True):
            axes.set_ylabel(upright(label, height))
            axes.set_ylim(0, None)
            axes.margins(x=0)
            axes.set_xlim(0, None)
            axes.grid(axis="y")
        name_lines(across[1])
    for axes in panels[-1]:
        axes.set_xlabel("optimiser steps")
    return figure


def _draw_run(across: Sequence[Axes], points: pa.Table, run: str, seeds: Sequence[int]) -> None:
    """Draw the panels of one run."""
    for axes, metric in zip(across, METRIC_NAMES, strict=True):
        for number, seed in enumerate(seeds):
            own = points.filter(
                (pc.field("metric") == metric) & (pc.field("run") == run) & (pc.field("seed") == seed)
            )
            if len(own):
                look = line_look(number) | (SINGLE if len(own) == 1 else {})
                axes.plot(own["step"].to_numpy(), own["value"].to_numpy(), **look, label=f"seed {seed}")
