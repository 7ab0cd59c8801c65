"""Heat maps, a row of them for each run; attention weights of one sentence, a column a layer (JTCSE, Fig. 9)."""

from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from workflow_scripts.columns.scores import ATTENTION
from workflow_scripts.config import Settings
from workflow_scripts.figures.base import Declaration, Drawn, Figure, Request, frame
from workflow_scripts.figures.style import colour_bar, heading, in_lines, short_names
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import wildcard

_BAR_WIDTH = 0.05  # of a map's
_SHADES = 48  # from 50 on, a bar of them is a bitmap


def draw_maps(
    request: Request[Any],
    points: pd.DataFrame,
    column: str,
    sides: Sequence[str],
    value: str,
    inches: float,
    note: str,
    *,
    headings: str = "{}",
    scale: tuple[float | None, float | None] = (None, None),
    said: Mapping[str, str] = MappingProxyType({}),
    numbers_up_to: int = 0,
    bar: str = "",
    **ticks: Any,
) -> Figure:
    """Draw a row of maps for each run, means over all other columns, darker for more, all on one scale.

    Args:
        request: What the job hands to the figure.
        points: A row for each number, with the run.
        column: What the maps of a run differ in.
        sides: Columns with the places downwards and to the right, and with the names of the places.
        value: Column of the numbers.
        inches: Height of a row.
        note: How the maps are drawn.
        headings: Text above each column, with ``{}`` for the value of ``column``.
        scale: Its ends, where they are not those of the numbers.
        said: What is added to the name of each run.
        numbers_up_to: Maps of at most this many places have their numbers in them.
        bar: What a bar beside the maps says of the scale; without it there is none.
        ticks: Look of the names of places.
    """
    import seaborn as sns
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    down, right, name = sides
    maps = {
        key: own.pivot_table(index=down, columns=right, values=value, fill_value=0)
        for key, own in points.groupby(["run", column], sort=False)
    }
    labels = points.groupby(["run", column, right])[name].first()
    names = short_names(list(points["run"].unique()), request.called)
    columns = list(points[column].unique())
    figure = request.new_figure(inches * len(names.short), [note, *names.footnotes])
    widths = [1.0] * len(columns) + [_BAR_WIDTH] * bool(bar)
    panels = figure.subplots(len(names.short), len(widths), squeeze=False, width_ratios=widths)
    every = np.concatenate([shown.to_numpy().ravel() for shown in maps.values()])
    low, high = (
        given if given is not None else end
        for given, end in zip(scale, (every.min(), every.max()), strict=True)
    )
    shades = sns.color_palette("cividis_r", as_cmap=True).resampled(_SHADES)
    for across, (run, called) in zip(panels, names.short.items(), strict=True):
        for axes, key in zip(across, columns, strict=False):
            if (run, key) not in maps:
                axes.set_axis_off()
                continue
            shown, own = maps[run, key], list(labels[run, key])
            numbers = [[f"{number:z.2f}".replace("0.", ".", 1) for number in row] for row in shown.to_numpy()]
            sns.heatmap(
                shown, vmin=low, vmax=high, cmap=shades, cbar=False, ax=axes, xticklabels=own, yticklabels=own,
                annot=np.array(numbers) if len(own) <= numbers_up_to else None, fmt="", annot_kws={"size": 6.5},
            )  # fmt: skip
            axes.tick_params(length=0, **ticks)
            axes.tick_params(axis="x", rotation=90)
            axes.tick_params(axis="y", rotation=0)
            axes.set(xlabel="", ylabel="")
        across[0].set_ylabel(in_lines(f"{called}{said.get(run, '')}", inches))
    for axes, key in zip(panels[0], columns, strict=False):
        axes.set_title(heading(headings.format(key), request.style, len(columns)), fontsize="small")
    if bar:
        for axes in panels[:, -1]:
            axes.remove()
        place = figure.add_subplot(panels[0, 0].get_gridspec()[:, -1])
        colour_bar(figure, ScalarMappable(Normalize(low, high), shades), bar, cax=place)
    return figure


# Attention weights

_PANEL_INCHES = 1.9
_TOKEN_INCHES, _AROUND_INCHES = 0.095, 0.6  # of a map's height: a row, and its title and labels
_KEYS = {
    "run": "str", "layer": "int",
    "query_position": "int", "query_token": "str", "key_position": "int", "key_token": "str",
}  # fmt: skip


class AttentionMaps(Settings):
    """The layers to draw."""

    layers: list[int] = Field(min_length=1, max_length=6, description="Layers, from 1; those that a run has.")


@partial(
    Declaration,
    title="Where tokens attend: {title}",
    description="Maps of attention weights of one sentence, a row per run, a column per layer; darker is more.",
    caption=(
        "Attention weights of one sentence in every run of {experiment}, averaged over heads, seeds and, in an "
        "ensemble, encoders: a row of maps for each run, a column for each layer. A dark column at the last tokens "
        "is the attention sink of JTCSE's Figure 9."
    ),
    reads={"maps": "<results>/scores/attention/{suite}/{run}/seed{seed}.maps.parquet"},
    settings=AttentionMaps,
    block="report.attention_maps",
)
def attention_maps(request: Request[AttentionMaps]) -> Drawn:
    """Attention weights of one sentence; queries downwards, keys to the right."""
    tables = ((wildcard(path, "run"), read_table(path, ATTENTION)) for path in request.inputs["maps"])
    points = mean_weights(tables, request.config)
    if not len(points):
        return Drawn(points, request.empty("No attention weights were kept."))
    height = max(_PANEL_INCHES, _AROUND_INCHES + _TOKEN_INCHES * (points["key_position"].max() + 1))
    figure = draw_maps(
        request,
        points.sort_values("layer", kind="stable"),
        "layer",
        ("query_position", "key_position", "key_token"),
        "weight",
        height,
        "Rows: tokens that attend; columns: tokens that are attended to; means over heads, seeds and encoders.",
        headings="layer {}",
        scale=(0, 1),
        labelsize="x-small",
    )
    return Drawn(points, figure)


def mean_weights(tables: Iterable[tuple[str, pa.Table]], config: AttentionMaps) -> pd.DataFrame:
    """Weights of the first sentence, means over heads, seeds and encoders, of runs and their attention."""
    parts = [frame([], **_KEYS, weight="float")]
    for run, table in tables:
        chosen = table.filter(pc.field("layer").isin(config.layers)).to_pandas()
        parts.append(chosen[chosen["sentence"] == table["sentence"][0].as_py()].assign(run=run))
    means = pd.concat(parts).groupby([*_KEYS], sort=False)["weight"].mean()
    return means.reset_index().astype(_KEYS)
