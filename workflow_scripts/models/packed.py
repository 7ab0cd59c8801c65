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
from functools import cache
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.models.dropout import Masks
from workflow_scripts.models.readouts.base import Reads
from workflow_scripts.models.tokens import Packing
from workflow_scripts.settings.start import BUILT_AS_BERT

PLACES = 4
"""Places of dropout for each layer: the embeddings' (of the first layer alone), weights, and both sums."""
_ATTENTION, _PROJECTED, _FED = 0, 1, 2  # where a layer drops, from place 1 on
_FAR = -1e30
"""Added to scores of tokens outside a window, whose weights are 0; of infinities alone, padding would be NaN."""

_unpacked: list[bool] = []
_compiling: list[bool] = []


@contextmanager
def unpacked() -> Iterator[None]:
    """Let Transformers compute every model inside, so that hooks on its layers see all that they do."""
    _unpacked.append(True)
    try:
        yield
    finally:
        _unpacked.pop()


@contextmanager
def compiled() -> Iterator[None]:
    """Let PyTorch compile the layers that run inside, once for all layers and shapes: for long work on a GPU."""
    _compiling.append(True)
    try:
        yield
    finally:
        _compiling.pop()


@cache
def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, dynamic=True, fullgraph=True)


def packs(backbone: Any) -> bool:
    """Whether a family computes what this model does: not with adapters, or weights in half precision."""
    family = FAMILIES.get(backbone.config.model_type)
    if _unpacked or not family or getattr(backbone.config, "is_decoder", False):
        return False
    maps = [one for layer in family.layers_of(backbone) for one in family.parts(layer).maps]
    return all(type(one) is nn.Linear and one.weight.dtype.itemsize >= 4 for one in maps)


def packed(backbone: PreTrainedModel, packing: Packing, masks: Masks | None) -> "PackedEncoder":
    """One pass of a batch through a model that ``packs``."""
    return FAMILIES[backbone.config.model_type](backbone, packing, masks)


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


class Values(NamedTuple):
    """Values of a layer, to be weighed by attention: computed, or as states that they are made of once weighed."""

    rows: Tensor
    """Values of each head, (B, H, T, E), or states, (B, T, D)."""
    maps: Maps | None = None
    """Of the states to values."""


class Attended(NamedTuple):
    """Result of self-attention."""

    context_ND: Tensor
    weights_BHQT: Any
    """A tensor, after dropout; None where it was not asked for and nothing is dropped."""
    values: Values


class Layer(NamedTuple):
    """A layer of the model and all that it reads beside states."""

    module: Any
    keys_K: Tensor | None
    """Of its places of dropout; None where nothing is dropped."""
    bias_xxxT: Tensor
    """Added to scores: minus infinity for padding, (B, H or 1, T or 1, T)."""
    is_masked: bool
    """Whether the bias is anywhere other than 0."""
    is_last: bool


