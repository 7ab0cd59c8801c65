"""Two encoders side by side, joined by cross-attention without any weights of its own.

    L = {i : i mod k = 0}                                                       (JTCSE, Eq. 7)
    SA_I = softmax((Q_I HD_I) (K_I HD_I)^T / sqrt(d))                           (Eq. 8)
    CT_I = SA_I (V_I HD_I)                                                      (Eq. 9)
    CACT_I = SA_I (V_II HD_II)                                                  (Eq. 10), II likewise

JTCSE: Joint Tensor-Modulus Constraints and Cross-Attention for Unsupervised Contrastive Learning of Sentence
Embeddings, section III-B. The primitive streams are the stock encoders' own layers, called as those call
them, so they are bit-equal to two encoders by themselves; what cross-attention needs, the attention weights
and the values, is noted as it passes. The layer's code is not public. Three modes say where CACT goes:

* ``parallel`` (the default): each sub-encoder carries a second, cross stream. It forks at the first layer of L, takes
  CACT at layers of L and SA_I (V_I x) of its own state x at the others, always through the rest of the layer
  (output projection, residual of its own, LayerNorm, feed-forward), and its last state is "the
  cross-attention's last hidden state" of Fig. 4. Inference by two stock encoders (section III-C) and an
  effect of k (Table IX) both follow. ASSUME: its attention weights are those of the primitive stream in every
  layer, since section VI-B keeps "the attention pattern of the current encoder".
* ``literal``: CACT of the last layer alone reaches the loss, for Eqs. 8 to 10 have primitive states on every
  right-hand side. k then changes nothing.
* ``feedback``: after a layer of L the next layer goes on from the cross output ("when it is propagated
  forward to the next EncoderLayer", section VI-B). Two stock encoders are then not what was trained.

In all of them identical sub-encoders in evaluation mode have equal cross and primitive outputs. sqrt(d) is that of a
head, as in every implementation; dropout of the weights is drawn once for both contexts.

Shape suffixes: B sentences, H heads, T tokens, D width.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.masking_utils import create_bidirectional_mask

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import check_length
from workflow_scripts.models.tokens import TokenBatch

CrossMode = Literal["parallel", "literal", "feedback"]
Pair = tuple[Tensor, Tensor]


class TwinStates(NamedTuple):
    """Last hidden states (B, T, D) of both sub-encoders, and those of their cross streams, if there are any."""

    primitive: Pair
    cross: Pair | None


def cross_layers(depth: int, every: int) -> list[int]:
    """Numbers, from 1, of the layers that attend across (Eq. 7).

    Raises:
        ConfigError: if the last layer would not be one of them.
    """
    if depth % every:
        raise ConfigError(
            f"methods: cross_every is {every}; the encoder's {depth} layers are no multiple of it."
        )
    return list(range(every, depth + 1, every))


def check_sub_encoders(sub_encoders: Sequence[PreTrainedModel]) -> None:
    """Refuse encoders whose layers cannot be joined.

    Raises:
        ConfigError: if they differ in size, or are not built as BERT is.
    """
    sizes = {
        (t.config.num_hidden_layers, t.config.hidden_size, t.config.num_attention_heads) for t in sub_encoders
    }
    if len(sizes) > 1:
        raise ConfigError(f"encoders: sub-encoders of several sizes (layers, width, heads): {sorted(sizes)}.")
    for sub_encoder in sub_encoders:
        layers = getattr(getattr(sub_encoder, "encoder", None), "layer", None)
        if layers is None or not hasattr(layers[0], "feed_forward_chunk"):
            raise ConfigError(
                f"encoders: {type(sub_encoder).__name__} is not built as BERT. Take BERT or RoBERTa."
            )


def run_twin(
    sub_encoders: tuple[Any, Any], batch: TokenBatch, every: int | None, mode: CrossMode
) -> TwinStates:
    """Run both sub-encoders over a batch.

    Args:
        sub_encoders: Two ``PreTrainedModel`` with eager attention (``set_attn_implementation``).
        batch: The same for both.
        every: k of Eq. 7; None joins nothing.
        mode: Where the cross-attention goes.
    """
    for sub_encoder in sub_encoders:
        check_length(sub_encoder, batch.ids_BT)
    if every is None:
        outputs = [
            t(input_ids=batch.ids_BT, attention_mask=batch.mask_BT).last_hidden_state for t in sub_encoders
        ]
        return TwinStates((outputs[0], outputs[1]), None)
    joined = cross_layers(sub_encoders[0].config.num_hidden_layers, every)
    if mode == "literal":
        joined = joined[-1:]
    states = [sub_encoder.embeddings(input_ids=batch.ids_BT) for sub_encoder in sub_encoders]
    masks = [
        create_bidirectional_mask(
            config=sub_encoder.config, inputs_embeds=state, attention_mask=batch.mask_BT
        )
        for sub_encoder, state in zip(sub_encoders, states, strict=True)
    ]
    cross = states
    for number, layers in enumerate(
        zip(*(sub_encoder.encoder.layer for sub_encoder in sub_encoders), strict=True), start=1
    ):
        before = states
        with _noting(layers) as seen:
            states = [layer(s, m) for layer, s, m in zip(layers, before, masks, strict=True)]
        if number < joined[0]:
            continue
        if number == joined[0] or mode == "feedback":
            cross = before  # where the cross streams fork
        if number in joined:
            values = [seen[1].values_BTD, seen[0].values_BTD]
            cross = [_finish(*parts) for parts in zip(layers, seen, values, cross, strict=True)]
            primitive = states
            states = cross if mode == "feedback" else states
        elif mode == "parallel":
            values = [layer.attention.self.value(x) for layer, x in zip(layers, cross, strict=True)]
            cross = [_finish(*parts) for parts in zip(layers, seen, values, cross, strict=True)]
    return TwinStates((primitive[0], primitive[1]), (cross[0], cross[1]))  # the last layer is in L


class _Seen:
    """What one layer's self-attention computed."""

    weights_BHTT: Tensor
    values_BTD: Tensor


@contextmanager
def _noting(layers: Sequence[Any]) -> Iterator[list[_Seen]]:
    """Note attention weights, dropped out as they were used, and values of each layer's self-attention."""
    seen = [_Seen() for _ in layers]
    hooks = []
    for layer, note in zip(layers, seen, strict=True):

        def on_attention(_m: nn.Module, _i: Any, output: Any, note: _Seen = note) -> None:
            assert output[1] is not None, "attention is not eager"
            note.weights_BHTT = output[1]

        def on_value(_m: nn.Module, _i: Any, output: Tensor, note: _Seen = note) -> None:
            note.values_BTD = output

        hooks += [layer.attention.self.register_forward_hook(on_attention)]
        hooks += [layer.attention.self.value.register_forward_hook(on_value)]
    try:
        yield seen
    finally:
        for hook in hooks:
            hook.remove()


def _finish(layer: Any, seen: _Seen, values_BTD: Tensor, residual_BTD: Tensor) -> Tensor:
    """Weigh values as this layer weighed its own, then the rest of the layer on top of ``residual_BTD``."""
    heads = seen.weights_BHTT.shape[1]
    values_BHTE = values_BTD.view(*values_BTD.shape[:2], heads, -1).transpose(1, 2)
    context_BTD = torch.matmul(seen.weights_BHTT, values_BHTE).transpose(1, 2).flatten(2)
    attended_BTD = layer.attention.output(context_BTD, residual_BTD)
    finished_BTD: Tensor = layer.feed_forward_chunk(attended_BTD)
    return finished_BTD
