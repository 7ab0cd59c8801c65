"""Lines over optimiser steps: training losses and development scores of runs, and the paths of 3R's threshold.

Learning curves have one line per run, the mean over its seeds. The threshold c and the number of dimensions below it
have one line per seed (3R, Table 7).
"""

import math
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from pydantic import Field

from workflow_scripts.columns.training import HISTORY, METRICS
from workflow_scripts.config import Settings
from workflow_scripts.figures.base import Axes, Declaration, Drawn, Request, frame
from workflow_scripts.figures.style import draw_lines, line_look, log_scale, name_lines, short_names, upright
from workflow_scripts.reporting.records import RunTable, record_of, run_tables

_SEEDS_UP_TO = 6  # runs; with more of them, lines of single seeds would hide the means
_NAME_INCHES = 0.145
_COLUMNS = {"run": "str", "seed": "int", "metric": "str", "step": "float", "value": "float"}


def _diamonds_note(points: pd.DataFrame) -> str:
    """A note on the marks of metrics that were measured at one step; empty if there are none."""
    steps = points.drop_duplicates(["run", "metric", "step"]).groupby(["run", "metric"]).size()
    return "Diamonds: measured at one step only. " if (steps == 1).any() else ""


# Training loss and development score

_LOG_FROM = 20.0  # a loss that falls by more than this factor gets a logarithmic axis
_LOSS_INCHES = 1.9


class LearningCurves(Settings):
    """Settings of the learning curves."""

    loss_blocks: int = Field(
        gt=1, description="Number of equal blocks of steps; the loss is averaged over each."
    )


@partial(
    Declaration,
    title="Training loss and development score: {title}",
    description="Lines over optimiser steps, one per run: the training loss above, the development score below.",
    caption=(
        "Training loss and development score of every trained run of {experiment} over optimiser steps. Where "
        "steps are many, the loss is averaged over equal blocks of them; a line is the mean over seeds, and a thin "
        "one beside it is a single seed.\n\nLosses of different methods are different quantities: compare their "
        "shapes, not their heights. A run keeps the weights of its best development score, so the end of a line "
        "need not be what was tested."
    ),
    reads={"histories": "<results>/runs/{run}/seed{seed}/history.parquet"},
    settings=LearningCurves,
    block="report.learning_curves",
    trained=True,
)
def learning_curves(request: Request[LearningCurves]) -> Drawn:
    """Draw training losses above and development scores below: per run a thick line, its mean, and one thin per seed.

    The points are values of two metrics: ``loss``, the mean of a block of steps at its middle, and ``dev_score``.
    """
    points = curves(run_tables(request.inputs["histories"], HISTORY), request.config.loss_blocks)
    runs = list(points["run"].unique())
    if not runs:
        return Drawn(points, request.empty("No run of this experiment is trained."))
    names = short_names(runs, request.called)
    height = max(_LOSS_INCHES, _NAME_INCHES * len(runs))
    figure = request.new_figure(2 * height, [_how_drawn(points), *names.footnotes])
    above, below = figure.subplots(2, 1, sharex=True)
    loss, scores = (points[points["metric"] == metric] for metric in ("loss", "dev_score"))
    _draw_metric(above, loss, names.short)
    _draw_metric(below, scores, names.short, marker="o", markersize=2.5)
    trained_on, chosen_by = _data(request)
    below.set_ylabel(f"development score\n(Spearman{chosen_by})")
    below.set_xlabel("optimiser steps")
    below.set_xlim(0, None)
    below.margins(x=0)
    above.set_ylabel(f"training loss{trained_on}\n(of its method{_scale_loss(above, loss['value'])})")
    figure.align_ylabels()
    return Drawn(points, figure)


def curves(histories: Iterable[RunTable], loss_blocks: int) -> pd.DataFrame:
    """Mean losses of at most ``loss_blocks`` blocks of steps, and all development scores."""
    rows: list[tuple[Any, ...]] = []
    for run, seed, table in histories:
        values = table.select(["step", "loss", "dev_score"]).to_pandas()
        blocks = np.array_split(values[["step", "loss"]].to_numpy(), max(1, min(loss_blocks, len(values))))
        rows += [(run, seed, "loss", *block.mean(axis=0)) for block in blocks if len(block)]
        scored = values.dropna(subset="dev_score")
        rows += [
            (run, seed, "dev_score", *pair) for pair in zip(scored["step"], scored["dev_score"], strict=True)
        ]
    return frame(rows, **_COLUMNS)


def _draw_metric(axes: Axes, points: pd.DataFrame, names: Mapping[str, str], **marker: Any) -> None:
    """Draw one panel: means at the steps where all seeds were measured, and single seeds if there are few runs."""
    looks = {name: line_look(number) for number, name in enumerate(names.values())}
    points = points.assign(line=points["run"].map(names))
    seeds = points.groupby("line")["seed"].nunique()
    if len(looks) <= _SEEDS_UP_TO:
        for _, own in points[points["line"].map(seeds) > 1].groupby("seed"):
            draw_lines(axes, own, "step", "value", looks, lw=0.7, alpha=0.5, label=None, markersize=2.5)
    means = points.groupby(["line", "step"])["value"].agg(["mean", "count"]).reset_index()
    complete = means[means["count"] == means["line"].map(seeds)]  # a mean over fewer seeds would jump
    draw_lines(axes, complete, "step", "mean", looks, **marker)
    name_lines(axes)
    axes.grid(axis="y")


