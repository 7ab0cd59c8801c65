"""Scores over the values of swept settings, a panel per setting.

The figures 5 to 7 of S2Sent, the layer-wise figure 1 of LayerAttPooler, the figure 4 of 3R and the figure 8 of
JTCSE are of this kind. A point is one run's mean over seeds; where other settings are swept along, a value has
several points, and the line goes through their medians, as in a box plot of few points. Numbers are in their
order, other values as the grid lists them.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import nan
from statistics import median
from typing import Any

import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.figures.base import FigureKind, Request, column_label
from workflow_scripts.figures.style import INK, line_look, name_lines, short_names, upright
from workflow_scripts.graph.runs import Point, baselines_of, points_of, runs_of
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.experiment import experiment_of
from workflow_scripts.settings.experiment import Experiment
from workflow_scripts.settings.figures import Plot, Sweep

SWEEP = pa.schema(
    [
        ("setting", pa.string()),
        ("series", pa.string()),
        ("value", pa.string()),
        ("place", pa.int32()),
        ("run", pa.string()),
        ("heading", pa.string()),
        ("mean", pa.float64()),
        ("sd", pa.float64()),
        ("seeds", pa.int32()),
    ]
)
"""Headline scores over the values of swept settings, a row for each run and setting. ``series`` is the run's name
without its sweep, ``place`` the value's rank on the axis; where other settings are swept too, a value has several
runs."""
HOW_DRAWN = "Points: runs, means over seeds. Lines: medians of the runs with one value."
BASES = "Dotted: the baseline, one for each series where they differ."
BARS = "Bars: one standard deviation over seeds."
ONE_SEED = "Every point is a single value: all runs have one seed."

_PANEL_INCHES = 2.6
_SPREAD = 0.5  # of the distance of two values, over which the points of all series are spread

Row = dict[str, Any]


def rows_of(config: Sweep, experiment: Experiment, table: Iterable[Row]) -> pa.Table:
    """What is drawn; a run without a score has a null mean, the baseline no place."""
    cells = {(row["run"], row["heading"]): row for row in table}
    points = points_of(experiment.model_dump()) | dict(_placed(experiment))
    rows = []
    for plot in config.plots:
        heading = heading_of(plot, experiment)
        found = {run: point for run, point in points.items() if plot.setting in point.values}
        order = _ordered([point.values[plot.setting] for point in found.values()])
        drawn = [
            (run, point.series, str(value), order.index(value))
            for run, point in found.items()
            for value in [point.values[plot.setting]]
        ]
        for run, series, value, place in [*drawn, *_base_lines(experiment, found)]:
            scores = {key: cells[run, heading][key] for key in ("mean", "sd", "seeds")}
            at = {"setting": plot.setting, "series": series, "value": value, "place": place}
            rows.append(at | scores | {"run": run, "heading": heading})
    return pa.Table.from_pylist(rows, schema=SWEEP)


def _base_lines(
    experiment: Experiment, points: Mapping[str, Point]
) -> list[tuple[str, str, str | None, int | None]]:
    """Baselines of the drawn runs: one under its own name, or where there are several one for each series."""
    baselines = baselines_of(experiment.model_dump())
    pairs = [(base, point.series) for run, point in points.items() if (base := baselines[run])]
    shared = len({base for base, _ in pairs}) == 1
    return list(dict.fromkeys((base, base if shared else series, None, None) for base, series in pairs))


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


def draw_panels(points: pa.Table, request: Request[Sweep], experiment: Experiment) -> Figure:
    """Draw the panels one below the other; ``experiment`` is the grid that asked for the table."""
    config = request.config
    rows = points.to_pylist()
    placed = [row for row in rows if row["place"] is not None and row["mean"] is not None]
    names = short_names(list(dict.fromkeys(row["series"] for row in placed)), request.called)
    height = _PANEL_INCHES * len(config.plots)
    bars = ONE_SEED if {row["seeds"] for row in placed} == {1} else BARS
    drawn = f"{HOW_DRAWN} {BASES}" if any(row["place"] is None for row in rows) else HOW_DRAWN
    notes = [drawn, bars, *names.footnotes]
    if not placed:
        return request.empty("No run of the sweep has a score.", height, notes)
    figure = request.new_figure(height, notes)
    panels = figure.subplots(len(config.plots), 1, squeeze=False)[:, 0]
    for axes, plot in zip(panels, config.plots, strict=True):
        shown = (plot.setting, heading_of(plot, experiment))
        own = [row for row in rows if (row["setting"], row["heading"]) == shown]
        axes.set_ylabel(upright(column_label(experiment, shown[1], request.called), _PANEL_INCHES))
        _panel(axes, plot, own, names.short)
    return figure


def _panel(axes: Axes, plot: Plot, asked: Sequence[Row], names: Mapping[str, str]) -> None:
    axes.set_xlabel(plot.label)
    scored = [row for row in asked if row["mean"] is not None]
    rows = [row for row in scored if row["place"] is not None]
    if not rows:
        return
    axes.grid(axis="y")
    values = {row["place"]: row["value"] for row in rows}
    axes.set_xticks(sorted(values), [values[place] for place in sorted(values)])
    series = [name for name in names if name in {row["series"] for row in rows}]
    looks = {name: line_look(number) for number, name in enumerate(names)}  # the same in all panels
    shared = len({row["run"] for row in asked if row["place"] is None}) == 1
    for base in (row for row in scored if row["place"] is None):
        if shared:
            colour = INK
        elif base["series"] in series:
            colour = looks[base["series"]]["color"]
        else:
            continue
        axes.axhline(base["mean"], color=colour, linewidth=0.8, linestyle=(0, (1, 2)))
    for number, name in enumerate(series):
        own = [row for row in rows if row["series"] == name]
        offset = _SPREAD * ((number + 0.5) / len(series) - 0.5)
        look = looks[name]
        xs = [row["place"] + offset for row in own]
        means = [row["mean"] for row in own]
        spreads = [nan if row["sd"] is None else row["sd"] for row in own]
        axes.errorbar(
            xs, means, spreads, fmt="o", ms=3.5, color=look["color"], alpha=0.8, elinewidth=0.8, capsize=2
        )
        places = sorted({row["place"] for row in own})
        middles = [median(row["mean"] for row in own if row["place"] == place) for place in places]
        axes.plot([place + offset for place in places], middles, **look, label=names[name])
    if len(names) > 1:
        name_lines(axes)


KINDS = {
    "sweep": FigureKind(
        columns=SWEEP,
        title="Swept settings: {title}",
        description=(
            "A panel per setting, its values from left to right; a point per run, a line through medians per series."
        ),
        points=lambda request: rows_of(
            request.config,
            experiment_of(*request.inputs["table"]),
            read_table(request.inputs["table"][0], TABLE).to_pylist(),
        ),
        draw=lambda points, request: draw_panels(points, request, experiment_of(*request.inputs["table"])),
    )
}
