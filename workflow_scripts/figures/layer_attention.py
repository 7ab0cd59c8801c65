"""Attention over layers as maps: a row a run, a column a sentence (LayerAttPooler, Fig. 3)."""

from collections.abc import Sequence

import pyarrow as pa
import torch
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from transformers import PreTrainedTokenizerBase

from workflow_scripts.figures.base import Request
from workflow_scripts.figures.loading import single_encoders
from workflow_scripts.figures.maps import draw_maps, extremes, maps_of
from workflow_scripts.figures.style import heading, short_names
from workflow_scripts.models.encoder import SentenceEncoder, hidden_states
from workflow_scripts.models.readouts.layer_attention import Readout
from workflow_scripts.models.templates import tokenise_in
from workflow_scripts.settings.figures.layer_attention import Config

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


def layer_weights(
    encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, sentence: str, max_tokens: int
) -> tuple[int, Sequence[Sequence[float]]]:
    """The first layer that is attended to (0 is the embedding output), and the weights, (L, L)."""
    readout = encoder.readout
    assert isinstance(readout, Readout)
    batch = tokenise_in(encoder.template, tokenizer, [sentence], max_tokens).batch([0]).to(encoder.device)
    with torch.inference_mode():
        states = hidden_states(encoder.eval().backbone, batch, "all")
        weights_1LL = readout.attention(*readout.layers(states, batch.mask_BT))
    return readout.lowest, weights_1LL[0].double().tolist()


def draw(points: pa.Table, request: Request[Config]) -> Figure:
    """Draw the maps, all on one scale."""
    runs, sentences = (list(dict.fromkeys(points[name].to_pylist())) for name in ("run", "sentence"))
    names = short_names(runs, request.called)
    notes = [HOW_DRAWN, *names.footnotes]
    figure = request.new_figure(_PANEL_INCHES * len(runs), notes)
    maps = maps_of(points, "sentence", ("query_layer", "key_layer", "key_layer"), "weight")
    shades = Normalize(*extremes(shown.values for shown in maps.values()))
    headings = {sentence: heading(sentence, request.style, len(sentences)) for sentence in sentences}
    draw_maps(figure, maps, names.short, headings, shades, _PANEL_INCHES, bar="weight")
    return figure
