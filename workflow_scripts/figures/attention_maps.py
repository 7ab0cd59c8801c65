"""Attention weights of one sentence, averaged over heads: a row of maps a run, a column a layer (JTCSE, Fig. 9)."""

from collections.abc import Iterable, Sequence

import pyarrow as pa
import pyarrow.compute as pc
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from workflow_scripts.columns.scores import ATTENTION
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.maps import draw_maps, maps_of
from workflow_scripts.figures.style import short_names
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.records import wildcard
from workflow_scripts.settings.figures.attention_maps import Config

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
_KEYS = ["run", "layer", "query_position", "query_token", "key_position", "key_token"]


def points(request: Request[Config]) -> pa.Table:
    """Weights of the first sentence in all runs."""
    maps = ((wildcard(path, "run"), read_table(path, ATTENTION)) for path in request.inputs["maps"])
    return mean_weights(maps, request.config)


def mean_weights(maps: Iterable[tuple[str, pa.Table]], config: Config) -> pa.Table:
    """Weights of the first sentence, means over heads, seeds and encoders, of runs and their attention."""
    table = pa.concat_tables([COLUMNS.empty_table(), *(_chosen(*one, config.layers) for one in maps)])
    means = table.group_by(_KEYS, use_threads=False).aggregate([("weight", "mean")])
    return means.rename_columns([*_KEYS, "weight"]).select(COLUMNS.names)


def _chosen(run: str, table: pa.Table, layers: Sequence[int]) -> pa.Table:
    if len(table):
        first = pc.equal(table["sentence"], table["sentence"][0])
        table = table.filter(pc.and_(first, pc.is_in(table["layer"], pa.array(layers, pa.int32()))))
    table = table.append_column("run", pa.array([run] * len(table), pa.string()))
    return table.select(COLUMNS.names).cast(COLUMNS)


def draw(points: pa.Table, request: Request[Config]) -> Figure:
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
