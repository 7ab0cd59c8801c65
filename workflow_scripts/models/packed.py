"""BERT, RoBERTa and MPNet over packed tokens: weights of a Transformers model, sentences end to end.

Only attention has rows for padding. One product makes queries, keys and values; dropout is keyed (``models.dropout``);
if a readout uses only the first token, the last layer computes nothing else. Outputs equal those of the Transformers
model within 1e-5. Other architectures are computed by Transformers. MPNet (Song et al. 2020,
https://arxiv.org/abs/2004.09297) adds a bias by distance to scores.

Shape suffixes: B sentences, T tokens of the longest, N tokens of all, Q queries (T, or 1 for the first token), H heads,
E width of a head, D width.
"""

import os
import shutil
import sys
import sysconfig
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import torch
import torch._functorch.config as functorch_config
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from transformers import PretrainedConfig, PreTrainedModel

from workflow_scripts.models.contexts import COMPILER_FAILURES, COMPILING, UNPACKED
from workflow_scripts.models.devices import first_line
from workflow_scripts.models.dropout import DropoutMasks
from workflow_scripts.models.readouts.base import Reads
from workflow_scripts.models.tokens import Packing
from workflow_scripts.settings.readouts import BUILT_AS_BERT

T = TypeVar("T")
SITES = 4
"""Sites of dropout in each layer: embeddings (in the first layer only), attention weights, and both sums."""
_ATTENTION, _PROJECTED, _FED = 0, 1, 2  # indices of a layer's own sites, which begin with site 1


@contextmanager
def unpacked() -> Iterator[None]:
    """Let Transformers compute all models inside the block, which gives hooks on layers complete outputs."""
    UNPACKED.append(True)
    try:
        yield
    finally:
        UNPACKED.pop()


@contextmanager
def compiled() -> Iterator[None]:
    """Compile layers inside the block, once for all layers and shapes: for long work on a GPU.

    If a compilation fails, one line is printed, and all work continues without compilation.
    """
    COMPILING.append(True)
    try:
        yield
    finally:
        COMPILING.pop()


def can_compile() -> bool:
    """Return whether layers can be compiled: Triton's driver needs a C compiler and Python's headers."""
    if not COMPILER_FAILURES:
        names = [os.environ["CC"]] if "CC" in os.environ else ["gcc", "clang"]
        if not any(map(shutil.which, names)):
            _give_up(f"no C compiler: {' or '.join(names)} is not installed")
        elif not (header := Path(sysconfig.get_paths()["include"], "Python.h")).exists():
            _give_up(f"no headers of Python: {header} is missing")
    return not COMPILER_FAILURES


def _give_up(reason: str) -> None:
    COMPILER_FAILURES.append(reason)
    remark = "The work continues without compilation, and takes longer."
    print(f"layers are not compiled: {reason}. {remark}", file=sys.stderr)  # noqa: T201


@cache
def _compile(function: Callable[..., Any]) -> Callable[..., Any]:
    # Compiles the backward pass with the forward pass: a later error in the backward pass would end the work.
    functorch_config.force_non_lazy_backward_lowering = True
    return torch.compile(function, dynamic=True, fullgraph=True)


def _called(function: Callable[..., T], *arguments: Any) -> T:
    """Return the result of a function of a layer, which is compiled inside ``compiled``."""
    if not COMPILING or COMPILER_FAILURES:
        return function(*arguments)
    try:
        result: T = _compile(function)(*arguments)
        return result
    except torch.OutOfMemoryError:
        raise
    except Exception as error:  # of any part of the compiler; an error of the function itself is raised again
        _give_up(first_line(error))
        return function(*arguments)


def entry_of(config: PretrainedConfig, name: str) -> Any:
    """Return an entry of a model's configuration; None for architectures without it."""
    return getattr(config, name, None)


def packs(backbone: Any) -> bool:
    """Return whether the model can run on packed tokens: not with adapters, nor with weights in half precision."""
    family = FAMILIES.get(backbone.config.model_type)
    if UNPACKED or not family or entry_of(backbone.config, "is_decoder"):
        return False
    maps = [linear for layer in backbone.encoder.layer for linear in family.parts(layer).maps]
    return all(type(linear) is nn.Linear and linear.weight.dtype.itemsize >= 4 for linear in maps)


def packed(backbone: PreTrainedModel, packing: Packing, masks: DropoutMasks | None) -> "PackedEncoder":
    """Return one pass of a batch through a model for which ``packs`` is true."""
    return FAMILIES[backbone.config.model_type](backbone, packing, masks)


