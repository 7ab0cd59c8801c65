"""Figures of tables: scores over swept settings, two columns against each other, alignment over uniformity.

Sweeps are figures 5 to 7 of S2Sent, figure 1 of LayerAttPooler (by layer), figure 4 of 3R and figure 8 of JTCSE. Two
columns of a table are JTCSE's figure 10. For alignment and uniformity, lower left is better (Wang and Isola, ICML
2020). Papers differ in the dataset, the definition of positive pairs and the normalisation of vectors. A task of a
suite defines all three, and the figure prints the task's note.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns import SCORES, TABLE
from workflow_scripts.figures.base import (
    INK,
    TABLE_OF_GRID,
    Axes,
    Declaration,
    Drawn,
    FigureRequest,
    frame,
    new_figure,
)
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import experiment_of
from workflow_scripts.settings.figures import AlignmentUniformity, Scatter, Sweep
from workflow_scripts.settings.grids import Experiment

_BARS: dict[str, Any] = {"fmt": "none", "ecolor": INK, "elinewidth": 0.8, "alpha": 0.35}

# Scores over the values of swept settings, a panel per setting

_SWEEP_INCHES = 2.6
_SPREAD = 0.5  # width of the points of all series at one value, in distances between two values
_HOW_SWEPT = (
    "Points: runs, means over seeds with bars of one standard deviation. Lines: medians of the runs with "
    "one value. Dotted: the baseline, one for each series if they differ."
)


@partial(
    Declaration,
    title="Swept settings: {title}",
    description=(
        "A panel per setting, its values from left to right; a point per run, a line through medians per series."
    ),
    caption=(
        "Scores of {experiment} over the values of the settings that it varies, a panel per setting. A "
        "point is one run, a mean over its seeds with a bar of one standard deviation. If other settings "
        "are also swept, a value has several points, and the line goes through their medians. The dotted "
        "line is the baseline."
    ),
    reads={"table": TABLE_OF_GRID},
    settings=Sweep,
)
def sweep(request: FigureRequest[Sweep]) -> Drawn:
    """Draw scores over the values of swept settings; numbers are sorted, other values in the grid's order."""
    import seaborn

    (table,) = request.inputs["table"]
    panels = sweeps(request.config, experiment_of(table), read_table(table, TABLE).to_pandas())
    points = pd.concat(panels, ignore_index=True)
    series = points.dropna(subset=["mean", "place"])["series"].unique()
    if not len(series):
        return Drawn(points, None, ["No run of the sweep has a score."])
    figure, all_axes = new_figure(_SWEEP_INCHES * len(panels), len(panels))
    colours = dict(zip(series, seaborn.color_palette(n_colors=len(series)), strict=True))
    for (axes,), plot, panel in zip(all_axes, request.config.plots, panels, strict=True):
        _draw_sweep(axes, panel, colours)
        axes.set(xlabel=plot.label, ylabel=panel["heading"].iloc[0])
    return Drawn(points, figure, [_HOW_SWEPT])


def sweeps(config: Sweep, experiment: Experiment, table: pd.DataFrame) -> list[pd.DataFrame]:
    """Return scores over the values of swept settings, a table for each panel, a row for each run.

    ``series`` is the run's name without its sweep; ``place`` is the value's rank on the axis, null for a baseline. If
    other settings are swept too, a value has several runs. A run without a score has a null mean.
    """
    scores = table[["run", "heading", "mean", "sd", "seeds"]].astype({"seeds": "Int64"})
    rows = sorted(experiment.rows, key=lambda row: not row.swept)  # lines in the order of sweeps
    panels = []
    for plot in config.plots:
        heading = plot.heading or experiment.headline_column().heading
        swept = [
            (row.run, row.series, row.coordinates[plot.setting])
            for row in rows
            if plot.setting in row.coordinates
        ]
        order = _ordered([value for *_, value in swept])
        drawn = [(run, name, str(value), order.index(value)) for run, name, value in swept]
        panel = [(plot.setting, *point, heading) for point in (*drawn, *_baselines(experiment, drawn))]
        columns = {"setting": "str", "run": "str", "series": "str", "value": "str", "place": "Int64"}
        panels.append(frame(panel, **columns, heading="str").merge(scores, how="left", on=["run", "heading"]))
    return panels


