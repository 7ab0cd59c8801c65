"""Lines over optimiser steps: training losses and development scores of runs, and the paths of 3R's threshold.

A learning curve is a line per run, the mean over its seeds. A threshold c, and the number of dimensions below it, is a
line per seed (3R, Table 7).
"""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from numpy.typing import NDArray

from workflow_scripts.columns.training import HISTORY, METRICS
from workflow_scripts.figures.base import FigureKind, Request
from workflow_scripts.figures.style import Names, line_look, name_lines, short_names, upright
from workflow_scripts.reporting.records import RunTable, record_of, run_tables
from workflow_scripts.settings.figures import LearningCurves, ThresholdPath

CURVES = pa.schema(
    [
        ("run", pa.string()),
        ("seed", pa.int32()),
        ("metric", pa.string()),
        ("step", pa.float64()),
        ("value", pa.float64()),
    ]
)
"""Points of the lines: a value of a metric of one run and seed after so many steps."""

_SEEDS_UP_TO = 6  # runs; with more, a line per seed hides the rest
_SINGLE: dict[str, Any] = {"marker": "D", "markersize": 4.5, "linestyle": "none"}  # no line would be seen
_MEASURED: dict[str, Any] = {"marker": "o", "markersize": 2.5}
_NAME_INCHES = 0.145

Floats = NDArray[np.float64]


def _curve(history: RunTable, metric: str, steps: Any, values: Any) -> pa.Table:
    """The values of one metric of one run and seed after some steps."""
    named = [[value] * len(steps) for value in (history.run, history.seed, metric)]
    return pa.table([*named, steps, values], schema=CURVES)


def _how_lines_are_drawn(points: pa.Table) -> str:
    """A note on what the lines are, thick and thin, and the diamonds."""
    seeds = len(pc.unique(points["seed"]))
    if seeds > 1 and len(pc.unique(points["run"])) <= _SEEDS_UP_TO:
        return f"Thick lines: mean over {seeds} seeds; thin lines: single seeds. {_what_diamonds_are(points)}"
    return (f"Lines: mean over {seeds} seeds. " if seeds > 1 else "One seed. ") + _what_diamonds_are(points)


def _what_diamonds_are(points: pa.Table) -> str:
    """A note on the marks of what was measured once; empty where nothing was."""
    steps = points.group_by(["run", "metric"]).aggregate([("step", "count_distinct")])
    return "Diamonds: measured at one step only. " if 1 in steps["step_count_distinct"].to_pylist() else ""


def _draw_metric(axes: Axes, points: pa.Table, metric: str, names: Names) -> None:
    """Draw one panel, a line for each run with its name."""
    for index, (run, name) in enumerate(names.short.items()):
        chosen = points.filter(pc.and_(pc.equal(points["metric"], metric), pc.equal(points["run"], run)))
        look = line_look(index)
        single = len(pc.unique(chosen["step"])) == 1
        marker = _SINGLE if single else _MEASURED if metric == "dev_score" else {}
        seeds = pc.unique(chosen["seed"]).to_pylist()
        for seed in seeds if len(seeds) > 1 and len(names.short) <= _SEEDS_UP_TO else []:
            of_seed = chosen.filter(pc.equal(chosen["seed"], seed))
            axes.plot(
                of_seed["step"].to_numpy(),
                of_seed["value"].to_numpy(),
                **look | {"lw": 0.7, "alpha": 0.5} | (_SINGLE | {"markersize": 2.5} if single else {}),
            )
        mean = (
            chosen.group_by("step", use_threads=False)
            .aggregate([("value", "mean"), ("value", "count")])
            .sort_by("step")
        )
        mean = mean.filter(pc.equal(mean["value_count"], len(seeds)))  # a mean over fewer seeds would jump
        if len(mean):
            axes.plot(mean["step"].to_numpy(), mean["value_mean"].to_numpy(), **look | marker, label=name)
    name_lines(axes)


# Training loss and development score

