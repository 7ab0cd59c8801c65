"""Scores over the values of swept settings, a panel per setting.

The figures 5 to 7 of S2Sent and the layer-wise figure 1 of LayerAttPooler are of this kind. A point is one
run's mean over seeds; where other settings are swept along, a value has several points, and the line goes
through their medians, as in a box plot of few points.
"""

from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.dag import points_of
from workflow_scripts.reporting.experiment import Experiment, Plot
from workflow_scripts.reporting.style import (
    FigureStyle,
    empty_panel,
    label_ends,
    line_look,
    new_figure,
    short_names,
)
from workflow_scripts.schemas import SWEEP

Row = dict[str, Any]

TITLE = "Swept settings"
DESCRIPTION = (
    "A panel per setting, its values from left to right; a point per run, a line through medians per series."
)
HOW_DRAWN = "Points: runs, means over seeds. Lines: medians of the runs with one value."

_PANEL_INCHES = 2.6
_SPREAD = 0.5  # of the distance of two values, over which the points of all series are spread


def rows_of(experiment: Experiment, table: Iterable[Row]) -> pa.Table:
    """What is drawn, columns of ``schemas.SWEEP``; a run without a score has a null mean."""
    heading = experiment.headline_column().heading
    cells = {row["run"]: row for row in table if row["heading"] == heading}
    points = points_of(experiment.model_dump())
    rows = []
    for plot in experiment.plots:
        values = list(
            dict.fromkeys(str(p.values[plot.setting]) for p in points.values() if plot.setting in p.values)
        )
        for run, point in points.items():
            if plot.setting in point.values:
                value = str(point.values[plot.setting])
                scores = {key: cells[run][key] for key in ("mean", "sd", "seeds")}
                place = {"setting": plot.setting, "value": value, "place": values.index(value)}
                rows.append(place | scores | {"series": point.series, "run": run, "heading": heading})
    return pa.Table.from_pylist(rows, schema=SWEEP)


def draw(
    data: pa.Table, experiment: Experiment, style: FigureStyle, title: str, footnotes: Sequence[str]
) -> Figure:
    """Draw the panels one below the other."""
    rows = [row for row in data.to_pylist() if row["mean"] is not None]
    names = short_names(list(dict.fromkeys(row["series"] for row in rows)))
    height = _PANEL_INCHES * max(1, len(experiment.plots))
    figure = new_figure(style, height, title, [HOW_DRAWN, *names.footnotes, *footnotes])
    if not rows:
        empty_panel(figure, "No run of the sweep has a score.")
        return figure
    panels = figure.subplots(len(experiment.plots), 1, squeeze=False)[:, 0]
    for axes, plot in zip(panels, experiment.plots, strict=True):
        _panel(axes, plot, [row for row in rows if row["setting"] == plot.setting], names.short)
    return figure


def _panel(axes: Axes, plot: Plot, rows: Sequence[Row], names: Mapping[str, str]) -> None:
    axes.set_xlabel(plot.label)
    if not rows:
        return
    axes.set_ylabel(rows[0]["heading"])
    axes.grid(axis="y")
    values = {row["place"]: row["value"] for row in rows}
    axes.set_xticks(sorted(values), [values[place] for place in sorted(values)])
    series = list(dict.fromkeys(row["series"] for row in rows))
    ends = []
    for number, name in enumerate(series):
        own = [row for row in rows if row["series"] == name]
        offset = _SPREAD * ((number + 0.5) / len(series) - 0.5)
        look = line_look(number)
        xs = [row["place"] + offset for row in own]
        axes.plot(xs, [row["mean"] for row in own], "o", ms=3.5, color=look["color"], alpha=0.8)
        places = sorted({row["place"] for row in own})
        middles = [median(row["mean"] for row in own if row["place"] == place) for place in places]
        axes.plot([place + offset for place in places], middles, **look)
        ends.append((names[name], middles[-1], look["color"]))
    if len(series) > 1:
        label_ends(axes, ends)