def _baselines(experiment: Experiment, drawn: Sequence[tuple[Any, ...]]) -> Iterable[tuple[Any, ...]]:
    """Return baselines of drawn runs and series: a single one as its own series, several as one for each series."""
    compared = [(experiment.runs[run].baseline, series) for run, series, *_ in drawn]
    pairs = [(baseline, series) for baseline, series in compared if baseline]
    shared = len({baseline for baseline, _ in pairs}) == 1
    return dict.fromkeys((base, base if shared else series, None, None) for base, series in pairs)


def _ordered(values: Sequence[Any]) -> list[Any]:
    """Return the distinct values: sorted numbers, then other values in their order of appearance."""
    distinct = [value for n, value in enumerate(values) if value not in values[:n]]
    return sorted(distinct, key=lambda value: value if isinstance(value, int | float) else math.inf)


def _draw_sweep(axes: Axes, points: pd.DataFrame, colours: Mapping[str, Any]) -> None:
    """Draw one panel of a sweep: points with bars, lines through medians, and dotted baselines."""
    import seaborn

    placed = points.dropna(subset=["mean", "place"])
    if placed.empty:
        axes.set(title="No run has a score.", xticks=[], yticks=[])
        return
    ticks = placed.drop_duplicates("place")
    axes.set_xticks(ticks["place"], ticks["value"])
    for base in points[points["place"].isna()].itertuples():
        axes.axhline(base.mean, color=colours.get(base.series, INK), linewidth=0.8, linestyle=":")
    rank = placed["series"].map([*colours].index)
    placed = placed.assign(x=placed["place"] + _SPREAD * ((rank + 0.5) / len(colours) - 0.5))
    look = {"x": "x", "y": "mean", "hue": "series", "palette": colours, "ax": axes}
    seaborn.lineplot(placed, estimator="median", errorbar=None, **look)
    seaborn.scatterplot(placed, s=20, legend=False, **look)
    axes.errorbar(placed["x"], placed["mean"], placed["sd"], **_BARS)


# Planes: runs as points, with bars of one standard deviation

_PANEL_INCHES = 4.2
_POINT_AREA = 16  # square points, small enough to separate runs near each other
_PLACING: dict[str, Any] = {
    "expand": (2.2, 1.8), "arrowprops": {"arrowstyle": "-", "color": INK, "lw": 0.5}, "min_arrow_len": 0,
    "iter_lim": 150,  # without a limit, the search would stop after one second, in a random state
}  # fmt: skip
_HOW_DRAWN = "Points: means over seeds, with bars of one standard deviation;"


def draw_plane(
    points: pd.DataFrame, x: str, y: str, labels: Sequence[str], score: str | None = None
) -> Drawn:
    """Draw the runs that have both numbers as numbered points, and list all runs below.

    Args:
        points: A row per run, with mean and standard deviation for each axis (``alignment`` and ``alignment_sd``).
        x: Column of the horizontal axis.
        y: Column of the vertical axis.
        labels: Labels of both axes.
        score: Label of the column ``score``, which colours the points; None draws all in one colour.
    """
    from adjustText import adjust_text

    drawn = points.dropna(subset=[x, y])
    if not len(drawn):
        return Drawn(points, None, [f"No run has both {x} and {y}."])
    figure, ((axes,),) = new_figure(_PANEL_INCHES)
    axes.errorbar(drawn[x], drawn[y], drawn[f"{y}_sd"], drawn[f"{x}_sd"], **_BARS)
    shades = {"c": drawn["score"], "cmap": "cividis", "plotnonfinite": True} if score else {}
    dots = axes.scatter(drawn[x], drawn[y], s=_POINT_AREA, edgecolors=INK, linewidths=0.5, zorder=3, **shades)
    axes.set(xlabel=labels[0], ylabel=labels[1])
    if score:
        figure.colorbar(dots, label=score)
    named = dict(enumerate(drawn["run"], start=1))
    numbers = map(axes.text, drawn[x], drawn[y], map(str, named))
    adjust_text([*numbers], ax=axes, **_PLACING)
    key = "; ".join(f"{number}\N{NO-BREAK SPACE}{run}" for number, run in named.items())
    missing = ", ".join(points["run"].drop(drawn.index)) or "none"
    notes = [f"{_HOW_DRAWN} {key}.", f"Not drawn, because scores are missing: {missing}."]
    return Drawn(points, figure, notes)