def _how_drawn(points: pd.DataFrame) -> str:
    """A note on thick and thin lines, and on the blocks over which the loss was averaged."""
    seeds, lines = points["seed"].nunique(), "One seed. "
    if seeds > 1 and points["run"].nunique() <= _SEEDS_UP_TO:
        lines = f"Thick lines: mean over {seeds} seeds; thin lines: single seeds. "
    elif seeds > 1:
        lines = f"Lines: mean over {seeds} seeds. "
    loss = points[points["metric"] == "loss"].groupby(["run", "seed"])["step"].agg(["min", "max", "count"])
    blocks = ((loss["max"] - loss["min"]) / (loss["count"] - 1).clip(lower=1)).where(loss["count"] > 1, 1)
    sizes = dict.fromkeys((math.floor(blocks.min()), math.ceil(blocks.max())))
    every = "every step" if [*sizes] == [1] else f"means of blocks of {' to '.join(map(str, sizes))} steps"
    return f"{lines}{_diamonds_note(points)}Loss: {every}."


def _data(request: Request[LearningCurves]) -> tuple[str, str]:
    """Suffixes of the labels: the corpus and the development set of the runs, each empty if the runs differ in it."""
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
    corpus, development = (f" on\n{names[0]}" if len(names) == 1 else "" for names in (trained_on, chosen_by))
    return corpus, development


def _scale_loss(axes: Axes, loss: pd.Series) -> str:
    """Make the loss's axis logarithmic if the loss falls far, else begin it at 0; returns a suffix for its label."""
    if loss.min() <= 0 or loss.max() <= _LOG_FROM * loss.min():
        axes.set_ylim(min(0, loss.min()), None)
        return ""
    log_scale(axes)
    return ", log scale"


# The threshold of 3R

_LABELS = {"threshold": "threshold c", "reduced_dimensions": "dimensions below c"}
"""Metrics of a run, and the labels of their axes."""
_MOST_POINTS = 200  # of a line; a figure of this width does not show more
_ROW_INCHES = 1.4


@partial(
    Declaration,
    title="Threshold of redundant dimensions: {title}",
    description="Lines over optimiser steps, a row per run, a line per seed: threshold c, and dimensions below it.",
    caption=(
        "Learned threshold c of redundant dimensions in every run of {experiment} that has one, and the number of "
        "dimensions whose deviation in a batch is below it, over optimiser steps, a line for each seed. 3R "
        "reports that c ends at 0.273 from every start (its Table 7)."
    ),
    reads={"metrics": "<results>/runs/{run}/seed{seed}/metrics.parquet"},
    method={"module": "three_r"},
)
def threshold_path(request: Request[Settings]) -> Drawn:
    """Draw threshold c and the dimensions below it, a row of panels for each run, a line for each seed."""
    points = paths(run_tables(request.inputs["metrics"], METRICS))
    runs, seeds = points["run"].unique(), points["seed"].unique()
    if not len(runs):
        return Drawn(points, request.empty("No run of this experiment has a threshold."))
    names = short_names(list(runs), request.called)
    note = (
        "A line is one seed: where a threshold begins is drawn at random, so a mean over seeds is no path. "
    )
    height = max(_ROW_INCHES, _NAME_INCHES * len(seeds) + 0.6)
    figure = request.new_figure(height * len(runs), [note + _diamonds_note(points), *names.footnotes])
    panels = figure.subplots(len(runs), len(_LABELS), squeeze=False, sharex=True, sharey="col")
    looks = {seed: line_look(number) | {"label": f"seed {seed}"} for number, seed in enumerate(seeds)}
    for across, run in zip(panels, runs, strict=True):
        across[0].set_title(names.short[run] if len(runs) > 1 else "")
        for axes, (metric, label) in zip(across, _LABELS.items(), strict=True):
            own = points[(points["run"] == run) & (points["metric"] == metric)]
            draw_lines(axes, own.assign(line=own["seed"]), "step", "value", looks)
            axes.set_ylabel(upright(label, height))
            axes.margins(x=0)
            axes.set(xlim=(0, None), ylim=(0, None))
            axes.grid(axis="y")
        name_lines(across[1])
    for axes in panels[-1]:
        axes.set_xlabel("optimiser steps")
    return Drawn(points, figure)


def paths(metrics: Iterable[RunTable]) -> pd.DataFrame:
    """Thresholds and dimensions at no more than ``_MOST_POINTS`` steps; no rows of runs without a threshold."""
    rows = []
    for run, seed, table in metrics:
        for metric in _LABELS:
            path = table.filter(pc.field("metric") == metric).to_pylist()
            steps = np.linspace(0, len(path) - 1, min(_MOST_POINTS, len(path))).astype(int)
            rows += [(run, seed, metric, path[i]["step"], path[i]["value"]) for i in np.unique(steps)]
    return frame(rows, **_COLUMNS)
