"""Densities of cosines in groups of equal judgement, a panel per run.

Good encoders order the groups: pairs judged more alike have higher cosines. The same picture is figure 8
of S2Sent and figure 5 of JTCSE. Densities are Gaussian kernels of one width for all, reflected at -1 and 1,
so that each integrates to 1 over the cosines that there are.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.base import FigureKind, Request
from workflow_scripts.figures.style import COLOURS, INK, heading, short_names
from workflow_scripts.reporting.records import RunTable, run_tables
from workflow_scripts.settings.figures import CosineDensity

COLUMNS = pa.schema(
    [
        ("run", pa.string()),
        ("lower", pa.float64()),
        ("upper", pa.float64()),
        ("pairs", pa.int64()),
        ("seeds", pa.int32()),
        ("cosine", pa.float64()),
        ("density", pa.float64()),
    ]
)
"""Density of the cosines of the pairs whose judgement lies above ``lower`` and up to ``upper``, all seeds pooled;
``pairs`` counts them once. A group without pairs has one row with a null cosine and density."""

_GRID = np.linspace(-1, 1, 201)
_VISIBLE = 0.005  # share of the highest density; nothing lower is drawn
_OVERLAP = 1.5  # height of the highest density over the distance of two groups
_GROUP_INCHES = 0.34
_COLUMNS = 2
_HOW_DRAWN = "All panels have one scale. Ticks: medians."

Floats = NDArray[np.float64]
Group = tuple[float, float]


def densities(similarities: Iterable[RunTable], config: CosineDensity) -> pa.Table:
    """The curves to draw, seeds pooled.

    Args:
        similarities: Cosines and judgements, columns of ``columns.scores.SIMILARITIES``.
        config: Which pairs, in which groups.

    Returns:
        Columns of ``COLUMNS``.

    Raises:
        ConfigError: if a judgement lies outside the edges.
    """
    pooled: dict[str, dict[int, pa.Table]] = {}
    for run, seed, table in similarities:
        chosen = table.filter(pc.equal(table["task"], config.task))
        if len(chosen):
            pooled.setdefault(run, {})[seed] = chosen
    rows = [row for run, seeds in pooled.items() for row in _rows_of_run(run, list(seeds.values()), config)]
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def _rows_of_run(run: str, seeds: Sequence[pa.Table], config: CosineDensity) -> Iterable[dict[str, Any]]:
    table = pa.concat_tables(seeds)
    gold, cosine = table["gold"].to_numpy(), table["cosine"].to_numpy()
    if gold.min() < config.edges[0] or gold.max() > config.edges[-1]:
        raise ConfigError(
            f"report.cosine_density.edges: {config.edges}; judgements of {config.task} reach from "
            f"{gold.min():g} to {gold.max():g}. Widen the edges."
        )
    for number, (lower, upper) in enumerate(pairwise(config.edges)):
        inside = (gold > lower) & (gold <= upper) | ((number == 0) & (gold == lower))
        shared = {
            "run": run,
            "lower": lower,
            "upper": upper,
            "seeds": len(seeds),
            "pairs": int(inside.sum()) // len(seeds),
        }
        if not inside.any():
            yield shared
            continue
        for place, height in zip(_GRID, kernel_density(cosine[inside], _GRID, config.bandwidth), strict=True):
            yield shared | {"cosine": float(place), "density": float(height)}


def kernel_density(values_N: Floats, grid_G: Floats, bandwidth: float) -> Floats:
    """Density of ``values_N`` in [-1, 1] at ``grid_G``; kernels are reflected at both ends."""
    total = np.zeros_like(grid_G)
    for image in (grid_G, 2 - grid_G, -2 - grid_G):
        for block in np.array_split(values_N, max(1, len(values_N) // 4096)):
            total += np.exp(-0.5 * ((image[:, None] - block[None, :]) / bandwidth) ** 2).sum(axis=1)
    density: Floats = total / (len(values_N) * bandwidth * np.sqrt(2 * np.pi))
    return density


def draw(points: pa.Table, request: Request[CosineDensity]) -> Figure:
    """Draw a panel per run, in it one density above the other, all on one scale."""
    runs = list(dict.fromkeys(points["run"].to_pylist()))
    if not runs:
        return request.empty("No run of this experiment was scored on this task.")
    groups = sorted(set(zip(points["lower"].to_pylist(), points["upper"].to_pylist(), strict=True)))
    names = short_names(runs, request.called)
    columns = min(_COLUMNS, len(runs))
    lines = -(-len(runs) // columns)
    figure = request.new_figure(
        lines * (_GROUP_INCHES * (len(groups) + _OVERLAP) + 0.45) + 0.1, [_HOW_DRAWN, *names.footnotes]
    )
    panels = figure.subplots(lines, columns, sharex=True, sharey=True, squeeze=False)
    highest = pc.max(points["density"]).as_py()
    for number, axes in enumerate(panels.flat):
        if number >= len(runs):
            axes.set_axis_off()
            continue
        of_run = points.filter(pc.equal(points["run"], runs[number]))
        _draw_panel(axes, of_run, groups, _OVERLAP / highest)
        seeds = of_run["seeds"][0].as_py()
        name = f"{names.short[runs[number]]} ({'1 seed' if seeds == 1 else f'{seeds} seeds pooled'})"
        axes.set_title(heading(name, request.style, columns))
        if number + columns >= len(runs):
            axes.set_xlabel("cosine")
        axes.tick_params(labelbottom=True)
        if number % columns == 0:
            axes.set_ylabel(f"judgement of {request.called.dataset(request.config.task)}")
    visible = points.filter(pc.greater(points["density"], _VISIBLE * highest))["cosine"]
    panels[0, 0].set_xlim(*pc.min_max(visible).as_py().values())
    panels[0, 0].set_ylim(-0.15, len(groups) - 1 + _OVERLAP * 1.02)
    return figure


def _draw_panel(axes: Axes, of_run: pa.Table, groups: Sequence[Group], scale: float) -> None:
    labels = []
    for level, (lower, upper) in reversed(list(enumerate(groups))):
        rows = of_run.filter(pc.and_(pc.equal(of_run["lower"], lower), pc.equal(of_run["upper"], upper)))
        labels.append((level, f"{lower:g} to {upper:g}\n{rows['pairs'][0].as_py():,} pairs"))
        drawn = rows.filter(pc.greater(rows["density"], _VISIBLE * _OVERLAP / scale))
        x, y = drawn["cosine"].to_numpy(), level + scale * drawn["density"].to_numpy()
        axes.fill_between(x, level, y, color=COLOURS[0], alpha=0.3, lw=0, zorder=10 - level)
        axes.plot(x, y, color=COLOURS[0], lw=1.1, zorder=10 - level)
        axes.axhline(level, color=INK, lw=0.4, alpha=0.4, zorder=0)
        if len(drawn):
            share = np.cumsum(drawn["density"].to_numpy())
            middle = x[np.searchsorted(share, share[-1] / 2)]
            axes.plot([middle, middle], [level, level + 0.22], color=INK, lw=1.4, zorder=20)
    axes.set_yticks(*zip(*labels, strict=True))
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


KINDS = {
    "cosine_density": FigureKind(
        columns=COLUMNS,
        title="Cosines by judgement, {task}: {title}",
        description=(
            "A panel per run; in it a density of cosines for each group of judgements, the highest group on top."
        ),
        points=lambda request: densities(
            run_tables(request.inputs["similarities"], SIMILARITIES), request.config
        ),
        draw=draw,
    )
}
