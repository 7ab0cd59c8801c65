"""Token representations: an encoder with or without a template, random vectors, or static word vectors.

    v = sum_t a_t h_t,   sum_t a_t = 1

A representation tokenises texts once and computes the sentence vectors of all requested combinations of layers and
weightings: an encoder with one forward pass, the others with a sparse matrix of weights times their table. Random
vectors (section 3.2.5) are indexed by the ids of the encoder's tokeniser and drawn from N(0, sd^2). The paper does not
say whether it drew more than once (F15); here there are several draws and a standard deviation over them. Word vectors
are X2Static's (F16), or others of whole words in lower case.

Shape suffixes: B texts of a batch, T tokens, D width, W weightings, U texts, V vocabulary, F tokens end to end.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.arrays import Vectors
from workflow_scripts.extraction.layers import STATIC, parse_layers
from workflow_scripts.extraction.passes import passes
from workflow_scripts.extraction.weighting import Weights
from workflow_scripts.models.backbone import max_position_embeddings
from workflow_scripts.models.encoding import on_the_host
from workflow_scripts.models.templates import PLAIN, cut, fill, most_tokens
from workflow_scripts.models.tokens import TokenisedText, onto, tokenise
from workflow_scripts.settings.extraction import RandomRepresentation
from workflow_scripts.settings.names import Precision, Template


class Key(NamedTuple):
    """One combination of a block's axes, before post-processing, which identifies sentence vectors."""

    mixing_weight: float
    draw: int
    layers: str
    weighting: str


class SentenceVectors(NamedTuple):
    """The sentence vectors of one key, and a note on exceptions (empty for none)."""

    key: Key
    vectors_UD: Vectors
    note: str


class Tokens(NamedTuple):
    """Tokenised texts, without and with the template."""

    raw: TokenisedText
    filled: TokenisedText


def without_ids(text: TokenisedText, ids: Sequence[int]) -> TokenisedText:
    """Return texts without some tokens; a text of only such tokens keeps all."""
    if not len(ids) or not len(text):
        return text
    kept_F = ~np.isin(text.ids, ids)
    left_U = np.add.reduceat(kept_F, text.starts[:-1])
    kept_F |= np.repeat(left_U == 0, text.lengths)
    lengths_U = np.add.reduceat(kept_F.astype(np.int64), text.starts[:-1])
    starts = np.concatenate([[0], np.cumsum(lengths_U, dtype=np.int64)])
    return TokenisedText(text.ids[kept_F], starts, text.pad_id)


class EncoderVectors:
    """Sentence vectors from the hidden states of an encoder, with or without a template."""

    def __init__(
        self,
        backbone: PreTrainedModel,
        tokenizer: PreTrainedTokenizerBase,
        template: Template | None,
        averages: pa.Table | None,
        precision: Precision,
        removed: Sequence[int] = (),
    ) -> None:
        self._removed = removed
        self._backbone = backbone
        self._precision = precision
        self._tokenizer = tokenizer
        self._template = template or PLAIN
        self._averages = averages

    def tokens(self, texts: Sequence[str], max_tokens: int) -> Tokens:
        """Return texts, truncated and tokenised, without and with the template."""
        template_tokens = _tokens_of(self._tokenizer, self._template)
        longest = max_position_embeddings(self._backbone)
        limit = max_tokens if longest is None else min(max_tokens, longest - template_tokens)
        truncated = cut(self._tokenizer, texts, limit)
        filled = [fill(self._template, text, self._tokenizer.mask_token) for text in truncated]
        raw = without_ids(tokenise(self._tokenizer, truncated, limit), self._removed)
        if self._template == PLAIN:
            return Tokens(raw, raw)
        most = most_tokens(self._template, self._tokenizer, limit)
        return Tokens(raw, tokenise(self._tokenizer, filled, most if longest is None else min(most, longest)))

    def make(
        self, text: TokenisedText, weights: Mapping[str, Weights], keys: Sequence[Key]
    ) -> Iterator[SentenceVectors]:
        """Yield the vectors of every key, from one pass over ``text``."""
        pairs = dict.fromkeys((key.layers, key.weighting) for key in keys if key.mixing_weight != 1)
        flat = {name: weight.weights_F for name, weight in weights.items()}
        contextual = pool_layers(self._backbone, text, flat, pairs, self._precision)
        static = self._static_tables(keys)
        for key in keys:
            vectors_UD = contextual.get((key.layers, key.weighting))
            notes = [_fallback_note(weights[key.weighting])]
            if key.mixing_weight != 0:
                table_VD, seen_V = static[key.layers]
                average_UD = static_vectors(text, flat[key.weighting], table_VD)
                if vectors_UD is not None:
                    average_UD = mixed(vectors_UD, average_UD, key.mixing_weight)
                vectors_UD = average_UD
                notes.append(_unseen_note(text, seen_V))
            assert vectors_UD is not None
            yield SentenceVectors(key, vectors_UD, "; ".join(filter(None, notes)))

    def _static_tables(self, keys: Iterable[Key]) -> dict[str, tuple[Vectors, NDArray[np.bool_]]]:
        """Return the mean of the tables (V, D) for each combination of layers, and a mask of tokens that have one."""
        names = dict.fromkeys(key.layers for key in keys if key.mixing_weight != 0)
        if not names:
            return {}
        assert self._averages is not None
        tables, seen_V = tables_of(self._averages, self._backbone.config.vocab_size)
        by_layer = dict(enumerate(tables)) | {STATIC: input_table(self._backbone)}
        means = {}
        for name in names:
            layers = parse_layers(name, self._backbone.config.num_hidden_layers)
            mean_VD = sum((by_layer[layer] for layer in layers[1:]), by_layer[layers[0]]) / len(layers)
            has_vector_V = seen_V | (layers == (STATIC,))
            means[name] = (mean_VD.astype(np.float32), has_vector_V)
        return means


