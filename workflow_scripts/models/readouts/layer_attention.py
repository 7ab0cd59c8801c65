"""LayerAttPooler: attention over an encoder's layers, from their [CLS] states to their averages.

    alpha_ij = softmax_j(q_i . k_j / 13),   q = phi(W_q h^c), k = phi(W_k h^a), v = phi(W_v h^a)       (Eq. 1)
    h^l_i = sum_j alpha_ij v_j,   h^L = mean_i h^l_i,   h = MLP([h^c_last; h^L])                 (Eqs. 2 to 5)

Oh et al. 2022, Don't Judge a Language Model by Its Last Layer, https://arxiv.org/abs/2209.05972. The MLP is the
encoder's head. Equation 1's indices contradict each other and a ratio of scores has no definite sign, so defaults
follow the official code: softmax over layers, including the embedding output; scores divided by the number of layers;
projections without bias, followed by RReLU. All nine poolings of Table 2 have the MLP head. It is also used at test,
since the code has no switch for that; ``head_at_test: false`` is a variant.

Shape suffixes: B sentences, T tokens, L layers, D width.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from .base import ReadoutModule, weighted_mean

POOLINGS: dict[str, tuple[tuple[str, str] | None, tuple[str, ...]]] = {
    # By name: the states of queries and of keys, or None without attention; the fixed vectors before the attended one.
    "cls_last": (None, ("cls_last",)),
    "avg_last": (None, ("avg_last",)),
    "avg_first_last": (None, ("avg_first_last",)),
    "avg_last_and_avg_first_last": (None, ("avg_last", "avg_first_last")),
    "cls_last_and_avg_last": (None, ("cls_last", "avg_last")),
    "attention_cls": (("cls", "cls"), ()),
    "attention_avg": (("avg", "avg"), ()),
    "attention_cls_avg": (("cls", "avg"), ()),
    "cls_last_and_attention_cls_avg": (("cls", "avg"), ("cls_last",)),
}
"""Rows of Table 2."""


class Readout(ReadoutModule):
    """Layer-wise attention pooling, or one of the fixed poolings of Table 2."""

    def __init__(self, width: int, **settings: Any) -> None:
        super().__init__(width, **settings)
        self.sides, self.fixed = POOLINGS[settings["pooling"]]
        self.width *= len(self.fixed) + (self.sides is not None)
        self.lowest = 0 if settings["embeddings"] else 1
        projection = settings["projection"]
        self.draws_per_query = projection == "rrelu_per_query"
        if self.sides is not None:
            self.query = nn.Linear(width, width, bias=False)  # W_q
            self.key = nn.Linear(width, width, bias=False)  # W_k
            self.value = nn.Linear(width, width, bias=False)  # W_v
            self.activation = nn.Identity() if projection == "linear" else nn.RReLU()

    def read(self, hidden_states: Sequence[Tensor], ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Return pooled layers in the precision of the weights, (B, D), or (B, 2D) if two vectors are concatenated."""
        with torch.autocast(mask_BT.device.type, enabled=False):
            parts = [self.fixed_vector(name, hidden_states, mask_BT) for name in self.fixed]
            if self.sides is not None:
                query_states_BLD, key_states_BLD = self.layers(hidden_states, mask_BT)
                kind = self.query.weight.dtype
                parts.append(self.attended(query_states_BLD.to(kind), key_states_BLD.to(kind)))
            return torch.cat(parts, dim=-1)

    def fixed_vector(self, name: str, hidden_states: Sequence[Tensor], mask_BT: Tensor) -> Tensor:
        """Return [CLS] or the average of the last layer, or the average over first and last layer, (B, D)."""
        kind, *layers = name.split("_")
        indices = {"first": self.settings["first_layer"], "last": -1}
        return pooled(kind, [hidden_states[indices[layer]] for layer in layers], mask_BT).mean(dim=1)

    def layers(self, hidden_states: Sequence[Tensor], mask_BT: Tensor) -> Sequence[Tensor]:
        """Return the states of queries and of keys, each (B, L, D)."""
        assert self.sides is not None
        vectors = {kind: pooled(kind, hidden_states[self.lowest :], mask_BT) for kind in set(self.sides)}
        return [vectors[kind] for kind in self.sides]

    def attended(self, query_states_BLD: Tensor, key_states_BLD: Tensor) -> Tensor:
        """Return the attended vector h^L, shape (B, D)."""
        if self.draws_per_query and self.training:
            return self._attended_per_query(query_states_BLD, key_states_BLD)
        values_BLD = self.activation(self.value(key_states_BLD))
        alpha_BLL = self.attention(query_states_BLD, key_states_BLD)
        return torch.einsum("bij,bjd->bd", alpha_BLL, values_BLD) / alpha_BLL.shape[1]

    def _attended_per_query(self, query_states_BLD: Tensor, key_states_BLD: Tensor) -> Tensor:
        """Return h^L, with random slopes of RReLU for the keys and values of each query."""
        layers = query_states_BLD.shape[1]
        queries_BLD = self.activation(self.query(query_states_BLD))
        per_query = (-1, layers, -1, -1)
        keys_BLLD = self.activation(self.key(key_states_BLD).unsqueeze(1).expand(per_query))
        values_BLLD = self.activation(self.value(key_states_BLD).unsqueeze(1).expand(per_query))
        alpha_BLL = self._weighed(torch.einsum("bid,bijd->bij", queries_BLD, keys_BLLD))
        return torch.einsum("bij,bijd->bd", alpha_BLL, values_BLLD) / layers

    def attention(self, query_states_BLD: Tensor, key_states_BLD: Tensor) -> Tensor:
        """Return attention weights alpha, shape (B, L, L), with a row for each query's layer."""
        queries_BLD = self.activation(self.query(query_states_BLD))
        keys_BLD = self.activation(self.key(key_states_BLD))
        return self._weighed(queries_BLD @ keys_BLD.transpose(1, 2))

    def _weighed(self, scores_BLL: Tensor) -> Tensor:
        """Return the weights of scores.

        ``softmax``: as in the official code. ``ratio``: a score over the sum of its row, Equation 1 read with an
        index j; rows sum to 1, but weights may be negative, and a sum near 0 makes them huge. ``diagonal``:
        Equation 1 as printed, alpha_i = s_ii / sum_j s_ij, one weight for each layer, the same for every query.
        """
        layers = scores_BLL.shape[-1]
        scale = layers if self.settings["divisor"] == "layers" else self.query.in_features**0.5
        if self.settings["weights"] == "softmax":
            return (scores_BLL / scale).softmax(dim=-1)
        ratio_BLL = scores_BLL / scores_BLL.sum(dim=-1, keepdim=True)
        if self.settings["weights"] == "ratio":
            return ratio_BLL
        return ratio_BLL.diagonal(dim1=1, dim2=2).unsqueeze(1).expand(-1, layers, -1)


def pooled(kind: str, states: Sequence[Tensor], mask_BT: Tensor) -> Tensor:
    """Return [CLS] of each layer, or the mean over its tokens, including [CLS] and [SEP], (B, L, D)."""
    return torch.stack(
        [state[:, 0] if kind == "cls" else weighted_mean(state, mask_BT) for state in states], dim=1
    )
