"""Lines over optimiser steps, one per run, which several figures draw."""

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes

from workflow_scripts.figures.style import Names, line_look, name_lines

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
SINGLE = {"marker": "D", "markersize": 4.5, "linestyle": "none"}
"""The look of what was measured once, of which a line would not be seen."""


def how_lines_are_drawn(points: pa.Table) -> str:
    """What thick and thin lines are."""
    seeds = len(pc.unique(points["seed"]))
    if seeds > 1 and len(pc.unique(points["run"])) <= _SEEDS_UP_TO:
        return f"Thick lines: mean over {seeds} seeds; thin lines: single seeds. {what_diamonds_are(points)}"
    return (f"Lines: mean over {seeds} seeds. " if seeds > 1 else "One seed. ") + what_diamonds_are(points)


def what_diamonds_are(points: pa.Table) -> str:
    """What the marks of values are that were measured once, where there are some."""
    measured = points.select(["run", "metric", "step"]).group_by(["run", "metric", "step"]).aggregate([])
    counts = measured.group_by(["run", "metric"]).aggregate([("step", "count")])["step_count"]
    return "Diamonds: measured at one step only. " if 1 in counts.to_pylist() else ""


def draw_metric(axes: Axes, points: pa.Table, metric: str, names: Names) -> None:
    """Draw one panel, a line for each run with its name."""
    for index, (run, name) in enumerate(names.short.items()):
        chosen = points.filter(pc.and_(pc.equal(points["metric"], metric), pc.equal(points["run"], run)))
        look = line_look(index)
        single = len(pc.unique(chosen["step"])) == 1
        marker = {"marker": "o", "markersize": 2.5} if metric == "dev_score" else {}
        marker = SINGLE if single else marker
        seeds = pc.unique(chosen["seed"]).to_pylist()
        for seed in seeds if len(seeds) > 1 and len(names.short) <= _SEEDS_UP_TO else []:
            of_seed = chosen.filter(pc.equal(chosen["seed"], seed))
            axes.plot(
                of_seed["step"].to_numpy(),
                of_seed["value"].to_numpy(),
                **look | {"lw": 0.7, "alpha": 0.5} | (SINGLE | {"markersize": 2.5} if single else {}),
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