def tables_of(averages: pa.Table, vocabulary: int) -> tuple[list[NDArray[np.float32]], NDArray[np.bool_]]:
    """Return the averages as one table (V, D) per layer, with unseen tokens filled in, and a mask of seen tokens."""
    layers = 1 + pc.max(averages["layer"]).as_py()
    ids_O = averages["token_id"].to_numpy()[::layers]
    seen_V = np.zeros(vocabulary, dtype=np.bool_)
    seen_V[ids_O] = True
    vectors = averages["vector"].combine_chunks().flatten().to_numpy().reshape(len(ids_O), layers, -1)
    tables = []
    for layer in range(layers):
        mean_D = vectors[:, layer].mean(axis=0, dtype=np.float64).astype(np.float32)
        table_VD = np.tile(mean_D, (vocabulary, 1))
        table_VD[ids_O] = vectors[:, layer]
        tables.append(table_VD)
    return tables, seen_V


class TableVectors:
    """Sentence vectors from static tables: random vectors or word vectors."""

    def __init__(
        self, tokenise_texts: Callable[[Sequence[str], int], TokenisedText], tables: Sequence[Vectors]
    ) -> None:
        self._tokenise = tokenise_texts
        self._tables = tables

    def tokens(self, texts: Sequence[str], max_tokens: int) -> Tokens:
        """Return tokenised texts."""
        text = self._tokenise(texts, max_tokens)
        return Tokens(text, text)

    def make(
        self, text: TokenisedText, weights: Mapping[str, Weights], keys: Sequence[Key]
    ) -> Iterator[SentenceVectors]:
        """Yield the vectors of every key, from the table of its draw."""
        for key in keys:
            weight = weights[key.weighting]
            vectors_UD = static_vectors(text, weight.weights_F, self._tables[key.draw])
            notes = [_unknown_note(vectors_UD), _fallback_note(weight)]
            yield SentenceVectors(key, vectors_UD, "; ".join(filter(None, notes)))


def random_tables(representation: RandomRepresentation, vocabulary: int) -> list[Vectors]:
    """Return a table (V, D) for every draw; tables do not depend on the number of draws."""
    return [
        np.random.default_rng(representation.seed + draw)
        .normal(0, representation.sd, (vocabulary, representation.width))
        .astype(np.float32)
        for draw in range(representation.draws)
    ]


def _tokens_of(tokenizer: PreTrainedTokenizerBase, template: Template) -> int:
    """Return the number of tokens that a template adds to a sentence."""
    empty = fill(template, "", tokenizer.mask_token)
    return len(tokenizer(empty)["input_ids"]) - len(tokenizer("")["input_ids"])


def _fallback_note(weights: Weights) -> str:
    if not weights.fallbacks:
        return ""
    texts = "1 text" if weights.fallbacks == 1 else f"{weights.fallbacks} texts"
    return f"{texts} without a weighted token: plain average"


