"""Scores over the values of swept settings, a panel per setting.

Examples are figures 5 to 7 of S2Sent, figure 1 of LayerAttPooler (by layer), figure 4 of 3R and figure 8 of JTCSE. A
point is one run's mean over seeds. If other settings are swept too, a value has several points, and the line goes
through their medians, as in a box plot of few points. Numbers are sorted; other values are in the grid's order.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import pandas as pd
from pydantic import Field

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.config import Settings
from workflow_scripts.figures.base import (
    TABLE_OF_GRID,
    Axes,
    Declaration,
    Drawn,
    Request,
    column_label,
    frame,
)
from workflow_scripts.figures.style import INK, line_look, name_lines, short_names, upright
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import experiment_of
from workflow_scripts.settings.grids import Experiment, Point, baselines_of, points_of, runs_of
from workflow_scripts.settings.names import Heading, Place, Refers

HOW_DRAWN = "Points: runs, means over seeds. Lines: medians of the runs with one value."
BASES = "Dotted: the baseline, one for each series where they differ."
BARS = "Bars: one standard deviation over seeds."
ONE_SEED = "Every point is a single value: all runs have one seed."

_PANEL_INCHES = 2.6
_SPREAD = 0.5  # width of the points of all series at one value, in distances between two values

Row = dict[str, Any]


class Plot(Settings):
    """A panel of a column's scores over the values of one setting, swept or given by ``at``."""

    setting: Annotated[Place, Refers("grid.swept")]
    label: str = Field(description="Label of the axis, with its unit.")
    heading: Heading | None = Field(default=None, description="Column of the table; by default the headline.")


class Sweep(Settings):
    """Settings of the sweep figure: its panels."""

    plots: list[Plot] = Field(min_length=1, description="Panels, one below the other.")


@partial(
    Declaration,
    title="Swept settings: {title}",
    description=(
        "A panel per setting, its values from left to right; a point per run, a line through medians per series."
    ),
    caption=(
        "Scores of {experiment} over the values of the settings that it varies, a panel per setting. A point is "
        "one run, a mean over its seeds with a bar of one standard deviation; where other settings are swept "
        "along, a value has several points, and the line goes through their medians. The dotted line is the "
        "baseline."
    ),
    reads={"table": TABLE_OF_GRID},
    settings=Sweep,
    block="grids.{experiment}.sweep",
)
def sweep(request: Request[Sweep]) -> Drawn:
    """Draw scores over the values of swept settings."""
    (table,) = request.inputs["table"]
    experiment = experiment_of(table)
    points = rows_of(request.config, experiment, read_table(table, TABLE).to_pylist())
    plots, called = request.config.plots, request.called
    scored = points.dropna(subset="mean")
    placed = scored.dropna(subset="place")
    names = short_names(list(placed["series"].unique()), called)
    height = _PANEL_INCHES * len(plots)
    bars = ONE_SEED if set(placed["seeds"]) == {1} else BARS
    drawn = f"{HOW_DRAWN} {BASES}" if points["place"].isna().any() else HOW_DRAWN
    notes = [drawn, bars, *names.footnotes]
    if not len(placed):
        return Drawn(points, request.empty("No run of the sweep has a score.", height, notes))
    figure = request.new_figure(height, notes)
    looks = {series: line_look(number) for number, series in enumerate(names.short)}  # the same in all panels
    for axes, plot in zip(figure.subplots(len(plots), 1, squeeze=False).flat, plots, strict=True):
        heading = _heading(plot, experiment)
        own = points[(points["setting"] == plot.setting) & (points["heading"] == heading)]
        axes.set_xlabel(plot.label)
        axes.set_ylabel(upright(column_label(experiment, heading, called), _PANEL_INCHES))
        _panel(axes, own, names.short, looks)
    return Drawn(points, figure)


