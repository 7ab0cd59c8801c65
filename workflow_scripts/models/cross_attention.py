"""Two encoders, joined by cross-attention that has no weights of its own.

    L = {i : i mod k = 0}                                                       (JTCSE, Eq. 7)
    SA_I = softmax((Q_I HD_I) (K_I HD_I)^T / sqrt(d))                           (Eq. 8)
    CT_I = SA_I (V_I HD_I)                                                      (Eq. 9)
    CACT_I = SA_I (V_II HD_II)                                                  (Eq. 10), II likewise

JTCSE: Joint Tensor-Modulus Constraints and Cross-Attention for Unsupervised Contrastive Learning of Sentence
Embeddings, section III-B. The primitive streams are the two encoders by themselves (``models.packed``); cross-attention
uses their attention weights and values. The layer's code is not public. There are three modes of using CACT:

* ``parallel`` (the default): each sub-encoder has a second, cross stream. It forks at the first layer of L, takes
  CACT at layers of L and SA_I (V_I x) of its own state x at the others, always followed by the rest of the layer
  (output projection, residual of its own state, LayerNorm, feed-forward), and its last state is "the
  cross-attention's last hidden state" of Fig. 4. Inference by two stock encoders (section III-C) and an
  effect of k (Table IX) both follow. ASSUME: its attention weights are those of the primitive stream in every
  layer, since section VI-B keeps "the attention pattern of the current encoder".
* ``literal``: only CACT of the last layer reaches the loss, because Eqs. 8 to 10 have primitive states on every
  right-hand side. k then changes nothing.
* ``feedback``: after a layer of L, the next layer continues from the cross output ("when it is propagated
  forward to the next EncoderLayer", section VI-B). Inference by two stock encoders then differs from training.

In all modes, identical sub-encoders in evaluation mode have equal cross and primitive outputs. d in sqrt(d) is the
width of a head, as in every implementation; dropout of the weights is drawn once for both contexts.

Shape suffixes: B sentences, H heads, T tokens, D width.
"""

from collections.abc import Sequence
from typing import NamedTuple

from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.models.dropout import Masks
from workflow_scripts.models.encoder import check_length
from workflow_scripts.models.packed import PackedEncoder
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.methods import CrossMode


class TwinStates(NamedTuple):
    """Last hidden states of both sub-encoders, (B, T, D) or (B, 1, D), and of their cross streams, if there are any."""

    primitive: Sequence[Tensor]
    cross: Sequence[Tensor] | None


def cross_layers(depth: int, every: int) -> list[int]:
    """Numbers, from 1, of the layers with cross-attention (Eq. 7), the last among them if k divides the depth."""
    return list(range(every, depth + 1, every))


def run_twin(
    sub_encoders: Sequence[PreTrainedModel],
    batch: TokenBatch,
    every: int | None,
    mode: CrossMode,
    *,
    first: bool = False,
) -> TwinStates:
    """Run both sub-encoders over a batch.

    Args:
        sub_encoders: Two encoders.
        batch: The sentences, the same for both.
        every: k of Eq. 7; None for no cross-attention.
        mode: The use of cross-attention's outputs.
        first: Whether to compute only the first tokens of the last layer; otherwise states of padding are arbitrary.
    """
    for sub_encoder in sub_encoders:
        check_length(sub_encoder, batch.ids_BT)
    packing = batch.packed()

    def streams() -> list[PackedEncoder]:
        return [
            PackedEncoder(sub_encoder, packing, Masks(packing) if sub_encoder.training else None)
            for sub_encoder in sub_encoders
        ]

    one, other = streams()
    depth = sub_encoders[0].config.num_hidden_layers
    joined = cross_layers(depth, every) if every else []
    if mode == "literal":
        joined = joined[-1:]
    # Each stream has its own dropout, so the cross streams are passes of their own.
    crossing = streams() if joined else []
    states = [one.embedded(batch.ids_BT), other.embedded(batch.ids_BT)]
    cross: list[Tensor] = []
    for number in range(depth):
        narrow = first and number == depth - 1
        before = states
        seen = [
            stream.attended(number, state, first=narrow, weights=True)
            for stream, state in zip((one, other), before, strict=True)
        ]
        states = primitive = [
            stream.finished(number, its.context_ND, state, first=narrow)
            for stream, its, state in zip((one, other), seen, before, strict=True)
        ]
        if number + 1 in joined:
            values = [seen[1].values, seen[0].values]
            # At their fork, the cross streams continue from the primitive states.
            cross = before if not cross or mode == "feedback" else cross
        elif cross and mode == "parallel":
            values = [
                stream.values(number, state, first=narrow)
                for stream, state in zip(crossing, cross, strict=True)
            ]
        else:
            continue
        cross = [
            # The values under the layer's own attention weights, then the rest of the layer on the stream's state.
            stream.finished(number, stream.weighed(own, its.weights_BHQT), state, first=narrow)
            for stream, own, its, state in zip(crossing, values, seen, cross, strict=True)
        ]
        if mode == "feedback":
            states = cross
    primitive, cross = (
        [state[:, None] if first else packing.rows(state) for state in pair] for pair in (primitive, cross)
    )
    return TwinStates(primitive, cross or None)
