"""Maps of what is inside encoders, a row per run, a column per sentence; these figures load models.

One shows attention over layers (LayerAttPooler, Fig. 3). The other shows how alike words are (3R, Figs. 1 and 3 and
Table 4). That paper shows cosines of "token embeddings" and names words; it says neither which layer is used nor what
is done with words of several pieces. Both are settings; the figures' axes suggest the last layer, from which sentence
vectors are computed, and the mean over a word's pieces.

Shape suffixes: T tokens, W words or pieces, D width, L layers.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import torch
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor
from transformers import BatchEncoding, PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.correlation import cosine
from workflow_scripts.figures.base import FigureKind, Request
from workflow_scripts.figures.maps import draw_maps, maps_of
from workflow_scripts.figures.style import heading, short_names
from workflow_scripts.losses.infonce import cosine_matrix
from workflow_scripts.models.encoder import SentenceEncoder, hidden_states
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.models.readouts.layer_attention import Readout
from workflow_scripts.models.templates import tokenise_in
from workflow_scripts.reporting.records import run_and_seed
from workflow_scripts.settings.figures import LayerAttention, TokenSimilarity, Unit


def single_encoders(
    records: Iterable[Path],
) -> Iterator[tuple[str, int, SentenceEncoder, PreTrainedTokenizerBase]]:
    """Load one model after the other: run, seed, encoder and tokenizer.

    Raises:
        ConfigError: if one consists of several encoders.
    """
    for path in records:
        encoder, tokenizer = load_encoder(path.parent)
        run, seed = run_and_seed(path)
        if not isinstance(encoder, SentenceEncoder):
            found = f"{run} holds several encoders, or one as it was published"
            raise ConfigError(f"{path}: {found}; the figure shows one that pools. Name others.")
        yield run, seed, encoder, tokenizer


def _of_every_model(request: Request[Any], numbers_of: Callable[..., pa.Table]) -> pa.Table:
    """The numbers of every run and seed; models are loaded one after the other."""
    loaded = single_encoders(request.inputs["models"])
    return pa.concat_tables([numbers_of(*model, request.config) for model in loaded])


def _draw_sentences(
    points: pa.Table,
    request: Request[Any],
    inches: float,
    sides: Sequence[str],
    value: str,
    note: str,
    *,
    most: float | None = None,
    said: Mapping[str, str] = MappingProxyType({}),
    **look: Any,
) -> Figure:
    """Draw a map for each run and sentence, all on one scale.

    Args:
        points: A row for each number.
        request: What the job hands to the figure.
        inches: Height of a row of maps.
        sides: Columns of ``points``, as in ``maps_of``.
        value: Column of the numbers.
        note: How the maps are drawn.
        most: The upper end of the scale; without it, the greatest number.
        said: What is added to the name of each run.
        look: Passed to ``draw_maps``.
    """
    runs, sentences = (list(dict.fromkeys(points[name].to_pylist())) for name in ("run", "sentence"))
    names = short_names(runs, request.called)
    figure = request.new_figure(inches * len(runs), [note, *names.footnotes])
    maps = maps_of(points, "sentence", sides, value)
    every = np.concatenate([shown.values.ravel() for shown in maps.values()])
    shades = Normalize(every.min(), every.max() if most is None else most)
    headings = {sentence: heading(sentence, request.style, len(sentences)) for sentence in sentences}
    rows = {run: f"{name}{said.get(run, '')}" for run, name in names.short.items()}
    draw_maps(figure, maps, rows, headings, shades, inches, **look)
    return figure


# Attention over layers

LAYER_WEIGHTS = pa.schema(
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
_LAYERS_INCHES = 2.4
_LAYERS_NOTE = (
    "Rows: layers that query; columns: layers that answer, 0 the embedding output; means over seeds."
)


def weights_of(
    run: str, seed: int, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, config: LayerAttention
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
    return pa.Table.from_pylist(rows, schema=LAYER_WEIGHTS)


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


def draw_layers(points: pa.Table, request: Request[LayerAttention]) -> Figure:
    """Draw the maps of attention weights."""
    sides = ("query_layer", "key_layer", "key_layer")
    return _draw_sentences(points, request, _LAYERS_INCHES, sides, "weight", _LAYERS_NOTE, bar="weight")


# Cosines between words

COSINES = pa.schema(
    [
        ("run", pa.string()),
        ("seed", pa.int32()),
        ("sentence", pa.string()),
        ("row_place", pa.int32()),
        ("row_unit", pa.string()),
        ("column_place", pa.int32()),
        ("column_unit", pa.string()),
        ("cosine", pa.float64()),
        ("sentence_cosine", pa.float64()),
    ]
)
"""Cosines between the words or pieces of each of two sentences, places from 0. ``sentence_cosine`` is that of the run's
vectors of the two sentences, the same in every row of a run and seed."""
_WORDS_INCHES = 3.1
_WORDS_NOTE = "Cosines between words, means over seeds; at the left, the cosine of the two sentences."
_NUMBERS_UP_TO = 12  # words; the numbers of more would cover each other


def cosines_of(
    run: str, seed: int, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, config: TokenSimilarity
) -> pa.Table:
    """Cosines within each of the two sentences, and between the run's own vectors of them."""
    left, right = encode(encoder, tokenizer, config.sentences, config.max_tokens)
    between = float(cosine(left[None], right[None])[0])
    rows = []
    for sentence in config.sentences:
        names, cosines_WW = unit_cosines(
            encoder,
            tokenizer,
            sentence,
            layer=config.layer,
            unit=config.unit,
            max_tokens=config.max_tokens,
        )
        rows += [
            (run, seed, sentence, row, names[row], column, names[column], value, between)
            for row, values in enumerate(cosines_WW.tolist())
            for column, value in enumerate(values)
        ]
    return pa.table(list(map(list, zip(*rows, strict=True))), schema=COSINES)


