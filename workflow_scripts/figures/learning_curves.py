"""Learning curves: training loss and development score over optimiser steps, a line per run."""

import math
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter
from numpy.typing import NDArray

from workflow_scripts.columns.training import HISTORY
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.curves import CURVES, draw_metric, how_lines_are_drawn
from workflow_scripts.figures.style import short_names
from workflow_scripts.reporting.records import RunTable, record_of, run_tables
from workflow_scripts.settings.figures.learning_curves import Config

COLUMNS = CURVES
"""``loss`` is the mean of a block of steps at its middle, ``dev_score`` as measured."""
TITLE = "Training loss and development score: {title}"
DESCRIPTION = "Lines over optimiser steps, one per run: the training loss above, the development score below."

_LOG_FROM = 20.0  # a loss that falls by more than this factor is drawn on a logarithmic axis
_PANEL_INCHES = 1.9
_NAME_INCHES = 0.145

Floats = NDArray[np.float64]


def points(request: Request[Config]) -> pa.Table:
    """Points of all runs and seeds."""
    return curves(run_tables(request.inputs["histories"], HISTORY), request.config)


def curves(histories: Iterable[RunTable], config: Config) -> pa.Table:
    """The points to draw, no more of them than a figure shows.

    Args:
        histories: Columns of ``columns.training.HISTORY``.
        config: Into how many points a run's losses are averaged.

    Returns:
        Columns of ``COLUMNS``.
    """
    parts = [_points(history, config.loss_blocks) for history in histories]
    return pa.concat_tables([COLUMNS.empty_table(), *parts])


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
                pa.array([metric] * len(steps), pa.string()),
                pa.array(steps, pa.float64()),
                pa.array(value, pa.float64()),
            ],
            schema=COLUMNS,
        )
        for metric, (steps, value) in values.items()
    )


def _block_means(values: Floats, count: int) -> Floats:
    """Means of ``count`` consecutive blocks whose lengths differ by one at most."""
    return np.array([block.mean() for block in np.array_split(values, count)] if count else [])


def draw(points: pa.Table, request: Request[Config]) -> Figure:
    """Draw the curves: a thick line per run for the mean over its seeds, a thin one for each seed."""
    runs = list(dict.fromkeys(points["run"].to_pylist()))
    if not runs:
        return request.empty("No run of this experiment is trained.")
    names = short_names(runs, request.called)
    height = max(_PANEL_INCHES, _NAME_INCHES * len(runs))
    figure = request.new_figure(2 * height, [_how_drawn(points), *names.footnotes])
    above, below = figure.subplots(2, 1, sharex=True)
    for axes, metric in ((above, "loss"), (below, "dev_score")):
        draw_metric(axes, points, metric, names)
        axes.grid(axis="y")
    trained_on, chosen_by = _data(request)
    above.set_ylabel(f"training loss{trained_on}\n(of its method)")
    below.set_ylabel(f"development score\n(Spearman{chosen_by})")
    below.set_xlabel("optimiser steps")
    below.set_xlim(0, None)
    below.margins(x=0)
    if _scale_loss(above, points.filter(pc.equal(points["metric"], "loss"))["value"].to_numpy()):
        above.set_ylabel(f"training loss{trained_on}\n(of its method, log scale)")
    figure.align_ylabels()
    return figure


def _how_drawn(points: pa.Table) -> str:
    lines = how_lines_are_drawn(points)
    loss = points.filter(pc.equal(points["metric"], "loss"))
    ends = loss.group_by(["run", "seed"]).aggregate([("step", "min"), ("step", "max"), ("step", "count")])
    first, last, count = (ends[f"step_{end}"].to_numpy() for end in ("min", "max", "count"))
    blocks = np.where(count > 1, (last - first) / np.maximum(count - 1, 1), 1)
    if (blocks == 1).all():
        return f"{lines}Loss: every step."
    sizes = dict.fromkeys((math.floor(blocks.min()), math.ceil(blocks.max())))
    return f"{lines}Loss: means of blocks of {' to '.join(map(str, sizes))} steps."


def _data(request: Request[Config]) -> tuple[str, str]:
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
    return _one(" on\n", trained_on), _one(" on\n", chosen_by)


def _one(before: str, names: Sequence[str]) -> str:
    return f"{before}{names[0]}" if len(names) == 1 else ""


def _scale_loss(axes: Axes, loss: Floats) -> bool:
    """A logarithmic axis where the loss falls far, else one that begins at 0; whether it is logarithmic."""
    if loss.min() <= 0 or loss.max() <= _LOG_FROM * loss.min():
        axes.set_ylim(min(0, loss.min()), None)
        return False
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    return True
