"""Scores over the values of swept settings, a panel per setting.

The figures 5 to 7 of S2Sent, the layer-wise figure 1 of LayerAttPooler, the figure 4 of 3R and the figure 8 of
JTCSE are of this kind. A point is one run's mean over seeds; where other settings are swept along, a value has
several points, and the line goes through their medians, as in a box plot of few points. Numbers are in their
order, other values as the grid lists them.
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
from workflow_scripts.settings.experiment import Experiment
from workflow_scripts.settings.names import Heading, Place, Refers
from workflow_scripts.settings.runs import Point, baselines_of, points_of, runs_of

HOW_DRAWN = "Points: runs, means over seeds. Lines: medians of the runs with one value."
BASES = "Dotted: the baseline, one for each series where they differ."
BARS = "Bars: one standard deviation over seeds."
ONE_SEED = "Every point is a single value: all runs have one seed."

_PANEL_INCHES = 2.6
_SPREAD = 0.5  # of the distance of two values, over which the points of all series are spread

Row = dict[str, Any]


class Plot(Settings):
    """A panel that shows a column over the values of one setting, swept or said by ``at``."""

    setting: Annotated[Place, Refers("grid.swept")]
    label: str = Field(description="Label of the axis, with its unit.")
    heading: Heading | None = Field(
        default=None, description="Column that is shown; left out for the headline."
    )


class Sweep(Settings):
    """The settings to draw."""

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
    """Scores over the values of swept settings."""
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
        shown = heading_of(plot, experiment)
        own = points[(points["setting"] == plot.setting) & (points["heading"] == shown)]
        axes.set_xlabel(plot.label)
        axes.set_ylabel(upright(column_label(experiment, shown, called), _PANEL_INCHES))
        _panel(axes, own, names.short, looks)
    return Drawn(points, figure)


def rows_of(config: Sweep, experiment: Experiment, table: Iterable[Row]) -> pd.DataFrame:
    """Scores over the values of swept settings, a row for each run and setting.

    ``series`` is the run's name without its sweep, ``place`` the value's rank on the axis, null for a baseline; where
    other settings are swept too, a value has several runs. A run without a score has a null mean.
    """
    cells = {(row["run"], row["heading"]): row for row in table}
    points = points_of(experiment.model_dump()) | dict(_placed(experiment))
    rows = []
    for plot in config.plots:
        heading = heading_of(plot, experiment)
        found = {
            run: (series, values[plot.setting])
            for run, (series, values) in points.items()
            if plot.setting in values
        }
        order = _ordered([value for _, value in found.values()])
        drawn = [(run, series, str(value), order.index(value)) for run, (series, value) in found.items()]
        bases = _base_lines(experiment, {run: series for run, (series, _) in found.items()})
        for run, series, value, place in [*drawn, *bases]:
            scores = {key: cells[run, heading][key] for key in ("mean", "sd", "seeds")}
            at = {"setting": plot.setting, "series": series, "value": value, "place": place}
            rows.append(at | scores | {"run": run, "heading": heading})
    return frame(
        rows, setting="str", series="str", value="str", place="Int64", run="str", heading="str", mean="float",
        sd="float", seeds="Int64",
    )  # fmt: skip


def _base_lines(
    experiment: Experiment, series_of: Mapping[str, str]
) -> list[tuple[str, str, str | None, int | None]]:
    """Baselines of the drawn runs: one under its own name, or where there are several one for each series."""
    baselines = baselines_of(experiment.model_dump())
    pairs = [(base, series) for run, series in series_of.items() if (base := baselines[run])]
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


def _panel(axes: Axes, points: pd.DataFrame, names: Mapping[str, str], looks: Mapping[str, Any]) -> None:
    scored, bases = points.dropna(subset="mean"), points[points["place"].isna()]
    placed = scored.dropna(subset="place").sort_values("place", kind="stable")
    if not len(placed):
        return
    axes.grid(axis="y")
    ticks = placed.drop_duplicates("place")
    axes.set_xticks(ticks["place"], ticks["value"])
    series = [name for name in names if name in set(placed["series"])]
    if len(set(bases["run"])) == 1:
        looks_of_bases = dict.fromkeys(bases["series"], INK)
    else:
        looks_of_bases = {name: looks[name]["color"] for name in series}
    for base in scored.loc[scored["place"].isna() & scored["series"].isin(looks_of_bases)].itertuples():
        axes.axhline(base.mean, color=looks_of_bases[base.series], linewidth=0.8, linestyle=(0, (1, 2)))
    for number, name in enumerate(series):
        own = placed[placed["series"] == name]
        offset = _SPREAD * ((number + 0.5) / len(series) - 0.5)
        point: dict[str, Any] = {"fmt": "o", "ms": 3.5, "alpha": 0.8, "elinewidth": 0.8, "capsize": 2}
        axes.errorbar(own["place"] + offset, own["mean"], own["sd"], color=looks[name]["color"], **point)
        medians = own.groupby("place")["mean"].median()
        axes.plot(medians.index + offset, medians, **looks[name], label=names[name])
    if len(names) > 1:
        name_lines(axes)
