"""How alike words are inside encoders: a row of maps a run, a column a sentence (3R, Figs. 1 and 3 and Table 4).

The paper shows cosines of "token embeddings" and names words; it says neither which layer is used nor what is done
with words of several pieces. Both are settings; the figures' axes suggest the last layer, from which sentence vectors
are computed, and the mean over a word's pieces.

Shape suffixes: T tokens, W words or pieces, D width.
"""

from collections.abc import Sequence
from itertools import groupby
from statistics import fmean

import pyarrow as pa
import pyarrow.compute as pc
import torch
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from torch import Tensor
from transformers import BatchEncoding, PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.correlation import cosine
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.loading import single_encoders
from workflow_scripts.figures.maps import draw_maps, extremes, maps_of
from workflow_scripts.figures.style import heading, short_names
from workflow_scripts.losses.infonce import cosine_matrix
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.encoding import encode
from workflow_scripts.settings.figures.token_similarity import Config, Unit

COLUMNS = pa.schema(
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
TITLE = "How alike words are: {title}"
DESCRIPTION = "Maps of cosines between the words of a sentence, a row per run, a column per sentence."
HOW_DRAWN = "Cosines between words, means over seeds; at the left, the cosine of the two sentences."

_PANEL_INCHES = 3.1
_NUMBERS_UP_TO = 12  # words; the numbers of more would cover each other


def points(request: Request[Config]) -> pa.Table:
    """Cosines of every run; models are loaded one after the other."""
    parts = [cosines_of(*loaded, request.config) for loaded in single_encoders(request.inputs["models"])]
    return pa.concat_tables(parts)


def cosines_of(
    run: str, seed: int, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, config: Config
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
    return pa.table(list(map(list, zip(*rows, strict=True))), schema=COLUMNS)


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


def draw(points: pa.Table, request: Request[Config]) -> Figure:
    """Draw the maps, all on one scale."""
    runs, sentences = (list(dict.fromkeys(points[name].to_pylist())) for name in ("run", "sentence"))
    names = short_names(runs, request.called)
    figure = request.new_figure(_PANEL_INCHES * len(runs), [HOW_DRAWN, *names.footnotes])
    maps = maps_of(points, "sentence", ("row_place", "column_place", "column_unit"), "cosine")
    shades = Normalize(extremes(shown.values for shown in maps.values())[0], 1)
    headings = {sentence: heading(sentence, request.style, len(sentences)) for sentence in sentences}
    between = {
        run: fmean(points.filter(pc.equal(points["run"], run))["sentence_cosine"].to_pylist()) for run in runs
    }
    called = {run: f"{name}, sentences: {between[run]:z.2f}" for run, name in names.short.items()}
    draw_maps(figure, maps, called, headings, shades, _PANEL_INCHES, numbers_up_to=_NUMBERS_UP_TO)
    return figure