def unit_cosines(
    encoder: SentenceEncoder,
    tokenizer: PreTrainedTokenizerBase,
    sentence: str,
    *,
    layer: int,
    unit: Unit,
    max_tokens: int,
) -> tuple[list[str], Tensor]:
    """The words or pieces of a sentence, and the cosines between them, shape (W, W).

    The sentence is encoded without the encoder's template, if it has one.

    Args:
        encoder: The encoder whose states are compared.
        tokenizer: Its tokeniser.
        sentence: A sentence, truncated to ``max_tokens``.
        layer: Hidden states: -1 the last layer, 0 the embedding output.
        unit: Words, as means of their pieces, or pieces.
        max_tokens: Largest number of tokens, including [CLS] and [SEP].

    Raises:
        ConfigError: if there is no such layer.
    """
    tokens = tokenizer(sentence, truncation=True, max_length=max_tokens, return_tensors="pt")
    backbone = encoder.backbone.train(False)
    with torch.inference_mode():
        states = backbone(**tokens.to(backbone.device), output_hidden_states=True).hidden_states
    if not -len(states) <= layer < len(states):
        raise ConfigError(f"token_similarity.layer: {layer}; hidden states are 0 to {len(states) - 1}.")
    names, places = units_of(tokens, tokenizer, sentence, unit)
    vectors_WD = unit_vectors(states[layer][0].double(), places)
    return names, cosine_matrix(vectors_WD, vectors_WD)


def units_of(
    tokens: BatchEncoding, tokenizer: PreTrainedTokenizerBase, sentence: str, unit: Unit
) -> tuple[list[str], list[list[int]]]:
    """The words or pieces of one sentence, without special tokens, and the tokens that each consists of."""
    words = tokens.word_ids(0)
    inside = [place for place, word in enumerate(words) if word is not None]
    if unit == "pieces":
        ids = tokens["input_ids"][0][inside].tolist()
        return list(tokenizer.convert_ids_to_tokens(ids)), [[place] for place in inside]
    groups = {word: list(places) for word, places in groupby(inside, key=lambda place: words[place])}
    spans = [tokens.word_to_chars(0, word) for word in groups]
    return [sentence[span.start : span.end].strip() for span in spans], list(groups.values())


def unit_vectors(states_TD: Tensor, tokens: Sequence[Sequence[int]]) -> Tensor:
    """Means of the states of each unit's tokens, shape (W, D)."""
    return torch.stack([states_TD[list(places)].mean(dim=0) for places in tokens])


def draw_words(points: pa.Table, request: Request[TokenSimilarity]) -> Figure:
    """Draw the maps of cosines, up to 1, with the cosine of the sentences beside the name of the run."""
    between: dict[str, list[float]] = {}
    for row in points.select(["run", "sentence_cosine"]).to_pylist():
        between.setdefault(row["run"], []).append(row["sentence_cosine"])
    said = {run: f", sentences: {fmean(cosines):z.2f}" for run, cosines in between.items()}
    sides, look = ("row_place", "column_place", "column_unit"), {"numbers_up_to": _NUMBERS_UP_TO}
    return _draw_sentences(
        points, request, _WORDS_INCHES, sides, "cosine", _WORDS_NOTE, most=1, said=said, **look
    )


KINDS = {
    "layer_attention": FigureKind(
        columns=LAYER_WEIGHTS,
        title="Attention over layers: {title}",
        description="Maps of attention weights, a row per run, a column per sentence; darker is more.",
        points=lambda request: _of_every_model(request, weights_of),
        draw=draw_layers,
    ),
    "token_similarity": FigureKind(
        columns=COSINES,
        title="How alike words are: {title}",
        description="Maps of cosines between the words of a sentence, a row per run, a column per sentence.",
        points=lambda request: _of_every_model(request, cosines_of),
        draw=draw_words,
    ),
}
