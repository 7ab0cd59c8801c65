"""Scores over the values of swept settings, a panel per setting.

The figures 5 to 7 of S2Sent, the layer-wise figure 1 of LayerAttPooler, the figure 4 of 3R and the figure 8 of
JTCSE are of this kind. A point is one run's mean over seeds; where other settings are swept along, a value has
several points, and the line goes through their medians, as in a box plot of few points. Numbers stand in their
order, other values as the grid lists them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.dag import Point, points_of, runs_of
from workflow_scripts.reporting.experiment import Experiment, Plot
from workflow_scripts.reporting.style import (
    INK,
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
HOW_DRAWN = (
    "Points: runs, means over seeds. Lines: medians of the runs with one value. Dotted: the grid's baseline."
)

_PANEL_INCHES = 2.6
_SPREAD = 0.5  # of the distance of two values, over which the points of all series are spread


def rows_of(experiment: Experiment, table: Iterable[Row]) -> pa.Table:
    """What is drawn, columns of ``schemas.SWEEP``; a run without a score has a null mean, the baseline no place."""
    cells = {(row["run"], row["heading"]): row for row in table}
    points = points_of(experiment.model_dump()) | dict(_placed(experiment))
    rows = []
    for plot in experiment.plots:
        heading = heading_of(plot, experiment)
        found = {run: point for run, point in points.items() if plot.setting in point.values}
        order = _ordered([point.values[plot.setting] for point in found.values()])
        drawn = [
            (run, point.series, str(value), order.index(value))
            for run, point in found.items()
            for value in [point.values[plot.setting]]
        ]
        baseline = experiment.baseline
        for run, series, value, place in [*drawn, *([(baseline, baseline, None, None)] if baseline else [])]:
            scores = {key: cells[run, heading][key] for key in ("mean", "sd", "seeds")}
            at = {"setting": plot.setting, "series": series, "value": value, "place": place}
            rows.append(at | scores | {"run": run, "heading": heading})
    return pa.Table.from_pylist(rows, schema=SWEEP)


def heading_of(plot: Plot, experiment: Experiment) -> str:
    """The column that a panel shows."""
    return plot.heading or experiment.headline_column().heading


def _placed(experiment: Experiment) -> Iterator[tuple[str, Point]]:
    """Runs that lie where their block says (``at``); those that differ in tag alone are one series."""
    for block in experiment.model_dump()["runs"]:
        if block["at"]:
            grid = experiment.model_dump(include={"title", "seeds"})
            names, series = (runs_of(grid | {"runs": [part]}) for part in (block, block | {"tag": None}))
            yield from ((run, Point(line, block["at"])) for run, line in zip(names, series, strict=True))


def _ordered(values: Sequence[Any]) -> list[Any]:
    """Distinct values: numbers in their order, then others as they come."""
    numbers = [value for value in values if isinstance(value, int | float)]
    others = [value for value in values if not isinstance(value, int | float)]
    return [*sorted(set(numbers)), *(value for n, value in enumerate(others) if value not in others[:n])]


def draw(
    data: pa.Table, experiment: Experiment, style: FigureStyle, title: str, footnotes: Sequence[str]
) -> Figure:
    """Draw the panels one below the other."""
    rows = [row for row in data.to_pylist() if row["mean"] is not None]
    placed = [row for row in rows if row["place"] is not None]
    names = short_names(list(dict.fromkeys(row["series"] for row in placed)))
    height = _PANEL_INCHES * max(1, len(experiment.plots))
    figure = new_figure(style, height, title, [HOW_DRAWN, *names.footnotes, *footnotes])
    if not placed:
        empty_panel(figure, "No run of the sweep has a score.")
        return figure
    panels = figure.subplots(len(experiment.plots), 1, squeeze=False)[:, 0]
    for axes, plot in zip(panels, experiment.plots, strict=True):
        shown = (plot.setting, heading_of(plot, experiment))
        own = [row for row in rows if (row["setting"], row["heading"]) == shown]
        _panel(axes, plot, own, names.short)
    return figure


def _panel(axes: Axes, plot: Plot, scored: Sequence[Row], names: Mapping[str, str]) -> None:
    axes.set_xlabel(plot.label)
    rows = [row for row in scored if row["place"] is not None]
    if not rows:
        return
    axes.set_ylabel(rows[0]["heading"])
    axes.grid(axis="y")
    for baseline in (row for row in scored if row["place"] is None):
        axes.axhline(baseline["mean"], color=INK, linewidth=0.8, linestyle=(0, (1, 2)))
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
