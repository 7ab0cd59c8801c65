"""How alike an encoder makes the words of a sentence, and two sentences (3R, Figs. 1 and 3 and Table 4).

The paper shows cosines of "token embeddings" and names words; neither the layer nor what becomes of a word of
several pieces is said. Both are settings: the last layer, whose states sentence vectors are read from, and means
over a word's pieces are what its axes suggest.

Shape suffixes: T tokens, W words or pieces, D width.
"""

from collections.abc import Sequence
from itertools import groupby
from typing import Literal, NamedTuple

import pyarrow as pa
import torch
from pydantic import Field
from torch import Tensor
from transformers import BatchEncoding, PreTrainedTokenizerBase

from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.correlation import cosine
from workflow_scripts.losses.infonce import cosine_matrix
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.encoding import encode
from workflow_scripts.schemas import TOKEN_SIMILARITY


class Config(Slice):
    """What of an encoder is compared."""

    layer: int = Field(description="Hidden states: -1 the last layer, 0 the embedding output.")
    unit: Literal["words", "pieces"] = Field(description="Words, means of their pieces, or the pieces.")
    max_tokens: int = Field(gt=2, description="Longer sentences are cut; [CLS] and [SEP] count.")


class Units(NamedTuple):
    """Words or pieces of one sentence, special tokens left out: their text, and the tokens that each is made of."""

    names: list[str]
    tokens: list[list[int]]


def similarities(
    run: str,
    seed: int,
    encoder: SentenceEncoder,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    config: Config,
) -> pa.Table:
    """Cosines within each of two sentences and between them, columns of ``TOKEN_SIMILARITY``.

    Words are read without the encoder's template, if it has one; sentence vectors are the run's own.
    """
    left, right = encode(encoder, tokenizer, sentences, config.max_tokens)
    between = float(cosine(left[None], right[None])[0])
    rows = []
    for sentence in sentences:
        names, cosines_WW = _within(encoder, tokenizer, sentence, config)
        rows += [
            (run, seed, sentence, row, names[row], column, names[column], value, between)
            for row, values in enumerate(cosines_WW.tolist())
            for column, value in enumerate(values)
        ]
    return pa.table(list(map(list, zip(*rows, strict=True))), schema=TOKEN_SIMILARITY)


def _within(
    encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, sentence: str, config: Config
) -> tuple[list[str], Tensor]:
    tokens = tokenizer(sentence, truncation=True, max_length=config.max_tokens, return_tensors="pt")
    backbone = encoder.backbone.train(False)
    with torch.inference_mode():
        states = backbone(**tokens.to(backbone.device), output_hidden_states=True).hidden_states
    if not -len(states) <= config.layer < len(states):
        raise ConfigError(
            f"report.token_similarity.layer: {config.layer}; hidden states are 0 to {len(states) - 1}."
        )
    units = units_of(tokens, tokenizer, sentence, config.unit)
    vectors_WD = unit_vectors(states[config.layer][0].double(), units.tokens)
    return units.names, cosine_matrix(vectors_WD, vectors_WD)


def units_of(tokens: BatchEncoding, tokenizer: PreTrainedTokenizerBase, sentence: str, unit: str) -> Units:
    """What the rows of a map are; special tokens belong to no word."""
    words = tokens.word_ids(0)
    inside = [place for place, word in enumerate(words) if word is not None]
    if unit == "pieces":
        ids = tokens["input_ids"][0].tolist()
        return Units(
            [str(tokenizer.convert_ids_to_tokens(ids[place])) for place in inside], [[p] for p in inside]
        )
    groups = [(word, list(places)) for word, places in groupby(inside, key=lambda place: words[place])]
    spans = [tokens.word_to_chars(0, word) for word, _ in groups]
    return Units(
        [sentence[span.start : span.end].strip() for span in spans], [places for _, places in groups]
    )


def unit_vectors(states_TD: Tensor, tokens: Sequence[Sequence[int]]) -> Tensor:
    """Means of the states of each unit's tokens, shape (W, D)."""
    return torch.stack([states_TD[list(places)].mean(dim=0) for places in tokens])
