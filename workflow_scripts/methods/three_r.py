"""3R: in training, a vector of frequent words or exemplars is subtracted from the redundant dimensions of a batch.

3R: Enhancing Sentence Representation Learning via Redundant Representation Reduction. It wraps another
contrastive method: every vector that enters the base method's loss is reduced first (``losses.reduction``),
with one set S and one redundant vector a step. At test nothing is reduced, and the encoder is the base
method's. No code is public; each question that the text leaves open is a setting, with reasons for its default here:

* ``k`` exemplars a step, drawn without repetition as a function of seed and step; the redundant vector is
  the mean of their embeddings, in training mode, through the head if the method has one, with gradient
  ("input to the encoder"). Their dropout has keys of its own, so the base method draws the same random numbers as
  without 3R.
* ``identify``: deviations of the first view (``batch``, Eq. 3), of both (``both_views``), of the embeddings
  of frequent words ("static identification": ``words_each_step``, ``words_at_start``), or every dimension
  (``all``: "overall subtraction").
  ASSUME: "static identification" embeds the words at every step, as "token subtraction" does. The paper says that
  its dimensions are the same among different batches. They depend on no batch, but on the encoder and on c, which is
  learnt too, so no reading keeps them the same from step to step. Before the first step they would be arbitrary:
  the head has random weights, dropout is on, and all of MiniLM's 384 deviations are between .040 and .065, below
  nearly every c that is drawn from U(0, 1). ``words_at_start`` keeps those deviations, and is "overall subtraction"
  until c is lower, if it ever is.
* ``subtract``: the mean of ``exemplars``; of frequent words, each encoded as a text (``words``: "token
  subtraction") or looked up in the embedding matrix (``word_rows``); or each vector itself, which leaves 0
  (``own``: "dynamic mask").
* ``position``: after the head, on the vectors in Eq. 4, or before it, on the readout's vectors.
* c starts anywhere in U(0, 1) (appendix C). Its learning rate is not printed, but its path is (table 7, an epoch of
  15,625 steps): from 1 it falls by .135, .123, .111, .099, .086, ... a tenth of an epoch, until it stays at .273.
  ASSUME: rates that decay linearly and add up to .75, which is 9.6e-5 at first on BERT-base and keeps within .014 of
  that path, since Adam's steps are about its rate. From 1e-5 it rises by .020, .011, .005 and .002 up to the end of the
  epoch and by .012 after it: the schedule begins again (``training.restart_every`` in the grid of table 7).
  ``lr_budget`` is the sum of one schedule for any number of steps. A rate of 1e-4 would move c by at most .098 at
  RoBERTa's batches of 512, and by .05 in LLM2Vec's 1,000 steps, so c would stay near its start.

``metrics.parquet`` of a run has c and the number of dimensions in S at every step. A run is labelled if S was empty or
full for a tenth of its steps, in which it is the base method or "overall subtraction", and if c was still moving in one
direction when the training ended.

Expected: SimCSE on BERT-base 75.21 without and 77.52 with it (the paper, five runs); c ends at 0.273.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.losses.reduction import Threshold, deviation, reduce
from workflow_scripts.methods import contrastive, load_method
from workflow_scripts.models.contexts import Keys
from workflow_scripts.models.dropout import dropout_keys, keys_of
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.packed import SITES
from workflow_scripts.models.text_encoder import TokenEncoder
from workflow_scripts.models.tokens import TokenBatch, onto
from workflow_scripts.settings.methods import ThreeR as Config
from workflow_scripts.training import objective
from workflow_scripts.training.data import TrainingData

FEW = 0.1
"""Minimum share of steps with an empty, or full, S for which a run gets a label."""
LAST = 0.2
"""Share of the steps, at the end, in which c must reverse its direction to count as settled."""
EMPTY = "3R: for a tenth of the steps or more no dimension was redundant, so that nothing was subtracted"
FULL = "3R: for a tenth of the steps or more every dimension was redundant (overall subtraction)"
ON_ITS_WAY = "3R: its threshold c had not settled when the training ended"


def build(config: Config, tokenizer: PreTrainedTokenizerBase, backbone: PreTrainedModel) -> SentenceEncoder:
    """Return the encoder of the base method."""
    encoder: SentenceEncoder = load_method(config.base.module).build(config.base, tokenizer, backbone)
    return encoder


def path_labels(
    threshold_S: NDArray[np.float64], reduced_S: NDArray[np.float64], width: int
) -> Sequence[str]:
    """Return the labels of a run, from the path of c over S steps.

    ASSUME: c has settled if over the last fifth of the steps its net change is at most half of the sum of its
    changes' sizes, that is, if it reversed its direction.

    Args:
        threshold_S: c at every step.
        reduced_S: Number of dimensions in S at every step.
        width: Number of all dimensions.
    """
    moves = np.diff(threshold_S[-max(2, round(LAST * len(threshold_S))) :])
    holds = {
        EMPTY: (reduced_S == 0).mean() >= FEW,
        FULL: (reduced_S == width).mean() >= FEW,
        ON_ITS_WAY: abs(moves.sum()) > np.abs(moves).sum() / 2,
    }
    return [label for label in holds if holds[label]]


class ThreeRInputs(NamedTuple):
    """Inputs of a step."""

    base_inputs: Any
    """Inputs of the base method, or chunks of its sentences followed by the exemplars."""
    exemplars: tuple[TokenBatch, ...]
    """Chunks of the exemplars, if they have a pass of their own."""
    words: tuple[TokenBatch, ...]
    """Chunks of the words, if the method reads them."""
    own_keys: Keys
    """Keys of the dropout of exemplars and words in passes of their own."""
    together: int | None
    """Number of sentences before the exemplars, if both are read in one pass."""


class Objective(objective.Objective):
    """Loss of the base method on reduced vectors."""

    def __init__(self, config: Config, encoder: SentenceEncoder, data: TrainingData) -> None:
        self._config = config
        self.under: contrastive.Objective = load_method(config.base.module).Objective(
            config.base, encoder, data
        )
        self.passes = self.under.passes
        self._encoder = encoder
        self._ready = data.ready
        self._seed = data.sampler.seed
        start = config.threshold.start
        if start is None:
            start = float(np.random.default_rng([self._seed, 3]).random())
        self.threshold = Threshold(config.threshold, start).to(encoder.device)
        self.module = nn.ModuleDict({"base": self.under.module, "threshold": self.threshold})
        budget = config.threshold.lr_budget
        self.lr_budgets = {"threshold.c": budget} if budget else {}
        self._exemplars = data.tokenised("exemplar") if config.subtract == "exemplars" else None
        self._words: tuple[TokenBatch, ...] = ()
        if config.reads_words:
            words = data.tokenised("word")
            self._words = data.ready(words.batch(np.arange(len(words))))
        if config.identify == "words_at_start":
            encoder.train()
            with torch.no_grad():  # before the first step, and also when a training is resumed
                words_RD = self._embedded(*onto((self._words, self._own_keys(0)), encoder.device))
            self._deviation_at_start = deviation(words_RD)

    def inputs(self, step: int) -> ThreeRInputs:
        """Return the step's sentences and exemplars, in one batch if encoder and method can read them in one pass."""
        keys = self._own_keys(step)
        if self._exemplars is None:
            return ThreeRInputs(self.under.inputs(step), (), self._words, keys, None)
        exemplars = self._exemplars.batch(self.exemplars_of(step))
        if not (self.under.reads_once and self._encoder.readout_settings.is_independent):
            return ThreeRInputs(self.under.inputs(step), self._ready(exemplars), self._words, keys, None)
        batch = self.under.batch(step)
        both = self._ready(batch.followed_by(exemplars))
        return ThreeRInputs(both, (), self._words, keys, len(batch.ids_BT))

    def loss(self, inputs: ThreeRInputs) -> objective.LossOutput:
        """Return the base method's loss of the reduced vectors; metrics are c and the number of dimensions in S."""
        self.threshold.clamp()
        views_VBR, exemplars_KD = self._read(inputs)
        views_VBD = self._placed(views_VBR)
        member_D = self._members(views_VBD, inputs)
        views_VBD = reduce(views_VBD, self._redundant(exemplars_KD, inputs), member_D)
        if self._config.position == "before_head":
            views_VBD = self._encoder.project(views_VBD)
        loss = self.under.contrast(views_VBD)
        measured = {
            "threshold": self.threshold.c.detach().clone(),
            "reduced_dimensions": (member_D > 0.5).sum(),
        }
        return objective.LossOutput(loss, measured)

    def _own_keys(self, step: int) -> Keys:
        depth = max(backbone.config.num_hidden_layers for backbone in self._encoder.backbones)
        return keys_of(self._seed, step, 4, passes=1, sites=SITES * depth)

    def _read(self, inputs: ThreeRInputs) -> tuple[Tensor, Tensor | None]:
        """Return the step's vectors, and those of its exemplars; None without exemplars."""
        if inputs.together is None:
            views_VBR = self.under.views(inputs.base_inputs)
            if not inputs.exemplars:
                return views_VBR, None
            return views_VBR, self._embedded(inputs.exemplars, inputs.own_keys)
        views_xR, exemplars_KR = self.under.read(inputs.base_inputs).tensor_split([inputs.together])
        return self.under.gather_processes(views_xR), self._placed(exemplars_KR)

    @property
    def scored(self) -> TokenEncoder | None:
        """Return the encoder that the base method scores."""
        return self.under.scored

    def labels(self, metrics: objective.Metrics) -> Sequence[str]:
        """Return labels if S was empty or full for long, or if c had not settled (``path_labels``)."""
        if self._config.identify == "all":
            return []
        return path_labels(metrics["threshold"], metrics["reduced_dimensions"], self._encoder.width)

    def finish(self) -> None:
        """Finish the base method."""
        self.under.finish()

    def _members(self, views_VBD: Tensor, inputs: ThreeRInputs) -> Tensor:
        match self._config.identify:
            case "all":
                return torch.ones_like(views_VBD[0, 0])
            case "batch":
                deviation_D = deviation(views_VBD[0])
            case "both_views":
                deviation_D = deviation(views_VBD[:2].flatten(0, 1))
            case "words_at_start":
                deviation_D = self._deviation_at_start
            case "words_each_step":
                deviation_D = deviation(self._embedded(inputs.words, inputs.own_keys))
        member_D: Tensor = self.threshold(deviation_D)
        return member_D

    def _redundant(self, exemplars_KD: Tensor | None, inputs: ThreeRInputs) -> Tensor | None:
        match self._config.subtract:
            case "own":
                return None
            case "exemplars":
                assert exemplars_KD is not None
                vectors_KD = exemplars_KD
            case "words":
                vectors_KD = self._embedded(inputs.words, inputs.own_keys)
            case "word_rows":
                vectors_KD = torch.cat([self._word_rows(chunk) for chunk in inputs.words])
        redundant_D = vectors_KD.mean(dim=0)
        return redundant_D.detach() if self._config.detach else redundant_D

    def exemplars_of(self, step: int) -> np.ndarray[Any, Any]:
        """Return rows of the pool for a step, sorted, which makes steps with the complete pool equal."""
        assert self._exemplars is not None
        draw = np.random.default_rng([self._seed, step, 2])
        return np.sort(draw.choice(len(self._exemplars), self._config.k, replace=False))

    def _embedded(self, chunks: tuple[TokenBatch, ...], keys: Keys) -> Tensor:
        """Return vectors computed like those of the batch, with dropout by the given keys."""
        with dropout_keys(keys):
            return self._placed(self.under.read(chunks))

    def _placed(self, vectors_xR: Tensor) -> Tensor:
        """Return vectors at the point of reduction: after the head, or before it."""
        return self._encoder.project(vectors_xR) if self._config.position == "after_head" else vectors_xR

    def _word_rows(self, words: TokenBatch) -> Tensor:
        """Return the mean row of the embedding matrix over each word's pieces, without special tokens."""
        ids_BT, mask_BT, _ = words
        pieces_BT = mask_BT.cumsum(dim=1)
        inside_BT = (pieces_BT > 1) & (pieces_BT < mask_BT.sum(dim=1, keepdim=True)) & mask_BT.bool()
        rows_BTD = self._encoder.backbone.get_input_embeddings()(ids_BT)
        weight_BT1 = inside_BT.unsqueeze(-1).to(rows_BTD.dtype)
        mean_BD: Tensor = (rows_BTD * weight_BT1).sum(dim=1) / weight_BT1.sum(dim=1).clamp(min=1)
        return mean_BD
