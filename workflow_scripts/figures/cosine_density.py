"""Figure of the densities of cosines in groups of equal human judgement, a panel per run.

Good encoders order the groups: pairs judged more alike have higher cosines. The same picture is figure 8 of S2Sent and
figure 5 of JTCSE. All densities have Gaussian kernels of one width. They are reflected at -1 and 1, so each integrates
to 1 over the possible cosines.
"""

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.compute as pc
from numpy.typing import NDArray

from workflow_scripts.columns import SIMILARITIES
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.base import Declaration, Drawn, FigureRequest, frame, panel_size, side_by_side
from workflow_scripts.reporting.records import RunTable, run_tables
from workflow_scripts.settings.figures import CosineDensity

_GRID = np.linspace(-1, 1, 201)
_COLOURS = 0.75  # used share of viridis, whose end is too light for lines on paper
_VISIBLE = 0.005  # share of the highest density; lower parts are not drawn


@partial(
    Declaration,
    title="Cosines by judgement, {task}: {title}",
    description="A panel per run, with a density of cosines for each group of judgements.",
    caption=(
        "Density of the cosines of scored pairs of {experiment}, in groups of equal human judgement, a "
        "panel per run; seeds are pooled. A group contains the judgements above its lower and up to its "
        "upper edge; the lowest group also contains its lower edge.\n\nA good encoder separates the "
        "groups, in order. Overlapping groups near 1 show an anisotropic space, in which all sentences "
        "look alike."
    ),
    reads={"similarities": "<results>/scores/sts/{suite}/{run}/seed{seed}.pairs.parquet"},
    settings=CosineDensity,
)
def cosine_density(request: FigureRequest[CosineDensity]) -> Drawn:
    """Draw a panel per run with a line for each group; all panels have one scale, and seeds are pooled.

    The points are densities of the cosines of pairs with a judgement above ``lower`` and up to ``upper``. ``pairs`` is
    the number of pairs, not multiplied by seeds. A group without pairs has one row with a null cosine and density.
    """
    import seaborn

    points = densities(run_tables(request.inputs["similarities"], SIMILARITIES), request.config)
    if not len(points):
        return Drawn(points, None, ["No run of this experiment was scored on this task."])
    visible = points[points["density"] > _VISIBLE * points["density"].max()]
    groups = [f"{group.lower:g} to {group.upper:g} ({group.pairs:,} pairs)" for group in visible.itertuples()]
    columns = side_by_side(visible["run"].nunique(), 2)
    grid = seaborn.relplot(
        visible.assign(judgement=groups).sort_values("lower", kind="stable"), x="cosine", y="density", kind="line",
        hue="judgement", palette=_palette(groups), col="run", col_wrap=columns, **panel_size(columns, 1.5),
        facet_kws={"legend_out": False},
    )  # fmt: skip
    grid.set_titles("{col_name}")
    return Drawn(points, grid.figure, ["All panels have one scale; seeds are pooled."])


def _palette(groups: Sequence[str]) -> list[Any]:
    """Return a colour for each distinct group, in the order of viridis."""
    import seaborn

    colours = seaborn.color_palette("viridis", as_cmap=True)
    return [*colours(np.linspace(0, _COLOURS, len(dict.fromkeys(groups))))]


def densities(similarities: Iterable[RunTable], config: CosineDensity) -> pd.DataFrame:
    """Return the density of each group of each run, at the points of a fixed grid of cosines.

    Raises:
        ConfigError: if a judgement is outside the edges.
    """
    tables = [
        table.filter(pc.equal(table["task"], config.task)).to_pandas().assign(run=run, seed=seed)
        for run, seed, table in similarities
    ]
    runs = pd.concat(tables).groupby("run", sort=False) if tables else ()
    return frame(
        [row for run, pairs in runs for row in _run_densities(run, pairs, config)],
        run="str", lower="float", upper="float", pairs="int", seeds="int", cosine="float", density="float",
    )  # fmt: skip


def _run_densities(run: str, pairs: pd.DataFrame, config: CosineDensity) -> Iterator[dict[str, Any]]:
    gold, seeds = pairs["gold"], pairs["seed"].nunique()
    if gold.min() < config.edges[0] or gold.max() > config.edges[-1]:
        raise ConfigError(
            f"report.cosine_density.edges: {config.edges}, but judgements of {config.task} range from "
            f"{gold.min():g} to {gold.max():g}. Set the outer edges to these, or wider."
        )
    groups = pd.cut(gold, config.edges, labels=config.edges[:-1], include_lowest=True)
    for lower, upper in pairwise(config.edges):
        cosines = pairs["cosine"][groups == lower].to_numpy()
        group = {"run": run, "lower": lower, "upper": upper, "seeds": seeds, "pairs": len(cosines) // seeds}
        if not len(cosines):
            yield group
            continue
        for cosine, density in zip(_GRID, kernel_density(cosines, _GRID, config.bandwidth), strict=True):
            yield group | {"cosine": cosine, "density": density}


def kernel_density(
    values_N: NDArray[np.float64], grid_G: NDArray[np.float64], bandwidth: float
) -> NDArray[np.float64]:
    """Return the density of ``values_N`` in [-1, 1] at ``grid_G``; kernels are reflected at both ends."""
    total = np.zeros_like(grid_G)
    for image in (grid_G, 2 - grid_G, -2 - grid_G):
        for block in np.array_split(values_N, max(1, len(values_N) // 4096)):
            total += np.exp(-0.5 * ((image[:, None] - block[None, :]) / bandwidth) ** 2).sum(axis=1)
    density: NDArray[np.float64] = total / (len(values_N) * bandwidth * np.sqrt(2 * np.pi))
    return density