class PackedEncoder:
    """One pass of a batch through a model that is built as BERT.

    A layer is a function of tensors: its weights, states, bias and keys. Inside ``compiled`` PyTorch compiles it.

    Args:
        backbone: The model, whose modules it calls, so that hooks on them act.
        packing: The batch.
        masks: What is dropped, if anything is.
    """

    def __init__(self, backbone: PreTrainedModel, packing: Packing, masks: Masks | None) -> None:
        self._backbone: Any = backbone
        self._packing = packing
        self._masks = masks
        layers = self.layers_of(backbone)
        self._layers = [
            Layer(
                module,
                None if masks is None else masks.places(number * PLACES + 1, PLACES - 1),
                bias_xxxT,
                packing.padded or bias_xxxT is not packing.bias_B11T,
                number + 1 == len(layers),
            )
            for number, (module, bias_xxxT) in enumerate(zip(layers, self.biases(layers), strict=True))
        ]

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

    def biases(self, layers: Sequence[Any]) -> Sequence[Tensor]:
        """What each layer adds to its scores (``Layer.bias_xxxT``)."""
        return [self._packing.bias_B11T] * len(layers)

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
        return self._dropped(self._first_key, embeddings.dropout.p, embeddings.LayerNorm(summed_ND))

    @property
    def _first_key(self) -> Tensor | None:
        """That of the embeddings' dropout."""
        return None if self._masks is None else self._masks.places(0, 1)[0]

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
        attend = type(self)._attend  # of the class, so that it is compiled once for all batches
        return (_compile(attend) if _compiling else attend)(
            self, self._layers[number], state_ND, first, weights
        )

    def finished(self, number: int, context_ND: Tensor, state_ND: Tensor, *, first: bool = False) -> Tensor:
        """The rest of layer ``number`` on ``state_ND``: output projection, residual, LayerNorm, feed-forward.

        States after it, (N, D), or of the first token of each sentence, (B, D).
        """
        finish = type(self)._finish
        return (_compile(finish) if _compiling else finish)(
            self, self._layers[number], context_ND, state_ND, first
        )

    def _attend(self, layer: Layer, state_ND: Tensor, first: bool, weights: bool) -> Attended:
        state_ND = self._entering(layer, state_ND)
        if first:
            values = Values(self._packing.rows(state_ND), self._maps(layer))
            scores_BHQT = self._scores_of_first(layer, values, state_ND)
        else:
            queries_BHTE, keys_BHTE, values_BHTE = self._projections(layer, state_ND)
            values = Values(values_BHTE)
            if not weights and (layer.keys_K is None or not self.parts(layer.module).p):
                bias = layer.bias_xxxT.to(values_BHTE.dtype) if layer.is_masked else None
                context_BHTE = F.scaled_dot_product_attention(
                    queries_BHTE, keys_BHTE, values_BHTE, attn_mask=bias
                )
                return Attended(self._packing.joined(context_BHTE), None, values)
            scores_BHQT = self._scores(queries_BHTE, keys_BHTE, layer.bias_xxxT)
        weights_BHQT = self._weights(layer, scores_BHQT, first)
        return Attended(self.weighed(values, weights_BHQT), weights_BHQT, values)

    def values(self, number: int, state_ND: Tensor, *, first: bool = False) -> Values:
        """The values that layer ``number`` makes of some states."""
        layer = self._layers[number]
        maps, state_ND = self._maps(layer), self._entering(layer, state_ND)
        if first:
            return Values(self._packing.rows(state_ND), maps)
        return Values(self._packing.heads(maps.of(2, state_ND), 1, self._heads)[0])

    def weighed(self, values: Values, weights_BHQT: Tensor) -> Tensor:
        """Values weighed by attention, all heads side by side, (N, D), or of the first tokens, (B, D)."""
        if values.maps is None:
            return self._packing.joined(weights_BHQT.to(values.rows.dtype) @ values.rows)
        # Weights times (V x + b) are V times the weighed x, and b times the sum of the weights.
        weights_BHT = weights_BHQT[:, :, 0]
        weighed_BHD = weights_BHT.to(values.rows.dtype) @ values.rows
        context_BHE = torch.einsum("bhd,hed->bhe", weighed_BHD, values.maps.weight_3HED[2])
        context_BHE += weights_BHT.sum(dim=-1, keepdim=True) * values.maps.bias_3HE[2]
        return context_BHE.flatten(1)

    def _entering(self, layer: Layer, state_ND: Tensor) -> Tensor:
        """What the maps of attention are applied to."""
        return state_ND

    @property
    def _heads(self) -> int:
        return int(self._backbone.config.num_attention_heads)

    def _maps(self, layer: Layer) -> Maps:
        maps = self.parts(layer.module).maps
        weight = torch.cat([one.weight for one in maps])
        has_bias = maps[0].bias is not None
        bias = torch.cat([one.bias for one in maps]) if has_bias else weight.new_zeros(len(weight))
        return Maps(weight.view(3, self._heads, -1, weight.shape[1]), bias.view(3, self._heads, -1))

    def _projections(self, layer: Layer, state_ND: Tensor) -> tuple[Tensor, ...]:
        """Queries, keys and values, (B, H, T, E)."""
        maps = self._maps(layer)
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

    def _scores_of_first(self, layer: Layer, values: Values, state_ND: Tensor) -> Tensor:
        """Scores of the first tokens, (B, H, 1, T), without keys of the others.

        A first token asks once: q (K x + b) is (q K) x + q b. So K is applied to each sentence instead of each token.
        """
        rows_BTD, maps = values
        assert maps is not None
        queries_BHE = self._queries_of_first(maps, state_ND)
        asked_BHD = torch.einsum("bhe,hed->bhd", queries_BHE, maps.weight_3HED[1])
        offsets_BH = torch.einsum("bhe,he->bh", queries_BHE, maps.bias_3HE[1])
        scale: float = queries_BHE.shape[-1] ** -0.5
        scores_BHT = (asked_BHD @ rows_BTD.transpose(1, 2) + offsets_BH[..., None]) * scale
        return scores_BHT[:, :, None] + layer.bias_xxxT[:, :, :1]

    def _queries_of_first(self, maps: Maps, state_ND: Tensor) -> Tensor:
        return maps.of(0, state_ND[self._packing.first_B]).view(-1, *maps.bias_3HE.shape[1:])

    def _weights(self, layer: Layer, scores_BHQT: Tensor, first: bool) -> Tensor:
        """Attention weights of a layer after dropout."""
        precise = torch.promote_types(scores_BHQT.dtype, torch.float32)
        weights_BHQT: Tensor = scores_BHQT.softmax(dim=-1, dtype=precise)
        p = self.parts(layer.module).p
        if layer.keys_K is None or not p:
            return weights_BHQT
        assert self._masks is not None
        key = layer.keys_K[_ATTENTION]
        return weights_BHQT * self._masks.attention(key, p, weights_BHQT.shape[1], first=first)

    def _finish(self, layer: Layer, context_ND: Tensor, state_ND: Tensor, first: bool) -> Tensor:
        attended_ND = self.parts(layer.module).norm(self._projected(layer, context_ND, state_ND, first))
        output = layer.module.output
        fed_ND = output.dense(layer.module.intermediate(attended_ND))
        finished_ND: Tensor = output.LayerNorm(
            self._added(layer, _FED, output.dropout.p, fed_ND, attended_ND, first)
        )
        return finished_ND

    def _projected(self, layer: Layer, context_ND: Tensor, state_ND: Tensor, first: bool) -> Tensor:
        """The context through the output projection, and the residual."""
        residual_ND = state_ND[self._packing.first_B] if first else state_ND
        parts = self.parts(layer.module)
        return self._added(layer, _PROJECTED, parts.output_p, parts.output(context_ND), residual_ND, first)

    def _dropped(self, key: Tensor | None, p: float, state_ND: Tensor, first: bool = False) -> Tensor:
        """What is left of a state after dropout."""
        if key is None or not p:
            return state_ND
        assert self._masks is not None
        return state_ND * self._masks.hidden(key, p, state_ND.shape[1], first=first)

    def _added(
        self, layer: Layer, place: int, p: float, state_ND: Tensor, residual_ND: Tensor, first: bool
    ) -> Tensor:
        """What is left of a state after dropout, and the residual."""
        if layer.keys_K is None or not p:
            return residual_ND + state_ND
        assert self._masks is not None
        factors_ND = self._masks.hidden(layer.keys_K[place], p, state_ND.shape[1], first=first)
        return torch.addcmul(residual_ND, state_ND, factors_ND)


