"""Where token vectors come from: an encoder with or without a template, random draws, or static word vectors.

Every source turns texts into tokens once, and gives the vectors of all sums of layers and weightings that are asked
for: an encoder by one forward pass, the others by a sparse product. Random vectors (section 3.2.5) have the ids of
the encoder's tokeniser and are drawn from N(0, sd^2); whether the paper drew once is not said (F15), so that there
are several draws and a standard deviation over them. Word vectors are X2Static's (F16), whole words, lower-cased.

Shape suffixes: U texts, D width, V vocabulary.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Literal, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.config import Slice
from workflow_scripts.extraction.averages import tables_of
from workflow_scripts.extraction.layers import STATIC, parse_layers
from workflow_scripts.extraction.pooling import input_table, mean_of, mixed, pool_layers, static_vectors
from workflow_scripts.extraction.weighting import Vocabulary, Weights
from workflow_scripts.models.encoder import places
from workflow_scripts.models.precision import PRECISION, Precision
from workflow_scripts.models.templates import PLAIN, Template, cut, fill
from workflow_scripts.models.tokens import TokenisedText, tokenise

Vectors = NDArray[np.float32]


class EncoderSource(Slice):
    """Hidden states of an encoder, alone or mixed with static averages of them."""

    kind: Literal["encoder"]
    template: str | None = Field(description="Name of a template; null for the sentence itself.")
    precision: Precision = Field(description=PRECISION)


class RandomSource(Slice):
    """A random vector for every token."""

    kind: Literal["random"]
    width: int = Field(gt=0)
    sd: float = Field(gt=0, description="Of every entry; the mean is 0.")
    draws: int = Field(gt=0, description="Tables drawn, with seeds seed, seed + 1, ...")
    seed: int = Field(ge=0)


class WordSource(Slice):
    """Static vectors of whole words."""

    kind: Literal["words"]
    path: str = Field(
        pattern=r"^\w[\w.-]*(/\w[\w.-]*)*$", description="word2vec text file below the data root."
    )
    sha256: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] | None = Field(
        description="None, written out, for a file nobody here could hash."
    )
    drop_frequent: int = Field(ge=0, description="Words at the head of the file that are left out.")
    licence: str


Source = Annotated[EncoderSource | RandomSource | WordSource, Field(discriminator="kind")]


class Key(NamedTuple):
    """One representation before it is shaped."""

    share: float
    draw: int
    layers: str
    weighting: str


class Made(NamedTuple):
    """Vectors of one representation, and what is to be said about them."""

    key: Key
    vectors_UD: Vectors
    note: str


class Tokens(NamedTuple):
    """Texts as a source reads them: as they are, and inside the template."""

    raw: TokenisedText
    filled: TokenisedText


class EncoderVectors:
    """Hidden states of one encoder under one template."""

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
        """Cut, fill in and tokenise ``texts``."""
        own = _tokens_of(self._tokenizer, self._template)
        longest = places(self._backbone)
        limit = max_tokens if longest is None else min(max_tokens, longest - own)
        kept = cut(self._tokenizer, texts, limit)
        filled = [fill(self._template, text, self._tokenizer.mask_token) for text in kept]
        raw = tokenise(self._tokenizer, kept, limit)
        return Tokens(raw, raw if self._template == PLAIN else tokenise(self._tokenizer, filled, limit + own))

    def make(
        self, text: TokenisedText, weights: Mapping[str, Weights], keys: Sequence[Key]
    ) -> Iterator[Made]:
        """Every representation in ``keys`` from one pass over ``text``."""
        kept = dict.fromkeys((key.layers, key.weighting) for key in keys if key.share != 1)
        flat = {name: weight.weights_F for name, weight in weights.items()}
        contextual = pool_layers(self._backbone, text, flat, kept, self._precision)
        static = self._static_tables(keys)
        for key in keys:
            vectors_UD, notes = (
                contextual.get((key.layers, key.weighting)),
                [_fallback_note(weights[key.weighting])],
            )
            if key.share != 0:
                table_VD, seen_V = static[key.layers]
                average_UD = static_vectors(text, flat[key.weighting], table_VD)
                vectors_UD = average_UD if vectors_UD is None else mixed(vectors_UD, average_UD, key.share)
                notes.append(_unseen_note(text, seen_V))
            assert vectors_UD is not None
            yield Made(key, vectors_UD, "; ".join(filter(None, notes)))

    def _static_tables(self, keys: Iterable[Key]) -> dict[str, tuple[Vectors, NDArray[np.bool_]]]:
        names = dict.fromkeys(key.layers for key in keys if key.share != 0)
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
    """Rows of static tables: random draws, or word vectors."""

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
        """Every representation in ``keys``, one draw after the other."""
        for key in keys:
            weight = weights[key.weighting]
            vectors_UD = static_vectors(text, weight.weights_F, self._tables[key.draw])
            yield Made(key, vectors_UD, _fallback_note(weight))


class WordTokeniser:
    """Whole words, lower-cased, and punctuation marks; id 0 stands for a text without a known word."""

    def __init__(self, words: Sequence[str]) -> None:
        self._ids = {word: number for number, word in enumerate(words, start=1)}

    def __call__(self, texts: Sequence[str], max_tokens: int) -> TokenisedText:
        """Known words of every text, at most ``max_tokens``."""
        rows = [self._known(text)[:max_tokens] or [0] for text in texts]
        starts = np.concatenate([[0], np.cumsum([len(row) for row in rows], dtype=np.int64)])
        return TokenisedText(np.array([number for row in rows for number in row], np.int32), starts, pad_id=0)

    def _known(self, text: str) -> list[int]:
        found = (self._ids.get(word) for word in re.findall(r"\w+|[^\w\s]", text.lower()))
        return [number for number in found if number is not None]


def random_tables(source: RandomSource, vocabulary: int) -> list[Vectors]:
    """A table (V, D) for every draw; a draw's table does not depend on how many there are."""
    return [
        np.random.default_rng(source.seed + draw)
        .normal(0, source.sd, (vocabulary, source.width))
        .astype(np.float32)
        for draw in range(source.draws)
    ]


def word_vocabulary(words: Sequence[str], frequent: Sequence[str], punctuation: Sequence[str]) -> Vocabulary:
    """Ids of whole words, from 1; they have no subwords, specials or masks."""
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
    """Tokens that a template adds to a sentence."""
    empty = fill(template, "", tokenizer.mask_token)
    return len(tokenizer(empty)["input_ids"]) - len(tokenizer("")["input_ids"])


def _fallback_note(weights: Weights) -> str:
    texts = f"{weights.fallbacks} text{'s' * (weights.fallbacks != 1)}"
    return f"{texts} without a weighted token: plain average" if weights.fallbacks else ""


def _unseen_note(text: TokenisedText, seen_V: NDArray[np.bool_]) -> str:
    unseen = int((~seen_V[text.ids]).sum())
    return f"{unseen} of {len(text.ids)} tokens have no static average: mean vector" if unseen else ""
