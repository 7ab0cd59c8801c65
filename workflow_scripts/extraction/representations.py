"""Token representations: an encoder with or without a template, random vectors, or static word vectors.

A representation tokenises texts once and computes the sentence vectors of all requested combinations of layers and
weightings: an encoder with one forward pass, the others with a sparse product. Random vectors (section 3.2.5) are
indexed by the ids of the encoder's tokeniser and drawn from N(0, sd^2). The paper does not say whether it drew more
than once (F15); here there are several draws and a standard deviation over them. Word vectors are X2Static's (F16), or
others of whole words in lower case.

Shape suffixes: U texts, D width, V vocabulary.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.extraction.averages import tables_of
from workflow_scripts.extraction.layers import STATIC, parse_layers
from workflow_scripts.extraction.pooling import input_table, mean_of, mixed, pool_layers, static_vectors
from workflow_scripts.extraction.weighting import Vocabulary, Weights
from workflow_scripts.models.encoder import max_position_embeddings
from workflow_scripts.models.templates import PLAIN, cut, fill, most_tokens
from workflow_scripts.models.tokens import TokenisedText, tokenise
from workflow_scripts.settings.extraction.representations import (
    RandomRepresentation,
)
from workflow_scripts.settings.precision import Precision
from workflow_scripts.settings.templates import Template

Vectors = NDArray[np.float32]


class Key(NamedTuple):
    """Which sentence vectors: one combination of the axes of a block, before post-processing."""

    mixing_weight: float
    draw: int
    layers: str
    weighting: str


class Made(NamedTuple):
    """The sentence vectors of one key, and a note on how they were computed ("" for none)."""

    key: Key
    vectors_UD: Vectors
    note: str


class Tokens(NamedTuple):
    """Tokenised texts: as they are, and inside the template."""

    raw: TokenisedText
    filled: TokenisedText


class EncoderVectors:
    """Sentence vectors from the hidden states of an encoder, with or without a template."""

    def __init__(
        self,
        backbone: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        template: Template | None,
        averages: pa.Table | None,
        precision: Precision,
    ) -> None:
        self._backbone = backbone
        self._precision = precision
        self._tokenizer = tokenizer
        self._template = template or PLAIN
        self._averages = averages

    def tokens(self, texts: Sequence[str], max_tokens: int) -> Tokens:
        """Truncate ``texts``, insert them into the template and tokenise both forms."""
        own = _tokens_of(self._tokenizer, self._template)
        longest = max_position_embeddings(self._backbone)
        limit = max_tokens if longest is None else min(max_tokens, longest - own)
        kept = cut(self._tokenizer, texts, limit)
        filled = [fill(self._template, text, self._tokenizer.mask_token) for text in kept]
        raw = tokenise(self._tokenizer, kept, limit)
        if self._template == PLAIN:
            return Tokens(raw, raw)
        most = most_tokens(self._template, self._tokenizer, limit)
        return Tokens(raw, tokenise(self._tokenizer, filled, most if longest is None else min(most, longest)))

    def make(
        self, text: TokenisedText, weights: Mapping[str, Weights], keys: Sequence[Key]
    ) -> Iterator[Made]:
        """The vectors of every key, from one pass over ``text``."""
        kept = dict.fromkeys((key.layers, key.weighting) for key in keys if key.mixing_weight != 1)
        flat = {name: weight.weights_F for name, weight in weights.items()}
        contextual = pool_layers(self._backbone, text, flat, kept, self._precision)
        static = self._static_tables(keys)
        for key in keys:
            vectors_UD = contextual.get((key.layers, key.weighting))
            notes = [_fallback_note(weights[key.weighting])]
            if key.mixing_weight != 0:
                table_VD, seen_V = static[key.layers]
                average_UD = static_vectors(text, flat[key.weighting], table_VD)
                vectors_UD = (
                    average_UD if vectors_UD is None else mixed(vectors_UD, average_UD, key.mixing_weight)
                )
                notes.append(_unseen_note(text, seen_V))
            assert vectors_UD is not None
            yield Made(key, vectors_UD, "; ".join(filter(None, notes)))

    def _static_tables(self, keys: Iterable[Key]) -> dict[str, tuple[Vectors, NDArray[np.bool_]]]:
        names = dict.fromkeys(key.layers for key in keys if key.mixing_weight != 0)
        if not names:
            return {}
        assert self._averages is not None
        tables, seen_V = tables_of(self._averages, self._backbone.config.vocab_size)
        depth = self._backbone.config.num_hidden_layers
        every = dict(enumerate(tables)) | {STATIC: input_table(self._backbone)}
        return {
            name: (mean_of([every[layer] for layer in parse_layers(name, depth)]), seen_V) for name in names
        }


class TableVectors:
    """Sentence vectors from static tables: random vectors or word vectors."""

    def __init__(
        self, tokenise_texts: Callable[[Sequence[str], int], TokenisedText], tables: Sequence[Vectors]
    ) -> None:
        self._tokenise = tokenise_texts
        self._tables = tables

    def tokens(self, texts: Sequence[str], max_tokens: int) -> Tokens:
        """Tokenise ``texts``."""
        text = self._tokenise(texts, max_tokens)
        return Tokens(text, text)

    def make(
        self, text: TokenisedText, weights: Mapping[str, Weights], keys: Sequence[Key]
    ) -> Iterator[Made]:
        """The vectors of every key, from the table of its draw."""
        for key in keys:
            weight = weights[key.weighting]
            vectors_UD = static_vectors(text, weight.weights_F, self._tables[key.draw])
            yield Made(key, vectors_UD, _fallback_note(weight))


class WordTokeniser:
    """Splits texts into lower-cased words and punctuation marks; a text without a known word becomes the id 0."""

    def __init__(self, words: Sequence[str]) -> None:
        self._ids = {word: number for number, word in enumerate(words, start=1)}

    def __call__(self, texts: Sequence[str], max_tokens: int) -> TokenisedText:
        """Known words of every text, at most ``max_tokens`` each."""
        rows = [self._known(text)[:max_tokens] or [0] for text in texts]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        return TokenisedText(np.array([number for row in rows for number in row], np.int32), starts, pad_id=0)

    def _known(self, text: str) -> list[int]:
        found = (self._ids.get(word) for word in re.findall(r"\w+|[^\w\s]", text.lower()))
        return [number for number in found if number is not None]


def random_tables(representation: RandomRepresentation, vocabulary: int) -> list[Vectors]:
    """A table (V, D) for every draw; it does not depend on the number of draws."""
    return [
        np.random.default_rng(representation.seed + draw)
        .normal(0, representation.sd, (vocabulary, representation.width))
        .astype(np.float32)
        for draw in range(representation.draws)
    ]


def word_vocabulary(words: Sequence[str], frequent: Sequence[str], punctuation: Sequence[str]) -> Vocabulary:
    """The vocabulary of whole words, ids from 1; it has no subwords, special tokens or masks."""
    ids = {word: number for number, word in enumerate(words, start=1)}
    return Vocabulary(
        tokens=["", *words],
        specials=frozenset(),
        mask=None,
        biased={
            "frequent": [ids[word] for word in frequent if word in ids],
            "subword": [],
            "punctuation": [ids[word] for word in punctuation if word in ids],
            "special": [],
        },
    )


def _tokens_of(tokenizer: PreTrainedTokenizerBase, template: Template) -> int:
    """Number of tokens that a template adds to a sentence."""
    empty = fill(template, "", tokenizer.mask_token)
    return len(tokenizer(empty)["input_ids"]) - len(tokenizer("")["input_ids"])


def _fallback_note(weights: Weights) -> str:
    texts = f"{weights.fallbacks} text{'s' * (weights.fallbacks != 1)}"
    return f"{texts} without a weighted token: plain average" if weights.fallbacks else ""


def _unseen_note(text: TokenisedText, seen_V: NDArray[np.bool_]) -> str:
    unseen = int((~seen_V[text.ids]).sum())
    return f"{unseen} of {len(text.ids)} tokens have no static average: mean vector" if unseen else ""
