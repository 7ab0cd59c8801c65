"""Heat maps, a row for each run, and the figure of attention weights of one sentence by layer (JTCSE, Fig. 9)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from workflow_scripts.columns.scores import ATTENTION
from workflow_scripts.config import Settings
from workflow_scripts.figures.base import Axes, Declaration, Drawn, Figure, Request, frame
from workflow_scripts.figures.style import colour_bar, heading, short_names, upright
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import wildcard

if TYPE_CHECKING:
    from matplotlib.cm import ScalarMappable

_BAR_WIDTH = 0.05  # in widths of a map
_SHADES = 48  # with 50 shades or more, matplotlib would draw the colour bar as a bitmap


def draw_maps(
    request: Request[Any],
    points: pd.DataFrame,
    panel: str,
    sides: tuple[str, str, str],
    value: str,
    inches: float,
    note: str,
    *,
    scale: tuple[float | None, float | None] = (None, None),
    suffixes: Mapping[str, str] = MappingProxyType({}),
    numbers_up_to: int = 0,
    bar: str = "",
) -> Figure:
    """Draw a row of maps for each run: means over all columns that are not named here, darker for more, on one scale.

    Args:
        request: Texts and style of the figure.
        points: A row for each number, with its ``run``.
        panel: Column whose values distinguish a run's maps, and are their titles.
        sides: Columns with the row and the column of a number in its map, and with the label of both.
        value: Column of the numbers.
        inches: Height of a row of maps.
        note: How the maps are drawn.
        scale: Ends of the scale; None for the smallest or largest number.
        suffixes: Text after a run's name.
        numbers_up_to: Maps of at most this size show their numbers.
        bar: Label of the colour bar; without a label there is no bar.
    """
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize
    from seaborn import color_palette

    row, column, label = sides
    groups = points.groupby(["run", panel], sort=False)
    maps = {key: group.pivot_table(value, row, column, fill_value=0) for key, group in groups}
    labels = points.groupby(["run", panel, column])[label].first()
    names = short_names(list(points["run"].unique()), request.called)
    titles = list(points[panel].unique())
    figure = request.new_figure(inches * len(names.short), [note, *names.footnotes])
    widths = [1.0] * len(titles) + [_BAR_WIDTH] * bool(bar)
    panels = figure.subplots(len(names.short), len(widths), squeeze=False, width_ratios=widths)
    low, high = scale
    low = min(numbers.to_numpy().min() for numbers in maps.values()) if low is None else low
    high = max(numbers.to_numpy().max() for numbers in maps.values()) if high is None else high
    colours = ScalarMappable(
        Normalize(low, high), color_palette("cividis_r", as_cmap=True).resampled(_SHADES)
    )
    for run_panels, (run, name) in zip(panels, names.short.items(), strict=True):
        for axes, title in zip(run_panels, titles, strict=False):
            if (run, title) in maps:
                _draw_map(axes, maps[run, title], list(labels[run, title]), colours, numbers_up_to)
            else:
                axes.set_axis_off()
        run_panels[0].set_ylabel(upright(f"{name}{suffixes.get(run, '')}", inches))
    for axes, title in zip(panels[0], titles, strict=False):
        axes.set_title(heading(title, request.style, len(titles)), fontsize="small")
    if bar:
        for axes in panels[:, -1]:
            axes.remove()
        bar_axes = figure.add_subplot(panels[0, 0].get_gridspec()[:, -1])
        colour_bar(figure, colours, bar, cax=bar_axes)
    return figure


def _draw_map(
    axes: Axes, numbers: pd.DataFrame, labels: list[Any], colours: ScalarMappable, numbers_up_to: int
) -> None:
    """Draw one map."""
    from seaborn import heatmap

    heatmap(
        numbers, norm=colours.norm, cmap=colours.cmap, cbar=False, ax=axes, xticklabels=labels, yticklabels=labels,
        annot=numbers.map(_short_number) if len(labels) <= numbers_up_to else None, fmt="", annot_kws={"size": 6.5},
    )  # fmt: skip
    axes.tick_params(length=0)
    axes.tick_params(axis="x", rotation=90)
    axes.tick_params(axis="y", rotation=0)
    axes.set(xlabel="", ylabel="")


def _short_number(number: float) -> str:
    return f"{number:z.2f}".replace("0.", ".", 1)


# Attention weights

_PANEL_INCHES = 1.9
_TOKEN_INCHES, _AROUND_INCHES = 0.095, 0.6  # parts of a map's height: one row; title and labels
_KEYS = {
    "run": "str", "layer": "int",
    "query_position": "int", "query_token": "str", "key_position": "int", "key_token": "str",
}  # fmt: skip


class AttentionMaps(Settings):
    """Settings of the attention maps."""

    layers: list[int] = Field(
        min_length=1, max_length=6, description="Layers, from 1; a run's maps are of those that it has."
    )


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
    """Draw attention weights of one sentence, a row for each query and a column for each key."""
    tables = ((wildcard(path, "run"), read_table(path, ATTENTION)) for path in request.inputs["maps"])
    points = mean_weights(tables, request.config)
    if not len(points):
        return Drawn(points, request.empty("No attention weights were kept."))
    height = max(_PANEL_INCHES, _AROUND_INCHES + _TOKEN_INCHES * (points["key_position"].max() + 1))
    in_order = points.sort_values("layer", kind="stable")
    figure = draw_maps(
        request,
        in_order.assign(panel="layer " + in_order["layer"].astype(str)),
        "panel",
        ("query_position", "key_position", "key_token"),
        "weight",
        height,
        "Rows: tokens that attend; columns: tokens that are attended to; means over heads, seeds and encoders.",
        scale=(0, 1),
    )
    for axes in figure.axes:
        axes.tick_params(labelsize="x-small")
    return Drawn(points, figure)


def mean_weights(tables: Iterable[tuple[str, pa.Table]], config: AttentionMaps) -> pd.DataFrame:
    """Weights of the first sentence in some layers, means over heads, seeds and encoders.

    Args:
        tables: Runs, each with a table of ``columns.scores.ATTENTION``.
        config: The layers.
    """
    parts = [frame([], **_KEYS, weight="float")]
    for run, table in tables:
        first = pc.field("sentence") == table["sentence"][0]
        parts.append(table.filter(first & pc.field("layer").isin(config.layers)).to_pandas().assign(run=run))
    means = pd.concat(parts).groupby([*_KEYS], sort=False)["weight"].mean()
    return means.reset_index().astype(_KEYS)
