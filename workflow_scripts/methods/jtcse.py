"""JTCSE and TNCSE: two fine-tuned encoders, trained together and added up at test.

    L = sum_i L_NCE(h_i^L, h_i^L+) + L_ICNCE + L_ICTM                            (JTCSE, Eq. 15)
    L_ICNCE = L_NCE(h_I^L, h_II^L) + L_NCE(c_I^O, c_II^O), or with I and II swapped, by a coin    (Eq. 12)
    L_ICTM = L_TMC(h_I, h_II+) + L_TMC(h_II, h_I+)                               (Eq. 14)

Joint Tensor-Modulus Constraints and Cross-Attention (Zong et al.); TNCSE is the same without cross-attention, always
in the direction I to II, and with another dropout. h are [CLS] states of the last layer, c [CLS] states of the cross
streams, and the moduli are those of the outputs of each sub-encoder's pretrained pooler. Both views of a batch go
through both sub-encoders at once: two calls, four passes. The sub-encoders start from two runs of unsupervised SimCSE
on round-trip translations (``encoders.<name>.runs``). Without ICNCE the cross streams are not read, and not computed,
unless ``feedback`` makes them the primitive ones.

Cross-attention joins the two encoders without weights of its own (section III-B):

    L = {i : i mod k = 0}                                                       (Eq. 7)
    SA_I = softmax((Q_I HD_I) (K_I HD_I)^T / sqrt(d))                           (Eq. 8)
    CT_I = SA_I (V_I HD_I)                                                      (Eq. 9)
    CACT_I = SA_I (V_II HD_II)                                                  (Eq. 10), II likewise

The primitive streams are the two encoders by themselves (``models.packed``); cross-attention uses their attention
weights and values. The layer's code is not public. There are three modes of using CACT:

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

At test each sub-encoder is a stock encoder with the pooling of ``readout``, and their two vectors are added up (as in
the official code; according to the paper, neither pooler nor cross-attention is needed).

``modulus_weight``: the official code halves the modulus term, Eq. 13 does not (reading ``paper``).
``modulus_of`` and ``bypassed_layernorms`` are for Fig. 8, which takes the modulus of [CLS] itself after
leaving LayerNorms of the last layers out.

Expected: on BERT-base 79.70 over seven STS tasks (the paper, seeds 1 to 5 close to it); TNCSE 79.58.

Shape suffixes: B sentences, R sentences of both views, H heads, T tokens, D width.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase
from transformers.models.bert.modeling_bert import BertPooler

from workflow_scripts.losses.modulus import contrast_views, modulus_constraint
from workflow_scripts.models.backbone import check_fit, check_length
from workflow_scripts.models.dropout import DropoutMasks
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.ensemble import EnsembleEncoder
from workflow_scripts.models.packed import PackedEncoder
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.methods import CrossMode
from workflow_scripts.settings.methods import Jtcse as Config
from workflow_scripts.training import objective
from workflow_scripts.training.chunks import in_chunks
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.ranks import gathered

UNTRAINED_POOLER = "JTCSE's modulus starts from a pooler that nobody trained"


def build(config: Config, tokenizer: PreTrainedTokenizerBase, *backbones: PreTrainedModel) -> EnsembleEncoder:
    """Return the two sub-encoders to train, evaluate and save.

    Raises:
        ConfigError: if the encoders cannot be joined, or do not fit the settings.
    """
    check_fit(config.size_errors, *backbones)
    labels = _give_poolers(backbones) if config.reads_pooler else []
    encoders = [
        SentenceEncoder(backbone, tokenizer, config.readout, head=False, head_at_test=False)
        for backbone in backbones
    ]
    ensemble = EnsembleEncoder(encoders, (1.0, 1.0), config.bypassed_layernorms)
    ensemble.labels = labels
    return ensemble


def _give_poolers(sub_encoders: Sequence[Any]) -> list[str]:
    """Draw missing poolers, and return a label if a pooler is untrained, which means a bias of zero.

    Transformers draws a pooler for a checkpoint without one (RoBERTa's), and the official code uses it as a trained
    one. Here the draw is the same for every seed.
    """
    for number, sub_encoder in enumerate(sub_encoders, start=1):
        if sub_encoder.pooler is None:
            sub_encoder.pooler = BertPooler(sub_encoder.config)  # type: ignore[no-untyped-call]
            draw = torch.Generator().manual_seed(number)
            std = sub_encoder.config.initializer_range
            nn.init.normal_(sub_encoder.pooler.dense.weight, std=std, generator=draw)
            nn.init.zeros_(sub_encoder.pooler.dense.bias)
    trained = [bool(sub_encoder.pooler.dense.bias.any()) for sub_encoder in sub_encoders]
    return [] if all(trained) else [UNTRAINED_POOLER]


class TwinStates(NamedTuple):
    """Last hidden states of both sub-encoders, (B, T, D) or (B, 1, D), and of their cross streams, if they have any."""

    primitive: Sequence[Tensor]
    cross: Sequence[Tensor] | None


def cross_layers(depth: int, every: int) -> list[int]:
    """Return the numbers, from 1, of the layers with cross-attention (Eq. 7), with the last if k divides the depth."""
    return list(range(every, depth + 1, every))


def run_twin(
    sub_encoders: Sequence[PreTrainedModel],
    batch: TokenBatch,
    every: int | None,
    mode: CrossMode,
    *,
    first: bool = False,
) -> TwinStates:
    """Return the last states of both sub-encoders over a batch.

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
            PackedEncoder(sub_encoder, packing, DropoutMasks(packing) if sub_encoder.training else None)
            for sub_encoder in sub_encoders
        ]

    left, right = streams()
    depth = sub_encoders[0].config.num_hidden_layers
    joined = cross_layers(depth, every) if every else []
    if mode == "literal":
        joined = joined[-1:]
    # Each stream has its own dropout, so the cross streams are passes of their own.
    crossing = streams() if joined else []
    states = [left.embedded(batch.ids_BT), right.embedded(batch.ids_BT)]
    cross: list[Tensor] = []
    for number in range(depth):
        narrow = first and number == depth - 1
        before = states
        seen = [
            stream.attended(number, state, first=narrow, weights=True)
            for stream, state in zip((left, right), before, strict=True)
        ]
        states = primitive = [
            stream.finished(number, its.context_ND, state, first=narrow)
            for stream, its, state in zip((left, right), seen, before, strict=True)
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
        # The values under the layer's own attention weights, then the rest of the layer on the stream's state.
        cross = [
            stream.finished(number, stream.weighed(value, its.weights_BHQT), state, first=narrow)
            for stream, value, its, state in zip(crossing, values, seen, cross, strict=True)
        ]
        if mode == "feedback":
            states = cross
    primitive, cross = (
        [state[:, None] if first else packing.rows(state) for state in pair] for pair in (primitive, cross)
    )
    return TwinStates(primitive, cross or None)


class Views(NamedTuple):
    """Vectors of one sub-encoder that enter the loss: all first views, then all second views, (R, D)."""

    last_RD: Tensor
    cross_RD: Tensor | None
    modulus_RD: Tensor


class Objective(objective.Objective):
    """The terms of Eq. 15, on a corpus of sentences."""

    module: EnsembleEncoder
    passes = 4  # primitive and cross streams

    def __init__(self, config: Config, encoder: EnsembleEncoder, data: TrainingData) -> None:
        self.module = encoder
        self._config = config
        self._text = data.tokenised("anchor")
        self._sampler = data.sampler
        first, second = encoder.members
        assert isinstance(first, SentenceEncoder) and isinstance(second, SentenceEncoder)
        self._sub_encoders: tuple[Any, Any] = (first.backbone, second.backbone)
        self._cross_every = config.cross_every if config.reads_cross_streams else None
        self._ready = data.ready

    def inputs(self, step: int) -> tuple[tuple[TokenBatch, ...], Tensor]:
        """Return both views of the step's sentences in chunks, and whether R is 1."""
        batch = self._text.batch(self._sampler.rows_of(step)).repeated()
        return self._ready(batch), torch.tensor(self.goes_forward(step))

    def loss(self, inputs: tuple[tuple[TokenBatch, ...], Tensor]) -> objective.LossOutput:
        """Return the sum of the contrastive losses within and across sub-encoders and of the constraint on moduli.

        Metrics are the terms, nan for terms that are switched off, and the direction.
        """
        chunks, forward = inputs
        vectors_RxD = _gathered(in_chunks(self._read, chunks))
        first, second = self._views(vectors_RxD[:, 0::2]), self._views(vectors_RxD[:, 1::2])
        terms = self.terms(first, second, forward)
        loss = torch.stack(list(terms.values())).sum()
        left_out = dict.fromkeys(("nce", "icnce", "ictm"), torch.full_like(loss, float("nan")).detach())
        measured = {name: term.detach() for name, term in terms.items()}
        return objective.LossOutput(loss, left_out | measured | {"forward": forward})

    def goes_forward(self, step: int) -> bool:
        """Return whether R is 1, a function of seed and step."""
        if self._config.direction == "forward":
            return True
        return bool(np.random.default_rng([self._sampler.seed, step, 5]).integers(2))

    def _read(self, batch: TokenBatch) -> Tensor:
        """Return [CLS] of both sub-encoders, then of both cross streams and both poolers if the loss needs them.

        Shape (R, 2 to 6, D).
        """
        states = run_twin(self._sub_encoders, batch, self._cross_every, self._config.cross_mode, first=True)
        vectors = [state_R1D[:, 0] for state_R1D in (*states.primitive, *(states.cross or ()))]
        if self._config.reads_pooler:
            with torch.autocast(self.module.device.type, enabled=False):
                both = zip(self._sub_encoders, states.primitive, strict=True)
                vectors += [sub_encoder.pooler(state_R1D) for sub_encoder, state_R1D in both]
        return torch.stack(vectors, dim=1)

    def _views(self, vectors_RxD: Tensor) -> Views:
        """Return the vectors of one sub-encoder, (R, D) each, by their part in the loss."""
        last_RD, *others = vectors_RxD.unbind(dim=1)
        modulus_RD = others.pop() if self._config.reads_pooler else last_RD
        return Views(last_RD, others[0] if others else None, modulus_RD)

    def terms(self, first: Views, second: Views, forward: Tensor) -> dict[str, Tensor]:
        """Return the terms of Eq. 15 in the settings' ``terms``, each with weight 1."""
        temperature = self._config.temperature
        terms: dict[str, Tensor] = {}
        if "nce" in self._config.terms:
            within = [contrast_views(views.last_RD, views.last_RD, temperature) for views in (first, second)]
            terms["nce"] = within[0] + within[1]
        if "icnce" in self._config.terms:
            terms["icnce"] = contrast_views(first.last_RD, second.last_RD, temperature, ~forward)
            if first.cross_RD is not None and second.cross_RD is not None:
                across = contrast_views(first.cross_RD, second.cross_RD, temperature, ~forward)
                terms["icnce"] = terms["icnce"] + across
        if "ictm" in self._config.terms:
            terms["ictm"] = self._constraint(first, second) + self._constraint(second, first)
        return terms

    def _constraint(self, first: Views, second: Views) -> Tensor:
        """Return the modulus constraint of first views of one sub-encoder and second views of the other (Eq. 13)."""
        return modulus_constraint(
            first.last_RD.chunk(2)[0],
            second.last_RD.chunk(2)[1],
            first.modulus_RD.chunk(2)[0],
            second.modulus_RD.chunk(2)[1],
            weight=self._config.modulus_weight,
        )


def _gathered(rows_Rx: Tensor) -> Tensor:
    """Return the rows of all processes: all first views, then all second views."""
    return torch.cat([gathered(view_Bx) for view_Bx in rows_Rx.chunk(2)])
