"""Two columns of a table against each other, a point per run (JTCSE, Fig. 10)."""

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.correlation import pearson, spearman
from workflow_scripts.figures.axis_labels import column_label
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.named_points import (
    HOW_DRAWN,
    Mark,
    draw_marks,
    names_of,
    without_point,
)
from workflow_scripts.figures.style import COLOURS, upright
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.experiment import experiment_of
from workflow_scripts.settings.figures.scatter import Config

COLUMNS = pa.schema(
    [
        ("run", pa.string()),
        ("x", pa.float64()),
        ("x_sd", pa.float64()),
        ("y", pa.float64()),
        ("y_sd", pa.float64()),
    ]
)
"""Means and standard deviations over seeds of two columns of a table, a row per run; null where it has no score."""
TITLE = "Two scores of every run: {title}"
DESCRIPTION = "A point per run, one column of the table to the right, another upwards."

_PANEL_INCHES = 4.2

Row = dict[str, Any]


def points(request: Request[Config]) -> pa.Table:
    """Both scores of the table's runs."""
    (table,) = request.inputs["table"]
    return both_scores(read_table(table, TABLE).to_pylist(), request.config)


def both_scores(table: Iterable[Row], columns: Config) -> pa.Table:
    """Two scores of every run.

    Args:
        table: Rows with the columns of ``columns.tables.TABLE``.
        columns: Headings of the two columns.

    Raises:
        ConfigError: if the table lacks a column.
    """
    table = list(table)
    headings = list(dict.fromkeys(row["heading"] for row in table))
    for heading in (columns.x, columns.y):
        if heading not in headings:
            raise ConfigError(f"scatter: {heading} is no heading; has {headings}. Name one of them.")
    cells = {(row["run"], row["heading"]): row for row in table}
    rows = []
    for run in dict.fromkeys(run for run, _ in cells):
        x, y = cells[run, columns.x], cells[run, columns.y]
        rows.append({"run": run, "x": x["mean"], "x_sd": x["sd"], "y": y["mean"], "y_sd": y["sd"]})
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def draw(points: pa.Table, request: Request[Config]) -> Figure:
    """Draw the points; a footnote says how the columns correlate over three runs or more."""
    columns = request.config
    rows = points.to_pylist()
    marks = [Mark(**row) for row in rows if row["x"] is not None and row["y"] is not None]
    drawn = {mark.run for mark in marks}
    undrawn = without_point([row["run"] for row in rows if row["run"] not in drawn], request.called)
    if not marks:
        return request.empty(f"No run has both {columns.x} and {columns.y}.")
    names = names_of([mark.run for mark in marks], request.called)
    notes = [HOW_DRAWN, *names.footnotes, *undrawn, *_correlation(marks)]
    figure = request.new_figure(_PANEL_INCHES, notes)
    axes = figure.subplots()
    axes.grid()
    axes.set_xlabel(_label(request, columns.x))
    axes.set_ylabel(upright(_label(request, columns.y), _PANEL_INCHES))
    axes.margins(0.14)
    draw_marks(axes, marks, [COLOURS[0]] * len(marks), names.short)
    return figure


def _label(request: Request[Config], heading: str) -> str:
    """What an axis says of a column, where the table tells."""
    tables = request.inputs.get("table", ())
    return column_label(experiment_of(tables[0]), heading, request.called) if tables else heading


def _correlation(marks: Sequence[Mark]) -> list[str]:
    if len(marks) < 3:
        return []
    x, y = np.array([mark.x for mark in marks]), np.array([mark.y for mark in marks])
    return [f"Over {len(x)} runs: Pearson {pearson(x, y):.2f}, Spearman {spearman(x, y):.2f}."]