def _unknown_note(vectors_UD: Vectors) -> str:
    unknown = int((~vectors_UD.any(axis=1)).sum())
    return f"{unknown} of {len(vectors_UD)} texts without a known word: zero vector" if unknown else ""


def _unseen_note(text: TokenisedText, seen_V: NDArray[np.bool_]) -> str:
    unseen = int((~seen_V[text.ids]).sum())
    return f"{unseen} of {len(text.ids)} tokens have no static average: mean vector" if unseen else ""


# Sums over tokens


def pool_layers(
    backbone: PreTrainedModel,
    text: TokenisedText,
    weights: Mapping[str, NDArray[np.float32]],
    pairs: Iterable[tuple[str, str]],
    precision: Precision,
) -> dict[tuple[str, str], Vectors]:
    """Return the vectors (U, D) of every pair of layers and weighting, from one pass over ``text``.

    One batched matrix product per layer sums over tokens for all weightings together. Token states are released before
    the next batch, so each pair needs only memory of sentences x width.

    Args:
        backbone: The encoder, in evaluation mode.
        text: The tokenised texts.
        weights: Weights of all tokens of ``text``, concatenated, by name of the weighting.
        pairs: Names of a combination of layers and of a weighting.
        precision: Precision of the encoder's matrix products.
    """
    depth, width = backbone.config.num_hidden_layers, backbone.config.hidden_size
    wanted = {pair: parse_layers(pair[0], depth) for pair in pairs}
    names = list(dict.fromkeys(weighting for _layers, weighting in wanted))
    vectors = {pair: np.zeros((len(text), width), dtype=np.float32) for pair in wanted}
    for pair, layers in wanted.items():
        if STATIC in layers:
            vectors[pair] += static_vectors(text, weights[pair[1]], input_table(backbone)) / len(layers)
    hidden = sorted({layer for layers in wanted.values() for layer in layers} - {STATIC})
    if not hidden:
        return vectors
    stacked_WF = np.stack([weights[name] for name in names])

    def launched() -> Iterator[tuple[NDArray[np.int64], Tensor]]:
        for rows_B, batch, states in passes(backbone, text, precision):
            weights_BWT = onto(
                padded(stacked_WF, text.starts, rows_B, batch.ids_BT.shape[1]), backbone.device
            )
            # One copy from the GPU for all layers.
            yield rows_B, torch.stack([weights_BWT @ states[layer] for layer in hidden])

    for rows_B, together in on_the_host(launched()):
        pooled = dict(zip(hidden, together, strict=True))
        for pair, layers in wanted.items():
            column = names.index(pair[1])
            present = [layer for layer in layers if layer != STATIC]
            vectors[pair][rows_B] += sum(pooled[layer][:, column] for layer in present) / len(layers)
    return vectors


def padded(
    values_WF: NDArray[np.float32], starts: NDArray[np.int64], rows_B: NDArray[np.int64], width: int
) -> Tensor:
    """Return the values of some texts, shape (B, W, T), with 0 for padding."""
    positions_BT = starts[rows_B][:, None] + np.arange(width)
    present_BT = positions_BT < starts[rows_B + 1][:, None]
    values_WBT = values_WF[:, np.where(present_BT, positions_BT, 0)] * present_BT
    return torch.from_numpy(np.ascontiguousarray(values_WBT.transpose(1, 0, 2)))


def input_table(backbone: PreTrainedModel) -> Vectors:
    """Return the encoder's table of token embeddings, shape (V, D)."""
    embeddings: Any = backbone.get_input_embeddings()
    table: Vectors = embeddings.weight.detach().cpu().numpy()
    return table


def static_vectors(text: TokenisedText, weights_F: NDArray[np.float32], table_VD: Vectors) -> Vectors:
    """Return weighted sums of the rows of a table, shape (U, D)."""
    bag_UV = csr_matrix((weights_F, text.ids, text.starts), shape=(len(text), len(table_VD)))
    vectors: Vectors = np.asarray(bag_UV @ table_VD, dtype=np.float32)
    return vectors


def mixed(contextual_UD: Vectors, average_UD: Vectors, mixing_weight: float) -> Vectors:
    """Return V = (1 - w) v_BERT + w v_Avg  (Equation 10), for any w, including negative ones."""
    return ((1 - mixing_weight) * contextual_UD + mixing_weight * average_UD).astype(np.float32)
