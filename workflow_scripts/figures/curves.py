"""Figures of lines: training losses and development scores over steps, 3R's threshold over steps, words by frequency.

Learning curves have one line per run, the mean over its seeds. The threshold c and the number of dimensions below it
have one line per seed (3R, Table 7). 3R prints the words at and around the peaks of their rates of change (its Table
5); they are drawn at their ranks.
"""

from collections.abc import Iterable
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from workflow_scripts.columns import HISTORY, METRICS, WORD_COUNTS
from workflow_scripts.data.printed import read_printed
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.base import (
    Declaration,
    Drawn,
    Figure,
    FigureRequest,
    frame,
    log_scale,
    new_figure,
    panel_size,
    side_by_side,
)
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import RunTable, run_tables
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.figures import LearningCurves, WordFrequencies

_COLUMNS = {"run": "str", "seed": "int", "metric": "str", "step": "float", "value": "float"}
_LINES: dict[str, Any] = {
    "x": "step", "y": "value", "kind": "line", "marker": "o", "markersize": 3, "markeredgewidth": 0,
}  # fmt: skip

# Training loss and development score

_PANELS = {"loss": ("Training loss", "loss"), "dev_score": ("Development score", "Spearman correlation")}
"""Title and vertical axis of each metric's panel."""
HOW_DRAWN = (
    "Lines: means over seeds; shadows: from the lowest seed to the highest. The loss is averaged over equal blocks of "
    "steps."
)


@partial(
    Declaration,
    title="Training loss and development score: {title}",
    description="Lines over optimiser steps, one per run: the training loss above, the development score below.",
    caption=(
        "Training loss and development score of every trained run of {experiment} over optimiser steps. "
        "If a training has many steps, its loss is averaged over equal blocks of steps. A line is the "
        "mean over seeds, and its shadow ranges from the lowest seed to the highest.\n\nLosses of "
        "different methods are different quantities: compare their shapes, not their heights. A run "
        "keeps the weights with its best development score, which need not be at the end of its line."
    ),
    reads={"histories": "<results>/runs/{run}/seed{seed}/history.parquet"},
    settings=LearningCurves,
    of_run=lambda run: run.corpus is not None,
)
def learning_curves(request: FigureRequest[LearningCurves]) -> Drawn:
    """Draw training losses above and development scores below, a line per run.

    The points are values of two metrics: ``loss``, the mean of a block of steps at its middle, and ``dev_score``.
    """
    points = curves(run_tables(request.inputs["histories"], HISTORY), request.config.loss_blocks)
    return Drawn(points, draw_curves(points), [HOW_DRAWN])


def draw_curves(points: pd.DataFrame) -> Figure:
    """Draw the points of ``curves``, a panel per metric, a line per run."""
    import seaborn

    grid = seaborn.relplot(
        points, **_LINES, row="metric", hue="run", style="run", errorbar=("pi", 100), **panel_size(1, 2),
        facet_kws={"sharey": False, "legend_out": False},
    )  # fmt: skip
    grid.set_xlabels("optimiser steps")
    for metric, axes in grid.axes_dict.items():
        title, measured = _PANELS[metric]
        axes.set(title=title, ylabel=measured)
    if (points["value"] > 0).all():
        log_scale(grid.axes_dict["loss"])
    picture: Figure = grid.figure
    return picture


def curves(histories: Iterable[RunTable], loss_blocks: int) -> pd.DataFrame:
    """Return mean losses of at most ``loss_blocks`` blocks of steps, and all development scores."""
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


# The threshold of 3R

_METRICS = {"threshold": "threshold c", "reduced_dimensions": "dimensions below c"}
"""Vertical axis of each metric's panel."""
_MOST_POINTS = 200  # maximum for a line; a figure of this width shows no more detail
_ONE_SEED = "A line is one seed: a threshold starts at a random value, so seeds are not averaged."


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
    of_run=lambda run: run.method.module == "three_r",
)
def threshold_path(request: FigureRequest[Settings]) -> Drawn:
    """Draw threshold c and the dimensions below it, a row of panels for each run, a line for each seed."""
    import seaborn

    points = paths(run_tables(request.inputs["metrics"], METRICS))
    named = points.assign(panel=[*zip(points["run"], points["metric"], strict=True)]).astype({"seed": "str"})
    columns = side_by_side(2, 2)
    grid = seaborn.relplot(
        named, **_LINES, col="panel", col_wrap=columns, hue="seed", **panel_size(columns, 1.6),
        facet_kws={"sharey": False, "legend_out": False},
    )  # fmt: skip
    grid.set_xlabels("optimiser steps")
    for (run, metric), axes in grid.axes_dict.items():
        axes.set(title=run, ylabel=_METRICS[metric])
    return Drawn(points, grid.figure, [_ONE_SEED])


def paths(metrics: Iterable[RunTable]) -> pd.DataFrame:
    """Return thresholds and dimensions at no more than ``_MOST_POINTS`` steps, for runs with a threshold."""
    rows = []
    for run, seed, table in metrics:
        for metric in _METRICS:
            path = table.filter(pc.field("metric") == metric).to_pylist()
            steps = np.linspace(0, len(path) - 1, min(_MOST_POINTS, len(path))).astype(int)
            rows += [(run, seed, metric, path[i]["step"], path[i]["value"]) for i in np.unique(steps)]
    return frame(rows, **_COLUMNS)


# Words by frequency


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
)
def word_frequencies(request: FigureRequest[WordFrequencies]) -> Drawn:
    """Draw counts above and rates of change below, as lines for the corpus and points for the paper."""
    points = with_printed(request)
    figure, ((above,), (below,)) = new_figure(3.8, 2, sharex=True)
    for axes, name, label in ((above, "count", "occurrences"), (below, "change_rate", "rate of change")):
        axes.plot(points["rank"], points[name], label="here")
        axes.plot(points["rank"], points[f"printed_{name}"], "o", label="3R, Table 5")
        axes.set_ylabel(label)
    log_scale(above)
    above.legend()
    below.set_xlabel("rank of the word")
    return Drawn(points, figure)


def with_printed(request: FigureRequest[WordFrequencies]) -> pd.DataFrame:
    """Return the most frequent words from rank 1, joined with the paper's legible values of the same ranks.

    Raises:
        ConfigError: if the grid's runs train on several corpora.
    """
    (words, *others), (printed,) = request.inputs["words"], request.inputs["printed"]
    if others:
        corpora = " and ".join(path.parent.name for path in (words, *others))
        raise ConfigError(
            f"word_frequencies: runs of the grid train on {corpora}, but the figure shows only one "
            "corpus. Remove word_frequencies, or make a grid for each corpus."
        )
    numbers = pd.DataFrame(read_printed(printed.read_bytes(), printed.as_posix()))
    table = numbers.pivot_table("value", ["group", "row"], "column").reset_index()
    theirs = table[["group", "row", "frequency", "changing rate"]].astype(
        {"group": int, "frequency": "Int64"}
    )
    theirs.columns = ["rank", "printed_word", "printed_count", "printed_change_rate"]
    ours = read_table(words, WORD_COUNTS, ["rank", "word", "count", "change_rate"]).to_pandas()
    return ours.head(request.config.words).merge(theirs, how="left", on="rank")