class Parts(NamedTuple):
    """Modules of a layer's attention under common names, and their probabilities of dropout."""

    maps: Sequence[nn.Linear]
    """Maps to queries, keys and values."""
    norm: nn.Module
    """LayerNorm after the residual."""
    output: nn.Linear
    p: float
    """Dropout of attention weights."""
    output_p: float


class QKVMaps(NamedTuple):
    """Linear maps to queries, keys and values of each head."""

    weight_3HED: Tensor
    bias_3HE: Tensor

    def of(self, part: int, state_xD: Tensor) -> Tensor:
        """Return the queries (0), keys (1) or values (2) of states."""
        return F.linear(state_xD, self.weight_3HED[part].flatten(0, 1), self.bias_3HE[part].flatten())


class AttentionValues(NamedTuple):
    """Inputs of the weighted sum in attention: values, or states that become values after weighting."""

    rows: Tensor
    """Values of each head, (B, H, T, E), or states, (B, T, D)."""
    maps: QKVMaps | None = None
    """Maps from states to values; None if ``rows`` are values."""


class Attended(NamedTuple):
    """Result of self-attention."""

    context_ND: Tensor
    weights_BHQT: Any
    """Attention weights after dropout; None if they were not requested and there is no dropout."""
    values: AttentionValues


class PackedLayer(NamedTuple):
    """A layer of the model, and its inputs other than states."""

    module: Any
    keys_K: Tensor | None
    """Keys of the layer's dropout sites; None without dropout."""
    bias_xxxT: Tensor
    """Added to scores: minus infinity for padding, (B, 1, 1, T), or with a bias of each head, (B, H, T, T)."""
    is_masked: bool
    """Whether the bias may differ from 0."""