_LOG_FROM = 20.0  # a loss that falls by more than this factor is drawn on a logarithmic axis
_LOSS_INCHES = 1.9


def curves(histories: Iterable[RunTable], loss_blocks: int) -> pa.Table:
    """The points to draw, no more of them than a figure shows.

    Args:
        histories: Columns of ``columns.training.HISTORY``.
        loss_blocks: Into how many points a run's losses are averaged.

    Returns:
        Columns of ``CURVES``: ``loss`` is the mean of a block of steps at its middle, ``dev_score`` as measured.
    """
    parts = [part for history in histories for part in _loss_and_score(history, loss_blocks)]
    return pa.concat_tables([CURVES.empty_table(), *parts])


def _loss_and_score(history: RunTable, blocks: int) -> Iterable[pa.Table]:
    evaluated = history.table.filter(pc.is_valid(history.table["dev_score"]))
    step, loss = (history.table[name].to_numpy().astype(np.float64) for name in ("step", "loss"))
    count = min(blocks, len(step))
    yield _curve(history, "loss", _block_means(step, count), _block_means(loss, count))
    yield _curve(history, "dev_score", evaluated["step"].cast(pa.float64()), evaluated["dev_score"])


def _block_means(values: Floats, count: int) -> Floats:
    """Means of ``count`` consecutive blocks whose lengths differ by one at most."""
    return np.array([block.mean() for block in np.array_split(values, count)] if count else [])


def draw_loss_and_score(points: pa.Table, request: Request[LearningCurves]) -> Figure:
    """Draw the curves: a thick line per run for the mean over its seeds, a thin one for each seed."""
    runs = list(dict.fromkeys(points["run"].to_pylist()))
    if not runs:
        return request.empty("No run of this experiment is trained.")
    names = short_names(runs, request.called)
    height = max(_LOSS_INCHES, _NAME_INCHES * len(runs))
    figure = request.new_figure(2 * height, [_how_drawn(points), *names.footnotes])
    above, below = figure.subplots(2, 1, sharex=True)
    for axes, metric in ((above, "loss"), (below, "dev_score")):
        _draw_metric(axes, points, metric, names)
        axes.grid(axis="y")
    trained_on, chosen_by = _data(request)
    below.set_ylabel(f"development score\n(Spearman{chosen_by})")
    below.set_xlabel("optimiser steps")
    below.set_xlim(0, None)
    below.margins(x=0)
    scale = _scale_loss(above, points.filter(pc.equal(points["metric"], "loss"))["value"].to_numpy())
    above.set_ylabel(f"training loss{trained_on}\n(of its method{scale})")
    figure.align_ylabels()
    return figure


def _how_drawn(points: pa.Table) -> str:
    lines = _how_lines_are_drawn(points)
    loss = points.filter(pc.equal(points["metric"], "loss"))
    ends = loss.group_by(["run", "seed"]).aggregate([("step", "min"), ("step", "max"), ("step", "count")])
    first, last, count = (ends[f"step_{end}"].to_numpy() for end in ("min", "max", "count"))
    blocks = np.where(count > 1, (last - first) / np.maximum(count - 1, 1), 1)
    if (blocks == 1).all():
        return f"{lines}Loss: every step."
    sizes = dict.fromkeys((math.floor(blocks.min()), math.ceil(blocks.max())))
    return f"{lines}Loss: means of blocks of {' to '.join(map(str, sizes))} steps."


def _data(request: Request[LearningCurves]) -> tuple[str, str]:
    """The text that all runs were trained on, and the pairs that chose their checkpoints, to be put into a label."""
    inputs = [record_of(path).inputs for path in request.inputs.get("histories", ())]
    corpora = {Path(read["corpus"].path).parent.name for read in inputs if "corpus" in read}
    sets = {Path(read["dev"].path) for read in inputs if "dev" in read}
    trained_on = [request.called.corpus(name) for name in corpora]
    chosen_by = [
        f"held-out text of {request.called.corpus(path.parent.name)}"
        if path.stem == "dev"
        else request.called.dataset(path.stem)
        for path in sets
    ]
    one, other = (f" on\n{names[0]}" if len(names) == 1 else "" for names in (trained_on, chosen_by))
    return one, other


