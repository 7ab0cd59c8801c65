"""Figures of tables: scores over swept settings, two columns against each other, alignment over uniformity.

Sweeps are figures 5 to 7 of S2Sent, figure 1 of LayerAttPooler (by layer), figure 4 of 3R and figure 8 of JTCSE. Two
columns of a table are JTCSE's figure 10. Of alignment and uniformity, lower left is better (Wang and Isola, ICML 2020);
papers differ in the dataset, the definition of positive pairs and the normalisation of vectors. A task of a suite
defines all three, and the figure prints the task's note.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated, Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from workflow_scripts.columns import SCORES, TABLE
from workflow_scripts.config import Settings
from workflow_scripts.figures.base import (
    COLOURS,
    INK,
    TABLE_OF_GRID,
    Axes,
    Declaration,
    Drawn,
    Figure,
    Names,
    Request,
    colour_bar,
    column_label,
    frame,
    line_look,
    name_lines,
    shades,
    short_names,
    upright,
)
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import experiment_of
from workflow_scripts.settings.grids import Experiment, Point, baselines_of, expand, points_of
from workflow_scripts.settings.names import Heading, Place, Refers

# Scores over the values of swept settings, a panel per setting

_SWEEP_INCHES = 2.6
_SPREAD = 0.5  # width of the points of all series at one value, in distances between two values
_HOW_SWEPT = (
    "Points: runs, means over seeds with bars of one standard deviation. Lines: medians of the runs with one value. "
    "Dotted: the baseline, one for each series where they differ."
)


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
    """Draw scores over the values of swept settings; numbers are sorted, other values in the grid's order."""
    (table,) = request.inputs["table"]
    experiment, plots = experiment_of(table), request.config.plots
    panels = sweeps(request.config, experiment, read_table(table, TABLE).to_pandas())
    points = pd.concat(panels, ignore_index=True)
    placed = points.dropna(subset=["mean", "place"])
    names = short_names(list(placed["series"].unique()))
    height, notes = _SWEEP_INCHES * len(plots), [_HOW_SWEPT, *names.footnotes]
    if not len(placed):
        return Drawn(points, request.empty("No run of the sweep has a score.", height, notes))
    figure, all_axes = request.new_figure(height, notes, len(plots))
    looks = {series: line_look(number) for number, series in enumerate(names.short)}  # the same in all panels
    for (axes,), plot, own in zip(all_axes, plots, panels, strict=True):
        label = column_label(experiment, own["heading"].iloc[0])
        axes.set(xlabel=plot.label, ylabel=upright(label, _SWEEP_INCHES))
        _draw_sweep(axes, own, names.short, looks)
    return Drawn(points, figure)


def sweeps(config: Sweep, experiment: Experiment, table: pd.DataFrame) -> list[pd.DataFrame]:
    """Scores over the values of swept settings, a table for each panel, a row for each run.

    ``series`` is the run's name without its sweep; ``place`` is the value's rank on the axis, null for a baseline. If
    other settings are swept too, a value has several runs. A run without a score has a null mean.
    """
    scores = table[["run", "heading", "mean", "sd", "seeds"]].astype({"seeds": "Int64"})
    points = points_of(experiment) | dict(_runs_at(experiment))
    panels = []
    for plot in config.plots:
        heading = plot.heading or experiment.headline_column().heading
        swept = [(run, name, at[plot.setting]) for run, (name, at) in points.items() if plot.setting in at]
        order = _ordered([value for *_, value in swept])
        drawn = [(run, name, str(value), order.index(value)) for run, name, value in swept]
        rows = [(plot.setting, *row, heading) for row in (*drawn, *_baselines(experiment, drawn))]
        columns = {"setting": "str", "run": "str", "series": "str", "value": "str", "place": "Int64"}
        panels.append(frame(rows, **columns, heading="str").merge(scores, how="left", on=["run", "heading"]))
    return panels


