"""Learning curves: training loss and development score over optimiser steps, a line per run."""

import math
from collections.abc import Iterable, Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from numpy.typing import NDArray
from pydantic import Field

from workflow_scripts.config import Slice
from workflow_scripts.reporting.records import RunTable
from workflow_scripts.reporting.style import (
    FigureStyle,
    Names,
    empty_panel,
    label_ends,
    line_look,
    new_figure,
    short_names,
)
from workflow_scripts.schemas import LEARNING_CURVES

Floats = NDArray[np.float64]

TITLE = "Training loss and development score"
DESCRIPTION = "Lines over optimiser steps, one per run: the training loss above, the development score below."

_LOG_FROM = 20.0  # a loss that falls by more than this factor is drawn on a logarithmic axis
_PANEL_INCHES = 1.9
_SEEDS_UP_TO = 6  # runs; with more, a line per seed hides the rest
_NAME_INCHES = 0.145


class Config(Slice):
    """How curves are drawn."""

    loss_blocks: int = Field(gt=1, description="The loss is averaged over so many equal blocks of steps.")


def points(histories: Iterable[RunTable], config: Config) -> pa.Table:
    """The points to draw, no more of them than a figure shows.

    Args:
        histories: Columns of ``schemas.HISTORY``.
        config: Into how many points a run's losses are averaged.

    Returns:
        Columns of ``schemas.LEARNING_CURVES``.
    """
    parts = [_points(history, config.loss_blocks) for history in histories]
    return pa.concat_tables([LEARNING_CURVES.empty_table(), *parts])


def _points(history: RunTable, blocks: int) -> pa.Table:
    step = history.table["step"].to_numpy().astype(np.float64)
    loss = history.table["loss"].to_numpy()
    count = min(blocks, len(step))
    evaluated = history.table.filter(pc.is_valid(history.table["dev_score"]))
    values = {
        "loss": (_block_means(step, count), _block_means(loss, count)),
        "dev_score": (evaluated["step"].to_numpy().astype(np.float64), evaluated["dev_score"].to_numpy()),
    }
    return pa.concat_tables(
        pa.table(
            [
                pa.array([history.run] * len(steps), pa.string()),
                pa.array([history.seed] * len(steps), pa.int32()),
                pa.array([quantity] * len(steps), pa.string()),
                pa.array(steps, pa.float64()),
                pa.array(value, pa.float64()),
            ],
            schema=LEARNING_CURVES,
        )
        for quantity, (steps, value) in values.items()
    )


def _block_means(values: Floats, count: int) -> Floats:
    """Means of ``count`` consecutive blocks whose lengths differ by one at most."""
    return np.array([block.mean() for block in np.array_split(values, count)] if count else [])


def draw(points: pa.Table, style: FigureStyle, title: str, footnotes: Sequence[str]) -> Figure:
    """Draw the curves: a thick line per run for the mean over its seeds, a thin one for each seed."""
    runs = list(dict.fromkeys(points["run"].to_pylist()))
    if not runs:
        figure = new_figure(style, 1, title, footnotes)
        empty_panel(figure, "No run of this experiment is trained.")
        return figure
    names = short_names(runs)
    height = max(_PANEL_INCHES, _NAME_INCHES * len(runs))
    figure = new_figure(style, 2 * height, title, [_how_drawn(points), *names.footnotes, *footnotes])
    above, below = figure.subplots(2, 1, sharex=True)
    ends = {
        axes: draw_quantity(axes, points, quantity, names)
        for axes, quantity in ((above, "loss"), (below, "dev_score"))
    }
    above.set_ylabel("training loss\n(as its method defines it)")
    below.set_ylabel("development score\n(Spearman, \N{MINUS SIGN}1 to 1)")
    below.set_xlabel("optimiser steps")
    below.set_xlim(0, None)
    below.margins(x=0)
    _scale_loss(above, points.filter(pc.equal(points["quantity"], "loss"))["value"].to_numpy())
    figure.align_ylabels()
    for axes, lines in ends.items():
        axes.grid(axis="y")
        label_ends(axes, lines)
    return figure


def how_lines_are_drawn(points: pa.Table) -> str:
    """What thick and thin lines are."""
    seeds = len(pc.unique(points["seed"]))
    if seeds > 1 and len(pc.unique(points["run"])) <= _SEEDS_UP_TO:
        return f"Thick lines: mean over {seeds} seeds; thin lines: single seeds. "
    return f"Lines: mean over {seeds} seeds. " if seeds > 1 else "One seed. "


def _how_drawn(points: pa.Table) -> str:
    lines = how_lines_are_drawn(points)
    loss = points.filter(pc.equal(points["quantity"], "loss"))
    steps = np.unique(loss.filter(pc.equal(loss["run"], loss["run"][0]))["step"].to_numpy())
    block = float(np.diff(steps).mean()) if len(steps) > 1 else 1.0
    if block == 1:
        return f"{lines}Loss: every step."
    sizes = dict.fromkeys((math.floor(block), math.ceil(block)))
    return f"{lines}Loss: means of blocks of {' to '.join(map(str, sizes))} steps."


def _scale_loss(axes: Axes, loss: Floats) -> None:
    """A logarithmic axis where the loss falls far, else one that begins at 0."""
    if loss.min() <= 0 or loss.max() <= _LOG_FROM * loss.min():
        axes.set_ylim(min(0, loss.min()), None)
        return
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("training loss, log scale\n(as its method defines it)")


def draw_quantity(axes: Axes, points: pa.Table, quantity: str, names: Names) -> list[tuple[str, float, str]]:
    """Draw one panel; returns name, last value and colour of each line."""
    ends = []
    for index, (run, name) in enumerate(names.short.items()):
        chosen = points.filter(pc.and_(pc.equal(points["quantity"], quantity), pc.equal(points["run"], run)))
        look = line_look(index)
        marker = {"marker": "o", "markersize": 2.5} if quantity == "dev_score" else {}
        seeds = pc.unique(chosen["seed"]).to_pylist()
        for seed in seeds if len(seeds) > 1 and len(names.short) <= _SEEDS_UP_TO else []:
            of_seed = chosen.filter(pc.equal(chosen["seed"], seed))
            axes.plot(
                of_seed["step"].to_numpy(), of_seed["value"].to_numpy(), **look | {"lw": 0.7, "alpha": 0.5}
            )
        mean = (
            chosen.group_by("step", use_threads=False)
            .aggregate([("value", "mean"), ("value", "count")])
            .sort_by("step")
        )
        mean = mean.filter(pc.equal(mean["value_count"], len(seeds)))  # a mean over fewer seeds would jump
        if len(mean):
            axes.plot(mean["step"].to_numpy(), mean["value_mean"].to_numpy(), **look | marker)
            ends.append((name, mean["value_mean"][-1].as_py(), str(look["color"])))
    return ends
