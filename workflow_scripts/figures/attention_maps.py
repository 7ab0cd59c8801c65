"""Attention weights of one sentence, averaged over heads: a row of maps a run, a column a layer (JTCSE, Fig. 9)."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap
from matplotlib.figure import Figure

from workflow_scripts.columns.scores import ATTENTION
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.style import empty_figure, in_lines, new_figure, short_names
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import wildcard
from workflow_scripts.settings.figures.attention_maps import NEEDS as NEEDS
from workflow_scripts.settings.figures.attention_maps import Config
from workflow_scripts.settings.style import FigureStyle

COLUMNS = pa.schema(
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
TITLE = "Where tokens attend: {title}"
DESCRIPTION = "Maps of attention weights of one sentence, a row per run, a column per layer; darker is more."

_PANEL_INCHES = 1.9
_TOKEN_INCHES, _AROUND_INCHES = 0.095, 0.6  # of a map's height: a row, and its title and labels
_COLOURS = ListedColormap(colormaps["cividis_r"](np.linspace(0, 1, 48)))
_KEYS = ["run", "layer", "query_position", "query_token", "key_position", "key_token"]


class Maps(NamedTuple):
    """Attention of one run and seed (``columns.scores.ATTENTION``)."""

    run: str
    table: pa.Table


def points(request: Request[Config]) -> pa.Table:
    """Weights of the first sentence in all runs."""
    maps = (Maps(wildcard(path, "run"), read_table(path, ATTENTION)) for path in request.inputs["maps"])
    return mean_weights(maps, request.config)


def mean_weights(maps: Iterable[Maps], config: Config) -> pa.Table:
    """Weights of the first sentence, means over heads, seeds and encoders."""
    parts = [_chosen(entry, config.layers) for entry in maps]
    table = pa.concat_tables([COLUMNS.empty_table(), *parts])
    means = table.group_by(_KEYS, use_threads=False).aggregate([("weight", "mean")])
    return means.rename_columns([*_KEYS, "weight"]).select(COLUMNS.names)


def _chosen(entry: Maps, layers: Sequence[int]) -> pa.Table:
    table = entry.table
    if len(table):
        first = pc.equal(table["sentence"], table["sentence"][0])
        table = table.filter(pc.and_(first, pc.is_in(table["layer"], pa.array(layers, pa.int32()))))
    table = table.append_column("run", pa.array([entry.run] * len(table), pa.string()))
    return table.select(COLUMNS.names).cast(COLUMNS)


def draw(
    points: pa.Table, request: Request[Config], style: FigureStyle, title: str, footnotes: Sequence[str]
) -> Figure:
    """Draw the maps; queries downwards, keys to the right."""
    runs = list(dict.fromkeys(points["run"].to_pylist()))
    if not runs:
        return empty_figure(style, title, footnotes, "No attention weights were kept.")
    names = short_names(runs, request.called)
    layers = sorted(set(points["layer"].to_pylist()))
    note = "Rows: tokens that attend; columns: tokens that are attended to; means over heads, seeds and encoders."
    tokens = max(points["query_position"].to_pylist()) + 1
    height = max(_PANEL_INCHES, _AROUND_INCHES + _TOKEN_INCHES * tokens)
    figure = new_figure(style, height * len(runs), title, [note, *names.footnotes], footnotes)
    panels = figure.subplots(len(runs), len(layers), squeeze=False)
    for row, (run, name) in enumerate(names.short.items()):
        for column, layer in enumerate(layers):
            chosen = points.filter(pc.and_(pc.equal(points["run"], run), pc.equal(points["layer"], layer)))
            _draw_map(panels[row, column], chosen)
            if row == 0:
                panels[row, column].set_title(f"layer {layer}")
        panels[row, 0].set_ylabel(in_lines(name, height))
    return figure


def _draw_map(axes: Axes, table: pa.Table) -> None:
    if not len(table):
        axes.set_axis_off()  # an encoder with fewer layers
        return
    rows, columns = (table[f"{side}_position"].to_numpy() for side in ("query", "key"))
    weights = np.zeros((rows.max() + 1, columns.max() + 1))
    weights[rows, columns] = table["weight"].to_numpy()
    axes.pcolormesh(weights, cmap=_COLOURS, vmin=0, vmax=1)
    axes.invert_yaxis()
    tokens = dict(zip(columns.tolist(), table["key_token"].to_pylist(), strict=True))
    names = [tokens[place] for place in sorted(tokens)]
    places = np.arange(len(names)) + 0.5
    axes.set_xticks(places, names, rotation=90, fontsize="x-small")
    axes.set_yticks(places, names, fontsize="x-small")
    axes.tick_params(length=0)