def _baselines(experiment: Experiment, drawn: Sequence[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    """Baselines of drawn runs and series: a single one as its own series, several as one for each series."""
    baselines = baselines_of(experiment)
    pairs = [(baseline, series) for run, series, *_ in drawn if (baseline := baselines[run])]
    shared = len({baseline for baseline, _ in pairs}) == 1
    return dict.fromkeys((base, base if shared else series, None, None) for base, series in pairs)


def _runs_at(experiment: Experiment) -> Iterator[tuple[str, Point]]:
    """Runs whose values are given by ``at``; runs that differ only in their tags are one series."""
    for block in experiment.runs:
        if block.at:
            untagged = block.model_copy(update={"tag": None})
            named = zip(expand(block, experiment.seeds), expand(untagged, experiment.seeds), strict=True)
            yield from ((run, Point(line, block.at)) for (run, *_), (line, *_) in named)


def _ordered(values: Sequence[Any]) -> list[Any]:
    """Distinct values: numbers sorted, then other values in their order of appearance."""
    numbers = {value for value in values if isinstance(value, int | float)}
    others = [value for value in values if not isinstance(value, int | float)]
    return [*sorted(numbers), *(value for n, value in enumerate(others) if value not in others[:n])]


def _draw_sweep(axes: Axes, points: pd.DataFrame, names: Mapping[str, str], looks: Mapping[str, Any]) -> None:
    """Draw one panel of a sweep: points with bars, lines through medians, and dotted baselines."""
    scored = points.dropna(subset="mean")
    placed = scored.dropna(subset="place").sort_values("place", kind="stable")
    if not len(placed):
        return
    axes.grid(axis="y")
    ticks = placed.drop_duplicates("place")
    axes.set_xticks(ticks["place"], ticks["value"])
    series = [name for name in names if name in set(placed["series"])]
    for base in scored[scored["place"].isna()].itertuples():
        colour = looks.get(base.series, {"color": INK})["color"]
        axes.axhline(base.mean, color=colour, linewidth=0.8, linestyle=(0, (1, 2)))
    for number, name in enumerate(series):
        own = placed[placed["series"] == name]
        offset = _SPREAD * ((number + 0.5) / len(series) - 0.5)
        point: dict[str, Any] = {"fmt": "o", "ms": 3.5, "alpha": 0.8, "elinewidth": 0.8, "capsize": 2}
        axes.errorbar(own["place"] + offset, own["mean"], own["sd"], color=looks[name]["color"], **point)
        medians = own.groupby("place")["mean"].median()
        axes.plot(medians.index + offset, medians, **looks[name], label=names[name])
    if len(names) > 1:
        name_lines(axes)


# Planes: runs as points, with names and bars of one standard deviation

_HOW_DRAWN = "Circles: means over seeds, bars one standard deviation; squares: one seed, so no bar."
_PANEL_INCHES = 4.2
_RADIUS = 5.5  # pixels of a point with its edge
_PLACING: dict[str, Any] = {
    "force_static": (0.3, 0.4), "force_text": (0.3, 0.4), "force_explode": (0.5, 1.0), "explode_radius": 40,
    "iter_lim": 150,  # without a limit the search would stop after one second, at a random state
    "arrowprops": {"arrowstyle": "-", "color": INK, "lw": 0.5, "alpha": 0.6},
}  # fmt: skip
"""Settings of adjustText with the fewest names on top of points, in made-up planes of 5 to 31 runs."""
_WORDS_UP_TO = 6  # points; with more of them names would not fit, so they are numbered


def draw_plane(
    request: Request[Any],
    points: pd.DataFrame,
    labels: Mapping[str, str],
    empty: str,
    before: Sequence[str] = (),
    after: Sequence[str] = (),
    scale: str | None = None,
) -> Figure:
    """Draw the runs that have both numbers, and list the others below.

    Args:
        request: Texts and style of the figure.
        points: A row per run, with mean and standard deviation for each axis (``alignment`` and ``alignment_sd``).
        labels: Columns of the horizontal and the vertical axis, with the labels of the axes.
        empty: Message if no run has both numbers.
        before: Notes to print before the notes on runs.
        after: Notes to print after the notes on runs.
        scale: Label of the colour scale of the column ``score``; None draws all points in one colour.
    """
    (x, y), (x_label, y_label) = labels, labels.values()
    drawn = points.dropna(subset=[x, y])
    if not len(drawn):
        return request.empty(empty)
    names = plane_names(list(drawn["run"]))
    missing = "; ".join(points["run"].drop(drawn.index))
    undrawn = [f"Not drawn, because scores are missing: {missing}."] if missing else []
    notes = [_HOW_DRAWN, *before, *names.footnotes, *undrawn, *after]
    figure, ((axes,),) = request.new_figure(_PANEL_INCHES, notes)
    axes.grid()
    axes.margins(0.14)
    axes.set(xlabel=x_label, ylabel=upright(y_label, _PANEL_INCHES))
    right, up = drawn[f"{x}_sd"], drawn[f"{y}_sd"]
    axes.errorbar(drawn[x], drawn[y], up, right, fmt="none", ecolor=INK, elinewidth=0.8, capsize=2, zorder=2)
    colours = shades("cividis", drawn["score"].min(), drawn["score"].max()) if scale else None
    for shape, own in drawn.groupby(np.where(right.isna() & up.isna(), "s", "o")):
        filled = [colours.to_rgba(score) for score in own["score"]] if colours else COLOURS[0]
        axes.scatter(own[x], own[y], s=49, c=filled, marker=shape, edgecolors=INK, linewidths=0.7, zorder=3)
    if colours and drawn["score"].notna().any():
        colour_bar(figure, colours, str(scale), ax=axes, aspect=30, pad=0.02)
    _name_points(figure, axes, drawn, x, y, names.short)
    return figure


def _name_points(
    figure: Figure, axes: Axes, points: pd.DataFrame, x: str, y: str, names: Mapping[str, str]
) -> None:
    """Write names next to their points, off points, bars and other names; a line joins a distant name to its point."""
    from adjustText import adjust_text
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.transforms import Bbox

    FigureCanvasSVG(figure)  # measures text as in the picture
    figure.draw_without_rendering()  # lays the panel out
    texts = [
        axes.text(row[x], row[y], names[row["run"]], size="small", ha="center", va="center")
        for _, row in points.iterrows()
    ]
    wide, high = np.ptp(axes.transData.inverted().transform([(0, 0), (_RADIUS, _RADIUS)]), axis=0)
    bars = [
        Bbox.from_extents(row[x] - right, row[y] - up, row[x] + right, row[y] + up)
        for _, row in points.fillna({f"{x}_sd": 0, f"{y}_sd": 0}).iterrows()
        for right, up in ((max(wide, row[f"{x}_sd"]), high), (wide, max(high, row[f"{y}_sd"])))
    ]
    adjust_text(texts, objects=bars, ax=axes, **_PLACING)


def plane_names(runs: Sequence[str]) -> Names:
    """Short names of a few runs; for many runs, numbers and a footnote that explains them."""
    names = short_names(runs)
    if len(runs) <= _WORDS_UP_TO:
        return names
    short = {run: str(number) for number, run in enumerate(names.short, start=1)}
    key = "; ".join(f"{short[run]}\N{NO-BREAK SPACE}{name}" for run, name in names.short.items())
    return Names(short, [f"Points: {key}.", *names.footnotes])


# Two columns of a table


class Scatter(Settings):
    """Settings of the scatter plot: two columns of a table."""

    x: Heading = Field(description="Heading of a column.")
    y: Heading = Field(description="Heading of a column.")


@partial(
    Declaration,
    title="Two scores of every run: {title}",
    description="A point per run, one column of the table to the right, another upwards.",
    caption=(
        "Two columns of the table of {experiment} against each other: a point is one run, a mean over its seeds; "
        "bars are one standard deviation."
    ),
    reads={"table": TABLE_OF_GRID},
    settings=Scatter,
    block="grids.{experiment}.scatter",
)
def scatter(request: Request[Scatter]) -> Drawn:
    """Plot two columns of a table; a footnote has their correlation over three runs or more."""
    (path,) = request.inputs["table"]
    experiment, (x, y) = experiment_of(path), (request.config.x, request.config.y)
    points = both_scores(read_table(path, TABLE).to_pandas(), request.config)
    both = points[["x", "y"]].dropna()
    pearson, spearman = (both.corr(method).loc["x", "y"] for method in ("pearson", "spearman"))
    correlation = f"Over {len(both)} runs: Pearson {pearson:.2f}, Spearman {spearman:.2f}."
    figure = draw_plane(
        request,
        points,
        {name: column_label(experiment, heading) for name, heading in (("x", x), ("y", y))},
        f"No run has both {x} and {y}.",
        after=[correlation] if len(both) > 2 else [],
    )
    return Drawn(points, figure)


def both_scores(table: pd.DataFrame, config: Scatter) -> pd.DataFrame:
    """Means and standard deviations over seeds of two columns, a row per run.

    Args:
        table: Rows of ``columns.TABLE``.
        config: The two columns.
    """
    by_run = table.set_index("run")
    sides = [
        by_run.loc[by_run["heading"] == heading, ["mean", "sd"]].set_axis([side, f"{side}_sd"], axis=1)
        for side, heading in (("x", config.x), ("y", config.y))
    ]
    return pd.concat(sides, axis=1).reset_index()


# Alignment and uniformity


class AlignmentUniformity(Settings):
    """Settings of the plane: the task that measures alignment and uniformity."""

    task: Annotated[str, Refers("grid.positives")] = Field(
        description="One of the ``positives`` of the experiment's suites of scored pairs."
    )


@partial(
    Declaration,
    title="Alignment and uniformity: {title}",
    description="A point per run: uniformity to the right, alignment upwards, both better when lower; colour: score.",
    caption=(
        "Alignment and uniformity of every run of {experiment} (Wang and Isola 2020), means over seeds; bars are "
        "one standard deviation, colour is the score of the grid's headline column.\n\nLower left is better: "
        "positive pairs lie close together, and all sentences spread evenly. Values compare only where dataset, "
        "threshold and normalisation agree; the figure names them."
    ),
    reads={"table": TABLE_OF_GRID, "scores": "<results>/scores/sts/{suite}/{run}/seed{seed}.parquet"},
    settings=AlignmentUniformity,
    block="grids.{experiment}.alignment_uniformity",
)
def alignment_uniformity(request: Request[AlignmentUniformity]) -> Drawn:
    """Plot alignment over uniformity, coloured by the experiment's headline; an open point has no score."""
    (path,) = request.inputs["table"]
    experiment, table = experiment_of(path), read_table(path, TABLE).to_pandas()
    headline = experiment.headline_column().heading
    means = table[table["heading"] == headline].set_index("run")["mean"]
    scores = (read_table(path, SCORES) for path in request.inputs["scores"])
    points = plane(scores, means, request.config)
    data = request.config.task
    tasks = ", ".join(sorted(points.dropna(subset=["alignment", "note"])["note"].unique()))
    figure = draw_plane(
        request,
        points,
        {metric: f"{metric} on {data} (lower is better)" for metric in ("uniformity", "alignment")},
        "Alignment and uniformity are gaps for every run.",
        before=[f"{data}: {tasks}."] if tasks else [],
        scale=column_label(experiment, headline),
    )
    return Drawn(points, figure)


def plane(scores: Iterable[pa.Table], headline: pd.Series, config: AlignmentUniformity) -> pd.DataFrame:
    """Means and standard deviations over seeds, a row per run, in the order of the runs' first scores.

    ``score`` is the run's value in ``headline``; ``note`` describes the measurement, or gives the reason of a gap.
    """
    chosen = (table.filter(pc.field("task") == config.task).to_pandas() for table in scores)
    rows = pd.concat(chosen, ignore_index=True)
    seeds = rows.pivot_table("value", "run", "metric", ["mean", "std", "count"], dropna=False)
    points = pd.DataFrame(index=pd.Index(rows["run"].unique(), name="run"))
    points["seeds"] = seeds["count"]["alignment"]
    for metric in ("alignment", "uniformity"):
        points[metric], points[f"{metric}_sd"] = seeds["mean"][metric], seeds["std"][metric]
    points["score"] = headline
    points["note"] = (
        rows.dropna(subset="note").groupby("run")["note"].agg(lambda notes: "; ".join(notes.unique()))
    )
    return points.reset_index()
