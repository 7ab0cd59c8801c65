"""BERT, RoBERTa, MPNet and ModernBERT over packed tokens: weights of a Transformers model, sentences end to end.

Only attention sees padding; everything else has no row for it. One product makes queries, keys and values; dropout is
keyed (``models.dropout``); and where a readout takes nothing but the first token, the last layer computes nothing else.
Outputs are those of the Transformers model within 1e-5, which other architectures go through themselves. MPNet (Song et
al. 2020, https://arxiv.org/abs/2004.09297) adds a bias by distance to scores; ModernBERT (Warner et al. 2024,
https://arxiv.org/abs/2412.13663) turns queries and keys by their places, attends to neighbours alone in most layers,
and normalises before a map instead of behind the residual.

Shape suffixes: B sentences, T tokens of the longest, N tokens in all, Q queries (T, or 1 for the first token), H heads,
E width of a head, D width.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
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
_FAR = -1e30
"""Added to scores of tokens outside a window, whose weights are 0; of infinities alone, padding would be NaN."""

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
    """Whether a family computes what this model does: not with adapters, or weights in half precision."""
    family = FAMILIES.get(backbone.config.model_type)
    if _unpacked or not family or getattr(backbone.config, "is_decoder", False):
        return False
    maps = [one for layer in family.layers_of(backbone) for one in family.parts(layer).maps]
    return all(type(one) is nn.Linear and one.weight.dtype.itemsize >= 4 for one in maps)


def packed(backbone: PreTrainedModel, packing: Packing) -> "PackedEncoder":
    """One pass of a batch through a model that ``packs``."""
    return FAMILIES[backbone.config.model_type](backbone, packing)


Weigh = Callable[[Tensor], Tensor]
"""A layer's values weighed by attention weights, (B, H, Q, T), its own or another's: a context, (N, D) or (B, D)."""


class Attended(NamedTuple):
    """What self-attention computes."""

    context_ND: Tensor
    weights_BHQT: Any
    """A tensor, after dropout; None where it was not asked for and nothing is dropped."""
    weigh: Weigh


class Parts(NamedTuple):
    """Modules of a layer's attention, whatever its family calls them, and their probabilities of dropout."""

    maps: Sequence[nn.Linear]
    """To queries, keys and values, or one to all of them."""
    norm: nn.Module
    """Of attention: behind the residual, or before the maps."""
    output: nn.Linear
    p: float
    """Of weights."""
    output_p: float


class Maps(NamedTuple):
    """To queries, keys and values of each head."""

    weight_3HED: Tensor
    bias_3HE: Tensor

    def of(self, part: int, state_xD: Tensor) -> Tensor:
        """The queries (0), keys (1) or values (2) of states."""
        return F.linear(state_xD, self.weight_3HED[part].flatten(0, 1), self.bias_3HE[part].flatten())