# Two columns of a table


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
)
def scatter(request: FigureRequest[Scatter]) -> Drawn:
    """Plot two columns of a table; a note has their correlation over three runs or more."""
    (path,) = request.inputs["table"]
    points = both_scores(read_table(path, TABLE).to_pandas(), request.config)
    drawn = draw_plane(points, "x", "y", [request.config.x, request.config.y])
    both = points[["x", "y"]].dropna()
    if len(both) < 3:  # two points always lie on a line
        return drawn
    pearson, spearman = (both.corr(method).loc["x", "y"] for method in ("pearson", "spearman"))
    correlation = f"Over {len(both)} runs: Pearson {pearson:.2f}, Spearman {spearman:.2f}."
    return drawn._replace(notes=[*drawn.notes, correlation])


def both_scores(table: pd.DataFrame, config: Scatter) -> pd.DataFrame:
    """Return means and standard deviations over seeds of two columns, a row per run.

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


@partial(
    Declaration,
    title="Alignment and uniformity: {title}",
    description="A point per run: uniformity to the right, alignment upwards, both better when lower; colour: score.",
    caption=(
        "Alignment and uniformity of every run of {experiment} (Wang and Isola 2020), means over seeds; "
        "bars are one standard deviation, colour is the score of the grid's headline column.\n\nLower "
        "left is better: positive pairs lie close together, and all sentences spread evenly. Values are "
        "comparable only if dataset, threshold and normalisation agree; the figure names them."
    ),
    reads={"table": TABLE_OF_GRID, "scores": "<results>/scores/sts/{suite}/{run}/seed{seed}.parquet"},
    settings=AlignmentUniformity,
)
def alignment_uniformity(request: FigureRequest[AlignmentUniformity]) -> Drawn:
    """Plot alignment over uniformity, coloured by the experiment's headline."""
    (path,) = request.inputs["table"]
    headline = experiment_of(path).headline_column().heading
    table = read_table(path, TABLE).to_pandas()
    means = table[table["heading"] == headline].set_index("run")["mean"]
    scores = (read_table(path, SCORES) for path in request.inputs["scores"])
    points = plane(scores, means, request.config)
    task = request.config.task
    labels = [f"{metric} on {task} (lower is better)" for metric in ("uniformity", "alignment")]
    drawn = draw_plane(points, "uniformity", "alignment", labels, headline)
    notes = ", ".join(sorted(points["note"].dropna().unique()))
    return Drawn(points, drawn.figure, [*drawn.notes, f"{task}: {notes}."])


def plane(scores: Iterable[pa.Table], headline: pd.Series, config: AlignmentUniformity) -> pd.DataFrame:
    """Return means and standard deviations over seeds, a row per run, in the order of the runs' first scores.

    ``score`` is the run's value in ``headline``; ``note`` describes the measurement, or has the reason of a gap.
    """
    chosen = (table.filter(pc.field("task") == config.task).to_pandas() for table in scores)
    rows = pd.concat(chosen, ignore_index=True)
    points = pd.DataFrame(index=pd.Index(rows["run"].unique(), name="run"))
    by_metric = {
        metric: rows[rows["metric"] == metric].groupby("run")["value"]
        for metric in ("alignment", "uniformity")
    }
    points["seeds"] = by_metric["alignment"].count()
    for metric, values in by_metric.items():
        points[metric], points[f"{metric}_sd"] = values.mean(), values.std()
    points["score"] = headline
    points["note"] = (
        rows.dropna(subset="note").groupby("run")["note"].agg(lambda notes: "; ".join(notes.unique()))
    )
    return points.reset_index()