class PackedEncoder:
    """One pass of a batch through a model of BERT's architecture.

    A layer is a function of tensors: its weights, states, bias and keys. Inside ``compiled``, PyTorch compiles it.

    Args:
        backbone: The model; its modules are called, so hooks on them run.
        packing: The batch.
        masks: Random numbers of dropout; None for no dropout.
    """

    def __init__(self, backbone: Any, packing: Packing, masks: DropoutMasks | None) -> None:
        self._backbone = backbone
        self._packing = packing
        self._masks = masks
        bias_xxxT = self.bias()
        is_masked = packing.padded or bias_xxxT is not packing.bias_B11T
        self._layers = [
            PackedLayer(
                module,
                None if masks is None else masks.sites(number * SITES + 1, SITES - 1),
                bias_xxxT,
                is_masked,
            )
            for number, module in enumerate(backbone.encoder.layer)
        ]

    @staticmethod
    def parts(layer: Any) -> Parts:
        """Return modules and dropout of a layer's attention."""
        inner, output = layer.attention.self, layer.attention.output
        maps = inner.query, inner.key, inner.value
        return Parts(maps, output.LayerNorm, output.dense, inner.dropout.p, output.dropout.p)

    def bias(self) -> Tensor:
        """Return the bias that layers add to their scores (``PackedLayer.bias_xxxT``)."""
        return self._packing.bias_B11T

    def states(
        self,
        ids_BT: Tensor,
        positions_BT: Tensor | None,
        reads: Reads,
        first_BD: Tensor | None = None,
    ) -> Iterator[Tensor]:
        """Yield the hidden states that ``reads`` selects, padded, (B, T, D), or (B, 1, D) of the first token.

        Args:
            ids_BT: The tokens.
            positions_BT: Position ids; None for the model's own.
            reads: The states to return.
            first_BD: Embeddings in place of those of the first tokens.
        """
        state_ND = self.embedded(ids_BT, positions_BT)
        if first_BD is not None:
            state_ND = state_ND.index_copy(0, self._packing.first_B, first_BD.to(state_ND.dtype))
        depth = len(self._layers)
        for number in range(depth):
            if reads == "all":
                yield self._packing.rows(state_ND)
            first = reads == "first" and number + 1 == depth
            context_ND = self.attended(number, state_ND, first=first).context_ND
            state_ND = self.finished(number, context_ND, state_ND, first=first)
        yield state_ND[:, None] if reads == "first" else self._packing.rows(state_ND)

    def embedded(self, ids_BT: Tensor, positions_BT: Tensor | None = None) -> Tensor:
        """Return the embedding output of the tokens, (N, D), by default at the model's own positions."""
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
        state_ND: Tensor = embeddings.LayerNorm(summed_ND)
        if self._masks is None or not embeddings.dropout.p:
            return state_ND
        return state_ND * self._masks.hidden(
            self._masks.sites(0, 1)[0], embeddings.dropout.p, state_ND.shape[1]
        )

    def _positions(self, ids_BT: Tensor) -> Tensor:
        """Return position ids: in BERT columns of the batch, in others a count of tokens from padding's id + 1."""
        padding = self._backbone.embeddings.position_embeddings.padding_idx
        if padding is None:
            return self._packing.token_columns
        token_BT = (ids_BT != padding).long()
        position_BT: Tensor = token_BT.cumsum(dim=1) * token_BT + padding
        return position_BT.flatten()[self._packing.places_N]

    def attended(
        self, number: int, state_ND: Tensor, *, first: bool = False, weights: bool = False
    ) -> Attended:
        """Return the self-attention of layer ``number`` (from 0), before its output projection."""
        # A function of the class is compiled once for all batches.
        return _called(type(self)._attend, self, self._layers[number], state_ND, first, weights)

    def finished(self, number: int, context_ND: Tensor, state_ND: Tensor, *, first: bool = False) -> Tensor:
        """Return the states after the rest of layer ``number``: output projection, residual, LayerNorm, feed-forward.

        Returns:
            The layer's states, (N, D), or those of the first token of each sentence, (B, D).
        """
        return _called(type(self)._finish, self, self._layers[number], context_ND, state_ND, first)

    def _attend(self, layer: PackedLayer, state_ND: Tensor, first: bool, weights: bool) -> Attended:
        maps = self._maps(layer)
        if first:
            values = AttentionValues(self._packing.rows(state_ND), maps)
            scores_BHQT = self._first_scores(layer, values.rows, maps, state_ND)
        else:
            together_ND = F.linear(state_ND, maps.weight_3HED.flatten(0, 2), maps.bias_3HE.flatten())
            queries_BHTE, keys_BHTE, values_BHTE = self._packing.heads(together_ND, 3, self._heads).unbind()
            values = AttentionValues(values_BHTE)
            if not weights and (layer.keys_K is None or not self.parts(layer.module).p):
                bias = layer.bias_xxxT.to(values_BHTE.dtype) if layer.is_masked else None
                context_BHTE = F.scaled_dot_product_attention(
                    queries_BHTE, keys_BHTE, values_BHTE, attn_mask=bias
                )
                return Attended(self._packing.joined(context_BHTE), None, values)
            scores_BHQT = self._scores(queries_BHTE, keys_BHTE, layer.bias_xxxT)
        weights_BHQT = self._weights(layer, scores_BHQT, first)
        return Attended(self.weighed(values, weights_BHQT), weights_BHQT, values)

    def values(self, number: int, state_ND: Tensor, *, first: bool = False) -> AttentionValues:
        """Return the values of layer ``number`` for states other than its own."""
        maps = self._maps(self._layers[number])
        if first:
            return AttentionValues(self._packing.rows(state_ND), maps)
        return AttentionValues(self._packing.heads(maps.of(2, state_ND), 1, self._heads)[0])

    def weighed(self, values: AttentionValues, weights_BHQT: Tensor) -> Tensor:
        """Return values under attention weights, heads concatenated, (N, D), or for the first tokens, (B, D)."""
        if values.maps is None:
            return self._packing.joined(weights_BHQT.to(values.rows.dtype) @ values.rows)
        # The weighted sum of V x + b is V times the weighted sum of x, plus b times the sum of the weights.
        weights_BHT = weights_BHQT[:, :, 0]
        weighed_BHD = weights_BHT.to(values.rows.dtype) @ values.rows
        context_BHE = torch.einsum("bhd,hed->bhe", weighed_BHD, values.maps.weight_3HED[2])
        context_BHE += weights_BHT.sum(dim=-1, keepdim=True) * values.maps.bias_3HE[2]
        return context_BHE.flatten(1)

    @property
    def _heads(self) -> int:
        return int(self._backbone.config.num_attention_heads)

    def _maps(self, layer: PackedLayer) -> QKVMaps:
        maps = self.parts(layer.module).maps
        weight = torch.cat([linear.weight for linear in maps])
        bias = torch.cat([linear.bias for linear in maps])
        return QKVMaps(weight.view(3, self._heads, -1, weight.shape[1]), bias.view(3, self._heads, -1))

    def _scores(self, queries_BHTE: Tensor, keys_BHTE: Tensor, bias_xxxT: Tensor) -> Tensor:
        """Return products of queries and keys over sqrt(E), plus the bias, (B, H, T, T)."""
        scores_xTT = torch.baddbmm(
            bias_xxxT.expand(*queries_BHTE.shape[:2], -1, -1).flatten(0, 1).to(queries_BHTE.dtype),
            queries_BHTE.flatten(0, 1),
            keys_BHTE.flatten(0, 1).transpose(1, 2),
            alpha=queries_BHTE.shape[-1] ** -0.5,
        )
        return scores_xTT.view(*queries_BHTE.shape[:3], -1)

    def _first_scores(self, layer: PackedLayer, rows_BTD: Tensor, maps: QKVMaps, state_ND: Tensor) -> Tensor:
        """Return scores of the first tokens, (B, H, 1, T), without computing keys.

        With a single query, q (K x + b) is (q K) x + q b. So K is applied once per sentence instead of once per token.
        """
        queries_BHE = maps.of(0, state_ND[self._packing.first_B]).view(-1, *maps.bias_3HE.shape[1:])
        products_BHD = torch.einsum("bhe,hed->bhd", queries_BHE, maps.weight_3HED[1])
        offsets_BH = torch.einsum("bhe,he->bh", queries_BHE, maps.bias_3HE[1])
        scale: float = queries_BHE.shape[-1] ** -0.5
        scores_BHT = (products_BHD @ rows_BTD.transpose(1, 2) + offsets_BH[..., None]) * scale
        return scores_BHT[:, :, None] + layer.bias_xxxT[:, :, :1]

    def _weights(self, layer: PackedLayer, scores_BHQT: Tensor, first: bool) -> Tensor:
        """Return attention weights of a layer after dropout."""
        precise = torch.promote_types(scores_BHQT.dtype, torch.float32)
        weights_BHQT: Tensor = scores_BHQT.softmax(dim=-1, dtype=precise)
        p = self.parts(layer.module).p
        if layer.keys_K is None or not p:
            return weights_BHQT
        assert self._masks is not None
        key = layer.keys_K[_ATTENTION]
        return weights_BHQT * self._masks.attention(key, p, weights_BHQT.shape[1], first=first)

    def _finish(self, layer: PackedLayer, context_ND: Tensor, state_ND: Tensor, first: bool) -> Tensor:
        parts = self.parts(layer.module)
        residual_ND = state_ND[self._packing.first_B] if first else state_ND
        projected_ND = parts.output(context_ND)
        attended_ND = parts.norm(
            self._added(layer, _PROJECTED, parts.output_p, projected_ND, residual_ND, first)
        )
        output = layer.module.output
        fed_ND = output.dense(layer.module.intermediate(attended_ND))
        finished_ND: Tensor = output.LayerNorm(
            self._added(layer, _FED, output.dropout.p, fed_ND, attended_ND, first)
        )
        return finished_ND

    def _added(
        self, layer: PackedLayer, site: int, p: float, state_ND: Tensor, residual_ND: Tensor, first: bool
    ) -> Tensor:
        """Return a state after dropout, plus the residual."""
        if layer.keys_K is None or not p:
            return residual_ND + state_ND
        assert self._masks is not None
        factors_ND = self._masks.hidden(layer.keys_K[site], p, state_ND.shape[1], first=first)
        return torch.addcmul(residual_ND, state_ND, factors_ND)


