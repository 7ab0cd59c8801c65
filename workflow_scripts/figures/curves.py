"""Lines: training losses and development scores over steps, 3R's threshold over steps, words by frequency.

Learning curves have one line per run, the mean over its seeds. The threshold c and the number of dimensions below it
have one line per seed (3R, Table 7). 3R prints the words at and around the peaks of their rates of change (its Table
5); they are drawn at their ranks.
"""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from pydantic import Field

from workflow_scripts.columns import HISTORY, METRICS, WORD_COUNTS
from workflow_scripts.config import Settings
from workflow_scripts.data.printed import read_printed
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.base import (
    COLOURS,
    Axes,
    Declaration,
    Drawn,
    Request,
    draw_lines,
    frame,
    line_look,
    log_scale,
    name_lines,
    short_names,
    upright,
)
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import RunTable, run_tables

_SEEDS_UP_TO = 6  # runs; with more of them, lines of single seeds would hide the means
_NAME_INCHES = 0.145
_COLUMNS = {"run": "str", "seed": "int", "metric": "str", "step": "float", "value": "float"}

# Training loss and development score

_LOG_FROM = 20.0  # a loss that falls by more than this factor gets a logarithmic axis
_LOSS_INCHES = 1.9
_HOW_DRAWN = (
    "Thick lines: means over seeds; thin lines: single seeds. The loss is averaged over equal blocks of steps. "
    "A diamond marks a metric that was measured at one step only."
)


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
        "one next to it is a single seed.\n\nLosses of different methods are different quantities: compare their "
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
    names = short_names(list(points["run"].unique()))
    height = max(_LOSS_INCHES, _NAME_INCHES * len(names.short))
    notes = [_HOW_DRAWN, *names.footnotes]
    figure, ((above,), (below,)) = request.new_figure(2 * height, notes, 2, sharex=True)
    loss, scores = (points[points["metric"] == metric] for metric in ("loss", "dev_score"))
    _draw_metric(above, loss, names.short)
    _draw_metric(below, scores, names.short, marker="o", markersize=2.5)
    score = upright("development score (Spearman)", height)
    below.set(xlabel="optimiser steps", ylabel=score, xlim=(0, None))
    least, largest = loss["value"].min(), loss["value"].max()
    if 0 < least < largest / _LOG_FROM:
        log_scale(above)
    else:
        above.set_ylim(min(0, least), None)
    above.set_ylabel(upright("training loss (of its method)", height))
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


# The threshold of 3R

_LABELS = {"threshold": "threshold c", "reduced_dimensions": "dimensions below c"}
"""Metrics of a run, and the labels of their axes."""
_MOST_POINTS = 200  # of a line; a figure of this width does not show more
_ROW_INCHES = 1.4
_ONE_SEED = "A line is one seed: where a threshold begins is drawn at random, so seeds are not averaged."


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
    names = short_names(list(runs))
    height = max(_ROW_INCHES, _NAME_INCHES * len(seeds) + 0.6)
    notes = [_ONE_SEED, *names.footnotes]
    figure, panels = request.new_figure(
        height * len(runs), notes, len(runs), len(_LABELS), sharex=True, sharey="col"
    )
    looks = {seed: line_look(number) | {"label": f"seed {seed}"} for number, seed in enumerate(seeds)}
    for across, run in zip(panels, runs, strict=True):
        across[0].set_title(names.short[run] if len(runs) > 1 else "")
        for axes, (metric, label) in zip(across, _LABELS.items(), strict=True):
            own = points[(points["run"] == run) & (points["metric"] == metric)]
            draw_lines(axes, own.assign(line=own["seed"]), "step", "value", looks)
            axes.margins(x=0)
            axes.set(ylabel=upright(label, height), xlim=(0, None), ylim=(0, None))
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


# Words by frequency

_WORDS_INCHES = 1.9


class WordFrequencies(Settings):
    """Settings of the word frequencies."""

    words: int = Field(gt=1, description="Number of words to draw, the most frequent first.")


@partial(
    Declaration,
    title="Words of the corpus by frequency: {title}",
    description="Number of occurrences and rate of change over the rank of a word, the paper's as points.",
    caption=(
        "Number of occurrences of the most frequent words of the corpus of {experiment}, and how much rarer each "
        "word is than the one before it, by rank. Points are the values that 3R prints in its Table 5."
    ),
    reads={
        "words": "<results>/corpora/{corpus}/words.parquet",
        "printed": "resources/published/three_r_table5.csv",
    },
    settings=WordFrequencies,
    block="grids.{experiment}.word_frequencies",
)
def word_frequencies(request: Request[WordFrequencies]) -> Drawn:
    """Draw counts above and rates of change below, as lines for the corpus and points for the paper."""
    points = with_printed(request)
    figure, ((above,), (below,)) = request.new_figure(2 * _WORDS_INCHES, [], 2, sharex=True)
    for axes, name, label in ((above, "count", "occurrences"), (below, "change_rate", "rate of change")):
        axes.plot(points["rank"], points[name], color=COLOURS[0], label="here")
        axes.plot(points["rank"], points[f"printed_{name}"], "o", color=COLOURS[1], label="3R, Table 5")
        axes.set_ylabel(label)
        axes.grid(axis="y")
    log_scale(above)
    above.legend()
    below.set_xlabel("rank of the word")
    below.margins(x=0)
    return Drawn(points, figure)


def with_printed(request: Request[WordFrequencies]) -> pd.DataFrame:
    """The most frequent words from rank 1, joined with the paper's legible values of the same ranks.

    Raises:
        ConfigError: if the grid's runs train on several corpora.
    """
    (words, *others), (printed,) = request.inputs["words"], request.inputs["printed"]
    if others:
        corpora = " and ".join(path.parent.name for path in (words, *others))
        raise ConfigError(
            f"word_frequencies: runs of the grid train on {corpora}, and the figure shows one corpus. "
            "Leave word_frequencies out, or make a grid for each corpus."
        )
    numbers = pd.DataFrame(read_printed(printed.read_bytes(), printed.as_posix()))
    table = numbers.pivot_table("value", ["group", "row"], "column").reset_index()
    theirs = table[["group", "row", "frequency", "changing rate"]].astype(
        {"group": int, "frequency": "Int64"}
    )
    theirs.columns = ["rank", "printed_word", "printed_count", "printed_change_rate"]
    ours = read_table(words, WORD_COUNTS, ["rank", "word", "count", "change_rate"]).to_pandas()
    return ours.head(request.config.words).merge(theirs, how="left", on="rank")
