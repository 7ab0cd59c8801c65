"""Heat maps, a row of them for each run; attention weights of one sentence, a column a layer (JTCSE, Fig. 9)."""

from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from workflow_scripts.columns.scores import ATTENTION
from workflow_scripts.figures.base import FigureKind, Request
from workflow_scripts.figures.style import colour_bar, in_lines, short_names
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import wildcard
from workflow_scripts.settings.figures import AttentionMaps

SHADES = ListedColormap(
    colormaps["cividis_r"](np.linspace(0, 1, 48))
)  # from 50 on, a bar of them is a bitmap
_BAR_WIDTH = 0.05  # of a map's
_ON_LIGHT, _ON_DARK = "#111112", "#f8f8f9"  # of numbers, whatever the paper


class Map(NamedTuple):
    """A number for each pair of some things, which are named from top to bottom and from left to right."""

    names: Sequence[str]
    values: NDArray[np.float64]


def maps_of(table: pa.Table, column: str, sides: Sequence[str], value: str) -> dict[tuple[str, Any], Map]:
    """The maps of each run and each value of ``column``, means over all other columns; 0 where there is no number.

    Args:
        table: A row for each number, with the run.
        column: What the maps of a run differ in.
        sides: Columns with the places downwards and to the right, and with the names of those to the right.
        value: Column of the numbers.
    """
    down, right, name = sides
    found: dict[tuple[str, Any], dict[tuple[int, int], list[float]]] = {}
    names: dict[tuple[str, Any], dict[int, str]] = {}
    for row in table.to_pylist():
        key = row["run"], row[column]
        found.setdefault(key, {}).setdefault((row[down], row[right]), []).append(row[value])
        names.setdefault(key, {})[row[right]] = str(row[name])
    return {
        key: Map(
            [names[key][place] for place in sorted(names[key])],
            np.array(
                [
                    [fmean(cells.get((one, other), [0])) for other in sorted(names[key])]
                    for one in sorted(names[key])
                ]
            ),
        )
        for key, cells in found.items()
    }


def heat_map(axes: Axes, shown: Map, shades: Normalize, *, numbers: bool) -> None:
    """Draw one map, darker for more, with names at its sides and, where asked for, the numbers in it."""
    axes.pcolormesh(shown.values, cmap=SHADES, norm=shades)
    axes.invert_yaxis()
    places = np.arange(len(shown.names)) + 0.5
    axes.set_xticks(places, shown.names, rotation=90)
    axes.set_yticks(places, shown.names)
    axes.tick_params(length=0)
    dark = np.asarray(shades(shown.values)) > 0.55
    for (row, column), value in np.ndenumerate(shown.values) if numbers else ():
        colour = _ON_DARK if dark[row, column] else _ON_LIGHT
        text = f"{value:z.2f}".replace("0.", ".", 1)
        axes.text(column + 0.5, row + 0.5, text, ha="center", va="center", fontsize=6.5, color=colour)


def draw_maps(
    figure: Figure,
    maps: Mapping[tuple[str, Any], Map],
    runs: Mapping[str, str],
    columns: Mapping[Any, str],
    shades: Normalize,
    inches: float,
    *,
    numbers_up_to: int = 0,
    bar: str = "",
) -> list[Axes]:
    """Draw a row of maps for each run, on one scale.

    Args:
        figure: Where they are drawn.
        maps: By run and column; where one is not there, nothing is drawn.
        runs: Each run and its name.
        columns: Each column and what stands above it.
        shades: The scale.
        inches: Height of a row.
        numbers_up_to: Maps of so many things at most have their numbers in them.
        bar: What a bar beside them says of the scale; without it there is none.
    """
    widths = [1.0] * len(columns) + [_BAR_WIDTH] * bool(bar)
    panels = figure.subplots(len(runs), len(widths), squeeze=False, width_ratios=widths)
    if bar:
        for axes in panels[:, -1]:
            axes.remove()
        place = figure.add_subplot(panels[0, 0].get_gridspec()[:, -1])
        colour_bar(figure, ScalarMappable(shades, SHADES), bar, cax=place)
        panels = panels[:, :-1]
    for across, (run, name) in zip(panels, runs.items(), strict=True):
        for axes, column in zip(across, columns, strict=True):
            if (run, column) in maps:
                shown = maps[run, column]
                heat_map(axes, shown, shades, numbers=len(shown.names) <= numbers_up_to)
            else:
                axes.set_axis_off()
        across[0].set_ylabel(in_lines(name, inches))
    for axes, heading in zip(panels[0], columns.values(), strict=True):
        axes.set_title(heading, fontsize="small")
    return list(panels.flat)


# Attention weights

WEIGHTS = pa.schema(
    [
        ("run", pa.string()),
        ("layer", pa.int32()),
        ("query_position", pa.int32()),
        ("query_token", pa.string()),
        ("key_position", pa.int32()),
        ("key_token", pa.string()),
        ("weight", pa.float64()),
    ]
)
"""Attention weights of one sentence, means over heads, seeds and encoders."""

_PANEL_INCHES = 1.9
_TOKEN_INCHES, _AROUND_INCHES = 0.095, 0.6  # of a map's height: a row, and its title and labels
_KEYS = ["run", "layer", "query_position", "query_token", "key_position", "key_token"]


def mean_weights(maps: Iterable[tuple[str, pa.Table]], config: AttentionMaps) -> pa.Table:
    """Weights of the first sentence, means over heads, seeds and encoders, of runs and their attention."""
    table = pa.concat_tables([WEIGHTS.empty_table(), *(_chosen(*one, config.layers) for one in maps)])
    means = table.group_by(_KEYS, use_threads=False).aggregate([("weight", "mean")])
    return means.rename_columns([*_KEYS, "weight"]).select(WEIGHTS.names)


def _chosen(run: str, table: pa.Table, layers: Sequence[int]) -> pa.Table:
    if len(table):
        first = pc.equal(table["sentence"], table["sentence"][0])
        table = table.filter(pc.and_(first, pc.is_in(table["layer"], pa.array(layers, pa.int32()))))
    table = table.append_column("run", pa.array([run] * len(table), pa.string()))
    return table.select(WEIGHTS.names).cast(WEIGHTS)


def draw(points: pa.Table, request: Request[AttentionMaps]) -> Figure:
    """Draw the maps; queries downwards, keys to the right."""
    runs = list(dict.fromkeys(points["run"].to_pylist()))
    if not runs:
        return request.empty("No attention weights were kept.")
    names = short_names(runs, request.called)
    maps = maps_of(points, "layer", ("query_position", "key_position", "key_token"), "weight")
    layers = {layer: f"layer {layer}" for layer in sorted({layer for _, layer in maps})}
    note = "Rows: tokens that attend; columns: tokens that are attended to; means over heads, seeds and encoders."
    tokens = max(len(shown.names) for shown in maps.values())
    height = max(_PANEL_INCHES, _AROUND_INCHES + _TOKEN_INCHES * tokens)
    figure = request.new_figure(height * len(runs), [note, *names.footnotes])
    for axes in draw_maps(figure, maps, names.short, layers, Normalize(0, 1), height):
        axes.tick_params(labelsize="x-small")
    return figure


KINDS = {
    "attention_maps": FigureKind(
        columns=WEIGHTS,
        title="Where tokens attend: {title}",
        description="Maps of attention weights of one sentence, a row per run, a column per layer; darker is more.",
        points=lambda request: mean_weights(
            ((wildcard(path, "run"), read_table(path, ATTENTION)) for path in request.inputs["maps"]),
            request.config,
        ),
        draw=draw,
    )
}