class PackedEncoder:
    """One pass of a batch through a model that is built as BERT.

    Args:
        backbone: The model, whose modules it calls, so that hooks on them act; in training mode it drops.
        packing: The batch.
    """

    def __init__(self, backbone: PreTrainedModel, packing: Packing) -> None:
        self._backbone: Any = backbone
        self._packing = packing
        self._masks = Masks(packing) if backbone.training else None
        self._layers = self.layers_of(backbone)

    @staticmethod
    def layers_of(backbone: Any) -> Sequence[Any]:
        """The model's layers."""
        layers: Sequence[Any] = backbone.encoder.layer
        return layers

    @staticmethod
    def parts(layer: Any) -> Parts:
        """What a layer's attention consists of."""
        own, output = layer.attention.self, layer.attention.output
        maps = own.query, own.key, own.value
        return Parts(maps, output.LayerNorm, output.dense, own.dropout.p, output.dropout.p)

    def states(self, ids_BT: Tensor, positions_BT: Tensor | None, reads: Reads) -> Iterator[Tensor]:
        """Hidden states that ``reads`` asks for, padded, (B, T, D), or (B, 1, D) of the first token."""
        state_ND = self.embedded(ids_BT, positions_BT)
        depth = len(self._layers)
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
        summed_ND = embeddings.word_embeddings(ids_N)
        if hasattr(embeddings, "token_type_embeddings"):
            summed_ND = summed_ND + embeddings.token_type_embeddings.weight[0]
        summed_ND = summed_ND + embeddings.position_embeddings(positions_N)
        return self._dropped(0, embeddings.dropout.p, embeddings.LayerNorm(summed_ND))

    def _positions(self, ids_BT: Tensor) -> Tensor:
        """BERT counts places of a row; others count tokens that are not their padding, from one past its id."""
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
        state_ND = self._entering(number, state_ND)
        if first:
            rows_BTD, maps = self._packing.rows(state_ND), self._maps(number)
            scores_BHQT = self._scores_of_first(number, maps, state_ND, rows_BTD)
            weigh = partial(self._weighed_once, maps, rows_BTD)
        else:
            queries_BHTE, keys_BHTE, values_BHTE = self._projections(number, state_ND)
            weigh = partial(self._weighed, values_BHTE)
            bias_xxxT = self._bias(number)
            if not (weights or (self._masks and self.parts(self._layers[number]).p)):
                needed = self._packing.padded or bias_xxxT is not self._packing.bias_B11T
                bias = bias_xxxT.to(values_BHTE.dtype) if needed else None
                context_BHTE = F.scaled_dot_product_attention(
                    queries_BHTE, keys_BHTE, values_BHTE, attn_mask=bias
                )
                return Attended(self._packing.joined(context_BHTE), None, weigh)
            scores_BHQT = self._scores(queries_BHTE, keys_BHTE, bias_xxxT)
        weights_BHQT = self._weights(number, scores_BHQT, first)
        return Attended(weigh(weights_BHQT), weights_BHQT, weigh)

    def weighing(self, number: int, state_ND: Tensor, *, first: bool = False) -> Weigh:
        """How the values that layer ``number`` makes of some states are weighed."""
        maps, state_ND = self._maps(number), self._entering(number, state_ND)
        if first:
            return partial(self._weighed_once, maps, self._packing.rows(state_ND))
        return partial(self._weighed, self._packing.heads(maps.of(2, state_ND), 1, self._heads)[0])

    def _entering(self, number: int, state_ND: Tensor) -> Tensor:
        """What the maps of attention are applied to."""
        return state_ND

    @property
    def _heads(self) -> int:
        return int(self._backbone.config.num_attention_heads)

    def _maps(self, number: int) -> Maps:
        maps = self.parts(self._layers[number]).maps
        weight = torch.cat([one.weight for one in maps])
        has_bias = maps[0].bias is not None
        bias = torch.cat([one.bias for one in maps]) if has_bias else weight.new_zeros(len(weight))
        return Maps(weight.view(3, self._heads, -1, weight.shape[1]), bias.view(3, self._heads, -1))

    def _bias(self, number: int) -> Tensor:
        """To add to scores: minus infinity for padding, (B, H or 1, T or 1, T)."""
        return self._packing.bias_B11T

    def _projections(self, number: int, state_ND: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, (B, H, T, E)."""
        maps = self._maps(number)
        together_ND = F.linear(state_ND, maps.weight_3HED.flatten(0, 2), maps.bias_3HE.flatten())
        return self._packing.heads(together_ND, 3, self._heads).unbind()

    def _scores(self, queries_BHTE: Tensor, keys_BHTE: Tensor, bias_xxxT: Tensor) -> Tensor:
        """Products of queries and keys over sqrt(E), (B, H, T, T), and the bias."""
        scores_xTT = torch.baddbmm(
            bias_xxxT.expand(*queries_BHTE.shape[:2], -1, -1).flatten(0, 1).to(queries_BHTE.dtype),
            queries_BHTE.flatten(0, 1),
            keys_BHTE.flatten(0, 1).transpose(1, 2),
            alpha=queries_BHTE.shape[-1] ** -0.5,
        )
        return scores_xTT.view(*queries_BHTE.shape[:3], -1)

    def _scores_of_first(self, number: int, maps: Maps, state_ND: Tensor, rows_BTD: Tensor) -> Tensor:
        """What ``_scores`` gives for the first tokens, (B, H, 1, T), without keys of the others.

        A first token asks once: q (K x + b) is (q K) x + q b. So K is applied to each sentence instead of each token.
        """
        queries_BHE = self._queries_of_first(maps, state_ND)
        asked_BHD = torch.einsum("bhe,hed->bhd", queries_BHE, maps.weight_3HED[1])
        offsets_BH = torch.einsum("bhe,he->bh", queries_BHE, maps.bias_3HE[1])
        scale: float = queries_BHE.shape[-1] ** -0.5
        scores_BHT = (asked_BHD @ rows_BTD.transpose(1, 2) + offsets_BH[..., None]) * scale
        return scores_BHT[:, :, None] + self._bias(number)[:, :, :1]

    def _queries_of_first(self, maps: Maps, state_ND: Tensor) -> Tensor:
        return maps.of(0, state_ND[self._packing.first_B]).view(-1, *maps.bias_3HE.shape[1:])

    def _weights(self, number: int, scores_BHQT: Tensor, first: bool) -> Tensor:
        """Attention weights of layer ``number`` after dropout."""
        precise = torch.promote_types(scores_BHQT.dtype, torch.float32)
        weights_BHQT: Tensor = scores_BHQT.softmax(dim=-1, dtype=precise)
        p = self.parts(self._layers[number]).p
        if not (self._masks and p):
            return weights_BHQT
        place = number * _PLACES + _ATTENTION
        return weights_BHQT * self._masks.attention(place, p, weights_BHQT.shape[1], first=first)

    def _weighed(self, values_BHTE: Tensor, weights_BHTT: Tensor) -> Tensor:
        """Values weighed by attention, all heads side by side, (N, D)."""
        return self._packing.joined(weights_BHTT.to(values_BHTE.dtype) @ values_BHTE)

    def _weighed_once(self, maps: Maps, rows_BTD: Tensor, weights_BH1T: Tensor) -> Tensor:
        """What ``_weighed`` gives for the first tokens, (B, D), without values of the others.

        Weights times (V x + b) are V times the weighed x, and b times the sum of the weights.
        """
        weights_BHT = weights_BH1T[:, :, 0]
        weighed_BHD = weights_BHT.to(rows_BTD.dtype) @ rows_BTD
        context_BHE = torch.einsum("bhd,hed->bhe", weighed_BHD, maps.weight_3HED[2])
        context_BHE += weights_BHT.sum(dim=-1, keepdim=True) * maps.bias_3HE[2]
        return context_BHE.flatten(1)

    def finished(self, number: int, context_ND: Tensor, state_ND: Tensor, *, first: bool = False) -> Tensor:
        """The rest of layer ``number`` on ``state_ND``: output projection, residual, LayerNorm, feed-forward.

        States after it, (N, D), or of the first token of each sentence, (B, D).
        """
        layer, place = self._layers[number], number * _PLACES
        attended_ND = self.parts(layer).norm(self._projected(number, context_ND, state_ND, first))
        fed_ND = layer.output.dense(layer.intermediate(attended_ND))
        summed_ND = self._added(place + _FED, layer.output.dropout.p, fed_ND, attended_ND, first)
        finished_ND: Tensor = layer.output.LayerNorm(summed_ND)
        return finished_ND

    def _projected(self, number: int, context_ND: Tensor, state_ND: Tensor, first: bool) -> Tensor:
        """The context through the output projection, and the residual."""
        residual_ND = state_ND[self._packing.first_B] if first else state_ND
        parts, place = self.parts(self._layers[number]), number * _PLACES + _PROJECTED
        return self._added(place, parts.output_p, parts.output(context_ND), residual_ND, first)

    def _dropped(self, place: int, p: float, state_ND: Tensor, first: bool = False) -> Tensor:
        """What is left of a state after dropout."""
        if not (self._masks and p):
            return state_ND
        return state_ND * self._masks.hidden(place, p, state_ND.shape[1], first=first)

    def _added(self, place: int, p: float, state_ND: Tensor, residual_ND: Tensor, first: bool) -> Tensor:
        """What is left of a state after dropout, and the residual."""
        if not (self._masks and p):
            return residual_ND + state_ND
        factors_ND = self._masks.hidden(place, p, state_ND.shape[1], first=first)
        return torch.addcmul(residual_ND, state_ND, factors_ND)


class PackedMPNet(PackedEncoder):
    """MPNet: BERT without token types, whose layers share a bias of each head by the distance of two tokens."""

    @staticmethod
    def parts(layer: Any) -> Parts:
        """What a layer's attention consists of."""
        attention, own = layer.attention, layer.attention.attn
        return Parts((own.q, own.k, own.v), attention.LayerNorm, own.o, own.dropout.p, attention.dropout.p)

    @cached_property
    def _by_distance(self) -> Tensor:
        padding_B11T = self._packing.bias_B11T
        relative_1HTT: Tensor = self._backbone.encoder.compute_position_bias(
            padding_B11T[:1, 0, 0]
        )  # of its shape
        return relative_1HTT + padding_B11T

    def _bias(self, number: int) -> Tensor:
        return self._by_distance


class PackedModernBert(PackedEncoder):
    """ModernBERT: rotary positions, windows of attention, a gated feed-forward, LayerNorm before each map."""

    @staticmethod
    def layers_of(backbone: Any) -> Sequence[Any]:
        """The model's layers."""
        layers: Sequence[Any] = backbone.layers
        return layers

    @staticmethod
    def parts(layer: Any) -> Parts:
        """What a layer's attention consists of; what drops nothing was made without a module for it."""
        own = layer.attn
        p = getattr(own.out_drop, "p", 0.0)
        return Parts((own.Wqkv,), layer.attn_norm, own.Wo, own.attention_dropout, p)

    def embedded(self, ids_BT: Tensor, positions_BT: Tensor | None = None) -> Tensor:
        """The embedding output of the tokens, (N, D); positions are places in a row where none are given."""
        embeddings = self._backbone.embeddings
        state_ND = embeddings.norm(embeddings.tok_embeddings(ids_BT.flatten()[self._packing.places_N]))
        if positions_BT is None:
            positions_BT = torch.arange(ids_BT.shape[1], device=ids_BT.device)[None]
        self._angles: dict[str, tuple[Tensor, Tensor]] = {
            kind: self._backbone.rotary_emb(state_ND, positions_BT, kind)
            for kind in dict.fromkeys(layer.attention_type for layer in self._layers)
        }
        return self._dropped(0, embeddings.drop.p, state_ND)

    def _entering(self, number: int, state_ND: Tensor) -> Tensor:
        normed_ND: Tensor = self.parts(self._layers[number]).norm(state_ND)
        return normed_ND

    @cached_property
    def _in_windows(self) -> Tensor:
        place_T = torch.arange(self._packing.width, device=self._packing.first_B.device)
        far_TT = (place_T[:, None] - place_T).abs() > int(self._backbone.config.sliding_window)
        return self._packing.bias_B11T + _FAR * far_TT

    def _bias(self, number: int) -> Tensor:
        fits = self._packing.width <= self._backbone.config.sliding_window + 1
        whole = fits or self._layers[number].attention_type == "full_attention"
        return self._packing.bias_B11T if whole else self._in_windows

    def _projections(self, number: int, state_ND: Tensor) -> tuple[Tensor, ...]:
        """Queries and keys, turned, and values, (B, H, T, E)."""
        queries_BHTE, keys_BHTE, values_BHTE = super()._projections(number, state_ND)
        return self._turned(number, queries_BHTE), self._turned(number, keys_BHTE), values_BHTE

    def _turned(self, number: int, vectors_BHTE: Tensor) -> Tensor:
        """Pairs of entries E/2 apart, each turned by its angle (Su et al. 2021); of the first tokens where T is 1."""
        cos_xTE, sin_xTE = (
            one[:, None, : vectors_BHTE.shape[2]] for one in self._angles[self._layers[number].attention_type]
        )
        one, other = vectors_BHTE.chunk(2, dim=-1)
        turned = vectors_BHTE * cos_xTE + torch.cat([-other, one], dim=-1) * sin_xTE
        return turned.to(vectors_BHTE.dtype)

    def _scores_of_first(self, number: int, maps: Maps, state_ND: Tensor, rows_BTD: Tensor) -> Tensor:
        """What ``_scores`` gives for the first tokens, (B, H, 1, T); keys are turned, so every token needs its own."""
        queries_BH1E = self._turned(number, self._queries_of_first(maps, state_ND)[:, :, None])
        keys_BHTE = self._turned(number, self._packing.heads(maps.of(1, state_ND), 1, self._heads)[0])
        return self._scores(queries_BH1E, keys_BHTE, self._bias(number)[:, :, :1])

    def finished(self, number: int, context_ND: Tensor, state_ND: Tensor, *, first: bool = False) -> Tensor:
        """The rest of layer ``number``, and the last LayerNorm behind the last one, (N, D) or (B, D)."""
        attended_ND = self._projected(number, context_ND, state_ND, first)
        layer = self._layers[number]
        wide_NF, gate_NF = layer.mlp.Wi(layer.mlp_norm(attended_ND)).chunk(2, dim=-1)
        gated_NF = layer.mlp.act(wide_NF) * gate_NF
        place = number * _PLACES + _FED
        finished_ND: Tensor = attended_ND + layer.mlp.Wo(
            self._dropped(place, layer.mlp.drop.p, gated_NF, first)
        )
        if number + 1 == len(self._layers):
            finished_ND = self._backbone.final_norm(finished_ND)
        return finished_ND


FAMILIES: Mapping[str, type[PackedEncoder]] = dict.fromkeys(BUILT_AS_BERT, PackedEncoder) | {
    "mpnet": PackedMPNet,
    "modernbert": PackedModernBert,
}
"""Model types of Transformers that run on packed tokens."""