_BUCKETS, _NEAR = 16, 8
"""Number of buckets of MPNet's distances in each direction, and of those with a single distance."""
_FAR = (12, 16, 23, 32, 46, 64, 91)
"""First distances of the other buckets except the first: 8 times powers of the root of 2, rounded up."""


class PackedMPNet(PackedEncoder):
    """MPNet: BERT without token types, with a bias for each head by the distance of tokens, the same in all layers."""

    @staticmethod
    def parts(layer: Any) -> Parts:
        """Return modules and dropout of a layer's attention."""
        attention, inner = layer.attention, layer.attention.attn
        return Parts(
            (inner.q, inner.k, inner.v), attention.LayerNorm, inner.o, inner.dropout.p, attention.dropout.p
        )

    def bias(self) -> Tensor:
        """Return the bias by distance, the same for all layers, plus the bias of padding."""
        padding_B11T = self._packing.bias_B11T
        # Transformers 5.17 makes the buckets on the host, for which a GPU would wait; later releases use a logarithm on
        # the device, which may round differently at the powers of 2.
        column_T = torch.arange(self._packing.width, device=padding_B11T.device)
        after_TT = column_T - column_T[:, None]
        apart_TT = after_TT.abs()
        far_TT = _NEAR + sum((apart_TT >= distance).long() for distance in _FAR)
        bucket_TT = torch.where(apart_TT < _NEAR, apart_TT, far_TT) + (after_TT > 0) * _BUCKETS
        values_TTH: Tensor = self._backbone.encoder.relative_attention_bias(bucket_TT)
        return values_TTH.permute(2, 0, 1)[None] + padding_B11T


FAMILIES: Mapping[str, type[PackedEncoder]] = dict.fromkeys(BUILT_AS_BERT, PackedEncoder) | {
    "mpnet": PackedMPNet
}
"""Classes for the model types of Transformers that run on packed tokens."""
