"""Sentence vectors of every layer and weighting from one forward pass.

    v = sum_t a_t h_t,   sum_t a_t = 1

One batched matrix product per layer sums over tokens for all weightings together. Token states are released before
the next batch, so that memory is sentences x width for each wanted pair of layers and weighting. Static tables need
no forward pass: their vectors are a sparse matrix of weights times the table.

Shape suffixes: B texts of a batch, T tokens, D width, W weightings, U texts, V vocabulary, F tokens end to end.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_matrix
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.extraction.forward import passes
from workflow_scripts.extraction.layers import STATIC, parse_layers
from workflow_scripts.models.tokens import TokenisedText
from workflow_scripts.settings.precision import Precision

Vectors = NDArray[np.float32]
Kept = tuple[str, str]
"""Name of a combination of layers, name of a weighting."""


def pool_layers(
    backbone: PreTrainedModel,
    text: TokenisedText,
    weights: Mapping[str, NDArray[np.float32]],
    kept: Iterable[Kept],
    precision: Precision,
) -> dict[Kept, Vectors]:
    """Vectors (U, D) of every pair in ``kept``, from one pass over ``text``.

    Args:
        backbone: The encoder, in evaluation mode.
        text: The texts, tokenised.
        weights: Name of a weighting to a weight for every token of ``text`` end to end.
        kept: The wanted pairs.
        precision: Of the encoder's matrix products.
    """
    depth, width = backbone.config.num_hidden_layers, backbone.config.hidden_size
    wanted = {pair: parse_layers(pair[0], depth) for pair in kept}
    names = list(dict.fromkeys(weighting for _layers, weighting in wanted))
    vectors = {pair: np.zeros((len(text), width), dtype=np.float32) for pair in wanted}
    for pair, layers in wanted.items():
        if STATIC in layers:
            vectors[pair] += static_vectors(text, weights[pair[1]], input_table(backbone)) / len(layers)
    hidden = sorted({layer for layers in wanted.values() for layer in layers} - {STATIC})
    if not hidden:
        return vectors
    stacked_WF = np.stack([weights[name] for name in names])
    for rows_B, batch, states in passes(backbone, text, precision):
        weights_BWT = padded(stacked_WF, text.starts, rows_B, batch.ids_BT.shape[1]).to(backbone.device)
        pooled = {layer: (weights_BWT @ states[layer]).cpu().numpy() for layer in hidden}
        for (name, weighting), layers in wanted.items():
            place = names.index(weighting)
            of_pair = vectors[name, weighting]
            present = [layer for layer in layers if layer != STATIC]
            of_pair[rows_B] += sum(pooled[layer][:, place] for layer in present) / len(layers)
    return vectors


def padded(
    values_WF: NDArray[np.float32], starts: NDArray[np.int64], rows_B: NDArray[np.int64], width: int
) -> Tensor:
    """The values of some texts, shape (B, W, T), 0 where a text has no token."""
    positions_BT = starts[rows_B][:, None] + np.arange(width)
    present_BT = positions_BT < starts[rows_B + 1][:, None]
    values_WBT = values_WF[:, np.where(present_BT, positions_BT, 0)] * present_BT
    return torch.from_numpy(np.ascontiguousarray(values_WBT.transpose(1, 0, 2)))


def input_table(backbone: PreTrainedModel) -> Vectors:
    """The encoder's table of token embeddings, shape (V, D)."""
    embeddings: Any = backbone.get_input_embeddings()
    table: Vectors = embeddings.weight.detach().cpu().numpy()
    return table


def static_vectors(text: TokenisedText, weights_F: NDArray[np.float32], table_VD: Vectors) -> Vectors:
    """Weighted sums of the rows of a table, shape (U, D)."""
    bag_UV = csr_matrix((weights_F, text.ids, text.starts), shape=(len(text), len(table_VD)))
    vectors: Vectors = np.asarray(bag_UV @ table_VD, dtype=np.float32)
    return vectors


def mixed(contextual_UD: Vectors, average_UD: Vectors, mixing_weight: float) -> Vectors:
    """V = (1 - w) v_BERT + w v_Avg  (Equation 10), for any w, negative ones included."""
    return ((1 - mixing_weight) * contextual_UD + mixing_weight * average_UD).astype(np.float32)


def mean_of(tables: Sequence[Vectors]) -> Vectors:
    """The mean of the tables of several layers, shape (V, D)."""
    return (sum(tables[1:], tables[0]) / len(tables)).astype(np.float32)
