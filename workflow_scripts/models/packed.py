"""BERT and RoBERTa over packed tokens: the weights of a Transformers model, its sentences end to end.

Only attention sees padding; everything else has no row for it. One product makes queries, keys and values; dropout is
keyed (``models.dropout``); and where a readout takes nothing but the first token, the last layer computes nothing else.
Outputs are those of the Transformers model within 1e-5, which other architectures go through themselves.

Shape suffixes: B sentences, T tokens of the longest, N tokens in all, Q queries (T, or 1 for the first token), H heads,
E width of a head, D width.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.models.dropout import Masks
from workflow_scripts.models.readouts.base import Reads
from workflow_scripts.models.tokens import Packing
from workflow_scripts.settings.start import BUILT_AS_BERT

_ATTENTION, _PROJECTED, _FED, _PLACES = 1, 2, 3, 4  # where a layer drops; place 0 is that of the embeddings


_unpacked: list[bool] = []


@contextmanager
def unpacked() -> Iterator[None]:
    """Let Transformers compute every model inside, so that hooks on its layers see all that they do."""
    _unpacked.append(True)
    try:
        yield
    finally:
        _unpacked.pop()


def packs(backbone: Any) -> bool:
    """Whether ``PackedEncoder`` computes what this model does: not with adapters, or weights in half precision."""
    config = backbone.config
    if _unpacked or config.model_type not in BUILT_AS_BERT or getattr(config, "is_decoder", False):
        return False
    attentions = [layer.attention.self for layer in backbone.encoder.layer]
    maps = [m for attention in attentions for m in (attention.query, attention.key, attention.value)]
    return all(type(m) is nn.Linear and m.weight.dtype.itemsize >= 4 for m in maps)


Weigh = Callable[[Tensor], Tensor]
"""A layer's values weighed by attention weights, (B, H, Q, T), its own or another's: a context, (N, D) or (B, D)."""


class Attended(NamedTuple):
    """What self-attention computes."""

    context_ND: Tensor
    weights_BHQT: Any
    """A tensor, after dropout; None where it was not asked for and nothing is dropped."""
    weigh: Weigh


class PackedEncoder:
    """One pass of a batch through a model that ``packs``.

    Args:
        backbone: The model, whose modules it calls, so that hooks on them act; in training mode it drops.
        packing: The batch.
    """

    def __init__(self, backbone: PreTrainedModel, packing: Packing) -> None:
        self._backbone: Any = backbone
        self._packing = packing
        self._masks = Masks(packing) if backbone.training else None

    def states(self, ids_BT: Tensor, positions_BT: Tensor | None, reads: Reads) -> Iterator[Tensor]:
        """Hidden states that ``reads`` asks for, padded, (B, T, D), or (B, 1, D) of the first token."""
        state_ND = self.embedded(ids_BT, positions_BT)
        depth = len(self._backbone.encoder.layer)
        for number in range(depth):
            if reads == "all":
                yield self._packing.rows(state_ND)
            first = reads == "first" and number + 1 == depth
            context_ND = self.attended(number, state_ND, first=first).context_ND
            state_ND = self.finished(number, context_ND, state_ND, first=first)
        yield state_ND[:, None] if reads == "first" else self._packing.rows(state_ND)

    def embedded(self, ids_BT: Tensor, positions_BT: Tensor | None = None) -> Tensor:
        """The embedding output of the tokens, (N, D); positions are those of the model where none are given."""
        embeddings, packing = self._backbone.embeddings, self._packing
        ids_N = ids_BT.flatten()[packing.places_N]
        if positions_BT is None:
            positions_N = self._positions(ids_BT)
        else:
            positions_N = positions_BT.expand_as(ids_BT).flatten()[packing.places_N]
        summed_ND = embeddings.word_embeddings(ids_N) + embeddings.token_type_embeddings.weight[0]
        summed_ND = summed_ND + embeddings.position_embeddings(positions_N)
        normed_ND: Tensor = embeddings.LayerNorm(summed_ND)
        p = embeddings.dropout.p
        return normed_ND * self._masks.hidden(0, p, normed_ND.shape[1]) if self._masks and p else normed_ND

    def _positions(self, ids_BT: Tensor) -> Tensor:
        """BERT counts places of a row; RoBERTa counts tokens that are not its padding, from one past its id."""
        padding = self._backbone.embeddings.position_embeddings.padding_idx
        if padding is None:
            return self._packing.token_columns
        token_BT = (ids_BT != padding).long()
        position_BT: Tensor = token_BT.cumsum(dim=1) * token_BT + padding
        return position_BT.flatten()[self._packing.places_N]

    def attended(
        self, number: int, state_ND: Tensor, *, first: bool = False, weights: bool = False
    ) -> Attended:
        """Self-attention of layer ``number`` (from 0), before its output projection."""
        attention = self._backbone.encoder.layer[number].attention.self
        if first:
            rows_BTD = self._packing.rows(state_ND)
            scores_BHQT = self._scores_of_first(attention, state_ND, rows_BTD)
            weigh = partial(self._weighed_once, attention.value, rows_BTD)
        else:
            queries_BHTE, keys_BHTE, values_BHTE = self._projections(attention, state_ND)
            weigh = partial(self._weighed, values_BHTE)
            if not (weights or (self._masks and attention.dropout.p)):
                bias_B11T = self._packing.bias_B11T.to(values_BHTE.dtype) if self._packing.padded else None
                context_BHTE = F.scaled_dot_product_attention(
                    queries_BHTE, keys_BHTE, values_BHTE, attn_mask=bias_B11T
                )
                return Attended(self._packing.joined(context_BHTE), None, weigh)
            scores_BHQT = self._scores(queries_BHTE, keys_BHTE)
        weights_BHQT = self._weights(number, scores_BHQT, first)
        return Attended(weigh(weights_BHQT), weights_BHQT, weigh)

    def weighing(self, number: int, state_ND: Tensor, *, first: bool = False) -> Weigh:
        """How the values that layer ``number`` makes of some states are weighed."""
        attention = self._backbone.encoder.layer[number].attention.self
        if first:
            return partial(self._weighed_once, attention.value, self._packing.rows(state_ND))
        values_ND = attention.value(state_ND)
        return partial(self._weighed, self._packing.heads(values_ND, 1, attention.num_attention_heads)[0])

    def _projections(self, attention: Any, state_ND: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, (B, H, T, E)."""
        maps = attention.query, attention.key, attention.value
        weight, bias = torch.cat([m.weight for m in maps]), torch.cat([m.bias for m in maps])
        together_ND = F.linear(state_ND, weight, bias)
        return self._packing.heads(together_ND, len(maps), attention.num_attention_heads).unbind()

    def _scores(self, queries_BHTE: Tensor, keys_BHTE: Tensor) -> Tensor:
        """Products of queries and keys over sqrt(E), (B, H, T, T), minus infinity for padding."""
        bias_BH1T = self._packing.bias_B11T.expand(-1, queries_BHTE.shape[1], -1, -1)
        scores_xTT = torch.baddbmm(
            bias_BH1T.flatten(0, 1).to(queries_BHTE.dtype),
            queries_BHTE.flatten(0, 1),
            keys_BHTE.flatten(0, 1).transpose(1, 2),
            alpha=queries_BHTE.shape[-1] ** -0.5,
        )
        return scores_xTT.view(*queries_BHTE.shape[:3], -1)

    def _scores_of_first(self, attention: Any, state_ND: Tensor, rows_BTD: Tensor) -> Tensor:
        """What ``_scores`` gives for the first tokens, (B, H, 1, T), without keys of the others.

        A first token asks once: q (K x + b) is (q K) x + q b. So K is applied to each sentence instead of each token.
        """
        heads, key = attention.num_attention_heads, attention.key
        queries_BD: Tensor = attention.query(state_ND[self._packing.first_B])
        queries_BHE = queries_BD.view(len(queries_BD), heads, -1)
        asked_BHD = torch.einsum("bhe,hed->bhd", queries_BHE, key.weight.view(heads, -1, rows_BTD.shape[2]))
        offsets_BH = torch.einsum("bhe,he->bh", queries_BHE, key.bias.view(heads, -1))
        scale: float = queries_BHE.shape[-1] ** -0.5
        scores_BHT = (asked_BHD @ rows_BTD.transpose(1, 2) + offsets_BH[..., None]) * scale
        return scores_BHT[:, :, None] + self._packing.bias_B11T

    def _weights(self, number: int, scores_BHQT: Tensor, first: bool) -> Tensor:
        """Attention weights of layer ``number`` after dropout."""
        precise = torch.promote_types(scores_BHQT.dtype, torch.float32)
        weights_BHQT: Tensor = scores_BHQT.softmax(dim=-1, dtype=precise)
        p = self._backbone.encoder.layer[number].attention.self.dropout.p
        if not (self._masks and p):
            return weights_BHQT
        place = number * _PLACES + _ATTENTION
        return weights_BHQT * self._masks.attention(place, p, weights_BHQT.shape[1], first=first)

    def _weighed(self, values_BHTE: Tensor, weights_BHTT: Tensor) -> Tensor:
        """Values weighed by attention, all heads side by side, (N, D)."""
        return self._packing.joined(weights_BHTT.to(values_BHTE.dtype) @ values_BHTE)

    def _weighed_once(self, value: Any, rows_BTD: Tensor, weights_BH1T: Tensor) -> Tensor:
        """What ``_weighed`` gives for the first tokens, (B, D), without values of the others.

        Weights times (V x + b) are V times the weighed x, and b times the sum of the weights.
        """
        weights_BHT, heads = weights_BH1T[:, :, 0], weights_BH1T.shape[1]
        weighed_BHD = weights_BHT.to(rows_BTD.dtype) @ rows_BTD
        context_BHE = torch.einsum(
            "bhd,hed->bhe", weighed_BHD, value.weight.view(heads, -1, rows_BTD.shape[2])
        )
        context_BHE += weights_BHT.sum(dim=-1, keepdim=True) * value.bias.view(heads, -1)
        return context_BHE.flatten(1)

    def finished(self, number: int, context_ND: Tensor, state_ND: Tensor, *, first: bool = False) -> Tensor:
        """The rest of layer ``number`` on ``state_ND``: output projection, residual, LayerNorm, feed-forward.

        States after it, (N, D), or of the first token of each sentence, (B, D).
        """
        residual_ND = state_ND[self._packing.first_B] if first else state_ND
        layer = self._backbone.encoder.layer[number]
        output, place = layer.attention.output, number * _PLACES
        projected_ND = output.dense(context_ND)
        summed_ND = self._added(place + _PROJECTED, output.dropout.p, projected_ND, residual_ND, first)
        attended_ND = output.LayerNorm(summed_ND)
        fed_ND = layer.output.dense(layer.intermediate(attended_ND))
        summed_ND = self._added(place + _FED, layer.output.dropout.p, fed_ND, attended_ND, first)
        finished_ND: Tensor = layer.output.LayerNorm(summed_ND)
        return finished_ND

    def _added(self, place: int, p: float, state_ND: Tensor, residual_ND: Tensor, first: bool) -> Tensor:
        """What is left of a state after dropout, and the residual."""
        if not (self._masks and p):
            return residual_ND + state_ND
        factors_ND = self._masks.hidden(place, p, state_ND.shape[1], first=first)
        return torch.addcmul(residual_ND, state_ND, factors_ND)