def rows_of(config: Sweep, experiment: Experiment, table: Iterable[Row]) -> pd.DataFrame:
    """Scores over the values of swept settings, a row for each run and setting.

    ``series`` is the run's name without its sweep; ``place`` is the value's rank on the axis, null for a baseline. If
    other settings are swept too, a value has several runs. A run without a score has a null mean.
    """
    cells = {(row["run"], row["heading"]): row for row in table}
    points = points_of(experiment.model_dump()) | dict(_runs_at(experiment))
    rows = []
    for plot in config.plots:
        heading = _heading(plot, experiment)
        series_by_run = {run: name for run, (name, values) in points.items() if plot.setting in values}
        values = {run: points[run][1][plot.setting] for run in series_by_run}
        order = _ordered([*values.values()])
        drawn = [
            (run, name, str(values[run]), order.index(values[run])) for run, name in series_by_run.items()
        ]
        baselines = _baselines(experiment, series_by_run)
        for run, series, value, place in [*drawn, *baselines]:
            scores = {key: cells[run, heading][key] for key in ("mean", "sd", "seeds")}
            point = {"setting": plot.setting, "series": series, "value": value, "place": place}
            rows.append(point | scores | {"run": run, "heading": heading})
    return frame(
        rows, setting="str", series="str", value="str", place="Int64", run="str", heading="str", mean="float",
        sd="float", seeds="Int64",
    )  # fmt: skip


def _baselines(
    experiment: Experiment, series: Mapping[str, str]
) -> list[tuple[str, str, str | None, int | None]]:
    """Baselines of the drawn runs: a single one as its own series, several as one for each series."""
    baselines = baselines_of(experiment.model_dump())
    pairs = [(baseline, name) for run, name in series.items() if (baseline := baselines[run])]
    shared = len({baseline for baseline, _ in pairs}) == 1
    return list(dict.fromkeys((base, base if shared else name, None, None) for base, name in pairs))


def _heading(plot: Plot, experiment: Experiment) -> str:
    """Heading of the column that a panel shows."""
    return plot.heading or experiment.headline_column().heading


def _runs_at(experiment: Experiment) -> Iterator[tuple[str, Point]]:
    """Runs whose values are given by ``at``; runs that differ only in their tags are one series."""
    for block in experiment.model_dump()["runs"]:
        if block["at"]:
            grid = experiment.model_dump(include={"title", "seeds"})
            names, series = (runs_of(grid | {"runs": [part]}) for part in (block, block | {"tag": None}))
            yield from ((run, Point(line, block["at"])) for run, line in zip(names, series, strict=True))


def _ordered(values: Sequence[Any]) -> list[Any]:
    """Distinct values: numbers sorted, then other values in their order of appearance."""
    numbers = {value for value in values if isinstance(value, int | float)}
    others = [value for value in values if not isinstance(value, int | float)]
    return [*sorted(numbers), *(value for n, value in enumerate(others) if value not in others[:n])]


def _panel(axes: Axes, points: pd.DataFrame, names: Mapping[str, str], looks: Mapping[str, Any]) -> None:
    """Draw one panel: points with bars, lines through medians, and dotted baselines."""
    scored, baselines = points.dropna(subset="mean"), points[points["place"].isna()]
    placed = scored.dropna(subset="place").sort_values("place", kind="stable")
    if not len(placed):
        return
    axes.grid(axis="y")
    ticks = placed.drop_duplicates("place")
    axes.set_xticks(ticks["place"], ticks["value"])
    series = [name for name in names if name in set(placed["series"])]
    if len(set(baselines["run"])) == 1:
        colours = dict.fromkeys(baselines["series"], INK)
    else:
        colours = {name: looks[name]["color"] for name in series}
    for base in scored.loc[scored["place"].isna() & scored["series"].isin(colours)].itertuples():
        axes.axhline(base.mean, color=colours[base.series], linewidth=0.8, linestyle=(0, (1, 2)))
    for number, name in enumerate(series):
        own = placed[placed["series"] == name]
        offset = _SPREAD * ((number + 0.5) / len(series) - 0.5)
        point: dict[str, Any] = {"fmt": "o", "ms": 3.5, "alpha": 0.8, "elinewidth": 0.8, "capsize": 2}
        axes.errorbar(own["place"] + offset, own["mean"], own["sd"], color=looks[name]["color"], **point)
        medians = own.groupby("place")["mean"].median()
        axes.plot(medians.index + offset, medians, **looks[name], label=names[name])
    if len(names) > 1:
        name_lines(axes)