class PackedMPNet(PackedEncoder):
    """MPNet: BERT without token types, whose layers share a bias of each head by the distance of two tokens."""

    @staticmethod
    def parts(layer: Any) -> Parts:
        """What a layer's attention consists of."""
        attention, own = layer.attention, layer.attention.attn
        return Parts((own.q, own.k, own.v), attention.LayerNorm, own.o, own.dropout.p, attention.dropout.p)

    def biases(self, layers: Sequence[Any]) -> Sequence[Tensor]:
        """By distance, the same for all layers, and padding's."""
        padding_B11T = self._packing.bias_B11T
        relative_1HTT: Tensor = self._backbone.encoder.compute_position_bias(
            padding_B11T[:1, 0, 0]
        )  # of its shape
        return [relative_1HTT + padding_B11T] * len(layers)


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
            for kind in dict.fromkeys(layer.module.attention_type for layer in self._layers)
        }
        return self._dropped(self._first_key, embeddings.drop.p, state_ND)

    def _entering(self, layer: Layer, state_ND: Tensor) -> Tensor:
        normed_ND: Tensor = self.parts(layer.module).norm(state_ND)
        return normed_ND

    def biases(self, layers: Sequence[Any]) -> Sequence[Tensor]:
        """Padding's, and beyond it that of tokens outside the window for layers that attend to neighbours alone."""
        whole_B11T, window = self._packing.bias_B11T, int(self._backbone.config.sliding_window)
        if self._packing.width <= window + 1:
            return [whole_B11T] * len(layers)
        place_T = torch.arange(self._packing.width, device=whole_B11T.device)
        windows_B1TT = whole_B11T + _FAR * ((place_T[:, None] - place_T).abs() > window)
        return [whole_B11T if one.attention_type == "full_attention" else windows_B1TT for one in layers]

    def _projections(self, layer: Layer, state_ND: Tensor) -> tuple[Tensor, ...]:
        """Queries and keys, turned, and values, (B, H, T, E)."""
        queries_BHTE, keys_BHTE, values_BHTE = super()._projections(layer, state_ND)
        return self._turned(layer, queries_BHTE), self._turned(layer, keys_BHTE), values_BHTE

    def _turned(self, layer: Layer, vectors_BHTE: Tensor) -> Tensor:
        """Pairs of entries E/2 apart, each turned by its angle (Su et al. 2021); of the first tokens where T is 1."""
        cos_xTE, sin_xTE = (
            one[:, None, : vectors_BHTE.shape[2]] for one in self._angles[layer.module.attention_type]
        )
        one, other = vectors_BHTE.chunk(2, dim=-1)
        turned = vectors_BHTE * cos_xTE + torch.cat([-other, one], dim=-1) * sin_xTE
        return turned.to(vectors_BHTE.dtype)

    def _scores_of_first(self, layer: Layer, values: Values, state_ND: Tensor) -> Tensor:
        """Scores of the first tokens, (B, H, 1, T); keys are turned, so every token needs its own."""
        assert values.maps is not None
        queries_BH1E = self._turned(layer, self._queries_of_first(values.maps, state_ND)[:, :, None])
        keys_BHTE = self._packing.heads(values.maps.of(1, state_ND), 1, self._heads)[0]
        return self._scores(queries_BH1E, self._turned(layer, keys_BHTE), layer.bias_xxxT[:, :, :1])

    def _finish(self, layer: Layer, context_ND: Tensor, state_ND: Tensor, first: bool) -> Tensor:
        attended_ND = self._projected(layer, context_ND, state_ND, first)
        mlp = layer.module.mlp
        wide_NF, gate_NF = mlp.Wi(layer.module.mlp_norm(attended_ND)).chunk(2, dim=-1)
        key = None if layer.keys_K is None else layer.keys_K[_FED]
        gated_NF = self._dropped(key, mlp.drop.p, mlp.act(wide_NF) * gate_NF, first)
        finished_ND: Tensor = attended_ND + mlp.Wo(gated_NF)
        return self._backbone.final_norm(finished_ND) if layer.is_last else finished_ND


FAMILIES: Mapping[str, type[PackedEncoder]] = dict.fromkeys(BUILT_AS_BERT, PackedEncoder) | {
    "mpnet": PackedMPNet,
    "modernbert": PackedModernBert,
}
"""Model types of Transformers that run on packed tokens."""