def _scale_loss(axes: Axes, loss: Floats) -> str:
    """A logarithmic axis where the loss falls far, else one that begins at 0; what its label says of that."""
    if loss.min() <= 0 or loss.max() <= _LOG_FROM * loss.min():
        axes.set_ylim(min(0, loss.min()), None)
        return ""
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    return ", log scale"


# The threshold of 3R

THRESHOLD_METRICS = {"threshold": "threshold c", "reduced_dimensions": "dimensions below c"}
"""Metrics of a run, and the labels of their axes."""
_MOST_POINTS = 200  # of a line; more than a figure of this width shows
_ROW_INCHES = 1.4
_A_LINE_IS = (
    "A line is one seed: where a threshold begins is drawn at random, so a mean over seeds is no path."
)


def paths(metrics: Iterable[RunTable]) -> pa.Table:
    """The points to draw; runs without a threshold have none."""
    parts = [_path(history, metric) for history in metrics for metric in THRESHOLD_METRICS]
    return pa.concat_tables([CURVES.empty_table(), *parts])


def _path(history: RunTable, metric: str) -> pa.Table:
    table = history.table.filter(pc.equal(history.table["metric"], metric))
    rows = np.unique(np.linspace(0, len(table) - 1, min(_MOST_POINTS, len(table))).astype(np.int64))
    table = table.take(pa.array(rows))
    return _curve(history, metric, table["step"].cast(pa.float64()), table["value"])


def draw_thresholds(points: pa.Table, request: Request[ThresholdPath]) -> Figure:
    """Draw the paths: a row of panels for each run, a line for each seed."""
    runs, seeds = (list(dict.fromkeys(points[column].to_pylist())) for column in ("run", "seed"))
    if not runs:
        return request.empty("No run of this experiment has a threshold.")
    names = short_names(runs, request.called)
    notes = [f"{_A_LINE_IS} {_what_diamonds_are(points)}".strip(), *names.footnotes]
    height = max(_ROW_INCHES, _NAME_INCHES * len(seeds) + 0.6)
    figure = request.new_figure(height * len(runs), notes)
    panels = figure.subplots(len(runs), 2, squeeze=False, sharex=True, sharey="col")
    for across, run in zip(panels, runs, strict=True):
        _draw_run(across, points, run, seeds)
        across[0].set_title(names.short[run] if len(runs) > 1 else "")
        for axes, label in zip(across, THRESHOLD_METRICS.values(), strict=True):
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
    for axes, metric in zip(across, THRESHOLD_METRICS, strict=True):
        for number, seed in enumerate(seeds):
            own = points.filter(
                (pc.field("metric") == metric) & (pc.field("run") == run) & (pc.field("seed") == seed)
            )
            if len(own):
                look = line_look(number) | (_SINGLE if len(own) == 1 else {})
                axes.plot(own["step"].to_numpy(), own["value"].to_numpy(), **look, label=f"seed {seed}")


KINDS = {
    "learning_curves": FigureKind(
        columns=CURVES,
        title="Training loss and development score: {title}",
        description="Lines over optimiser steps, one per run: the training loss above, the development score below.",
        points=lambda request: curves(
            run_tables(request.inputs["histories"], HISTORY), request.config.loss_blocks
        ),
        draw=draw_loss_and_score,
    ),
    "threshold_path": FigureKind(
        columns=CURVES,
        title="Threshold of redundant dimensions: {title}",
        description=(
            "Lines over optimiser steps, a row per run, a line per seed: threshold c, and dimensions below it."
        ),
        points=lambda request: paths(run_tables(request.inputs["metrics"], METRICS)),
        draw=draw_thresholds,
    ),
}
