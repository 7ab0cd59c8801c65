"""The path of 3R's threshold c and the number of dimensions below it, over optimiser steps (3R, Table 7)."""

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.figure import Figure

from workflow_scripts.reporting.learning_curves import draw_quantity, how_lines_are_drawn
from workflow_scripts.reporting.records import RunTable
from workflow_scripts.reporting.style import FigureStyle, empty_panel, label_ends, new_figure, short_names
from workflow_scripts.schemas import LEARNING_CURVES

TITLE = "Threshold of redundant dimensions"
DESCRIPTION = (
    "Lines over optimiser steps, one per run: the threshold c above, the number of dimensions below it below."
)
QUANTITIES = ("threshold", "reduced_dimensions")

_MOST_POINTS = 200  # of a line; more than a figure of this width shows
_PANEL_INCHES = 1.9


def points(watched: Iterable[RunTable]) -> pa.Table:
    """The points to draw, columns of ``schemas.LEARNING_CURVES``; runs without a threshold have none."""
    parts = [_points(history, quantity) for history in watched for quantity in QUANTITIES]
    return pa.concat_tables([LEARNING_CURVES.empty_table(), *parts])


def _points(history: RunTable, quantity: str) -> pa.Table:
    table = history.table.filter(pc.equal(history.table["quantity"], quantity))
    rows = np.unique(np.linspace(0, len(table) - 1, min(_MOST_POINTS, len(table))).astype(np.int64))
    table = table.take(pa.array(rows))
    columns: Mapping[str, Sequence[object] | pa.ChunkedArray] = {
        "run": [history.run] * len(table),
        "seed": [history.seed] * len(table),
        "quantity": table["quantity"],
        "step": table["step"].cast(pa.float64()),
        "value": table["value"],
    }
    return pa.table(dict(columns), schema=LEARNING_CURVES)


def draw(points: pa.Table, style: FigureStyle, title: str, footnotes: Sequence[str]) -> Figure:
    """Draw the paths: a thick line per run for the mean over its seeds, a thin one for each seed."""
    runs = list(dict.fromkeys(points["run"].to_pylist()))
    if not runs:
        figure = new_figure(style, 1, title, footnotes)
        empty_panel(figure, "No run of this experiment has a threshold.")
        return figure
    names = short_names(runs)
    notes = [how_lines_are_drawn(points), *names.footnotes, *footnotes]
    figure = new_figure(style, 2 * _PANEL_INCHES, title, notes)
    above, below = figure.subplots(2, 1, sharex=True)
    ends = [
        (axes, draw_quantity(axes, points, quantity, names))
        for axes, quantity in zip((above, below), QUANTITIES, strict=True)
    ]
    above.set_ylabel("threshold c")
    below.set_ylabel("dimensions below c")
    below.set_xlabel("optimiser steps")
    below.set_xlim(0, None)
    below.margins(x=0)
    figure.align_ylabels()
    for axes, lines in ends:
        axes.set_ylim(0, None)
        axes.grid(axis="y")
        label_ends(axes, lines)
    return figure
