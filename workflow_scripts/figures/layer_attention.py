"""Attention over layers as maps: a row a run, a column a sentence (LayerAttPooler, Fig. 3)."""

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from transformers import PreTrainedTokenizerBase

from workflow_scripts.evaluation.layer_attention import layer_weights
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.loading import single_encoders
from workflow_scripts.figures.style import heading, in_lines, new_figure, short_names
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.figures.layer_attention import NEEDS as NEEDS
from workflow_scripts.settings.figures.layer_attention import Config
from workflow_scripts.settings.style import FigureStyle

COLUMNS = pa.schema(
    [
        ("run", pa.string()),
        ("seed", pa.int32()),
        ("sentence", pa.string()),
        ("query_layer", pa.int32()),
        ("key_layer", pa.int32()),
        ("weight", pa.float64()),
    ]
)
"""Weights of LayerAttPooler's attention over layers; 0 is the embedding output. A query's weights sum to 1 under a
softmax."""
TITLE = "Attention over layers: {title}"
DESCRIPTION = "Maps of attention weights, a row per run, a column per sentence; darker is more."
HOW_DRAWN = "Rows: layers that query; columns: layers that answer, 0 the embedding output; means over seeds."

_PANEL_INCHES = 2.4
_BAR_WIDTH = 0.05  # of a map's
_COLOURS = ListedColormap(colormaps["cividis_r"](np.linspace(0, 1, 48)))


def points(request: Request[Config]) -> pa.Table:
    """Attention weights of every sentence in every run; models are loaded one after the other."""
    parts = [weights_of(*loaded, request.config) for loaded in single_encoders(request.inputs["models"])]
    return pa.concat_tables(parts)


def weights_of(
    run: str, seed: int, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, config: Config
) -> pa.Table:
    """Attention weights of every sentence in one run."""
    parts = [layer_weights(encoder, tokenizer, sentence, config.max_tokens) for sentence in config.sentences]
    rows = [
        {
            "run": run,
            "seed": seed,
            "sentence": sentence,
            "query_layer": query,
            "key_layer": key,
            "weight": weight,
        }
        for sentence, (lowest, weights) in zip(config.sentences, parts, strict=True)
        for query, row in enumerate(weights, start=lowest)
        for key, weight in enumerate(row, start=lowest)
    ]
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def draw(
    points: pa.Table, request: Request[Config], style: FigureStyle, title: str, footnotes: Sequence[str]
) -> Figure:
    """Draw the maps, all on one scale."""
    runs, sentences = (list(dict.fromkeys(points[name].to_pylist())) for name in ("run", "sentence"))
    names = short_names(runs, request.called)
    notes = [HOW_DRAWN, *names.footnotes]
    figure = new_figure(style, _PANEL_INCHES * len(runs), title, notes, footnotes)
    grid = figure.add_gridspec(
        len(runs), len(sentences) + 1, width_ratios=[1] * len(sentences) + [_BAR_WIDTH]
    )
    means = points.group_by(["run", "sentence", "query_layer", "key_layer"], use_threads=False).aggregate(
        [("weight", "mean")]
    )
    shades = Normalize(pc.min(means["weight_mean"]).as_py(), pc.max(means["weight_mean"]).as_py())
    for row, run in enumerate(runs):
        for column, sentence in enumerate(sentences):
            axes = figure.add_subplot(grid[row, column])
            chosen = means.filter(pc.and_(pc.equal(means["run"], run), pc.equal(means["sentence"], sentence)))
            _draw_map(axes, chosen, shades)
            if row == 0:
                axes.set_title(heading(sentence, style, len(sentences)), fontsize="small")
            if column == 0:
                axes.set_ylabel(in_lines(names.short[run], _PANEL_INCHES))
    bar = figure.colorbar(axes.collections[0], cax=figure.add_subplot(grid[:, -1]))
    assert bar.solids is not None
    bar.solids.set_edgecolor("face")  # viewers leave gaps between its steps
    bar.set_label("weight")
    return figure


def _draw_map(axes: Axes, table: pa.Table, shades: Normalize) -> None:
    queries, keys = (table[f"{side}_layer"].to_numpy() for side in ("query", "key"))
    lowest, highest = keys.min(), keys.max()
    weights = np.zeros((highest - lowest + 1,) * 2)
    weights[queries - lowest, keys - lowest] = table["weight_mean"].to_numpy()
    edges = np.arange(lowest, highest + 2) - 0.5
    axes.pcolormesh(edges, edges, weights, cmap=_COLOURS, norm=shades)
    axes.invert_yaxis()
    axes.set_xticks(range(lowest, highest + 1))
    axes.set_yticks(range(lowest, highest + 1))
    axes.tick_params(length=0, labelsize="small")
