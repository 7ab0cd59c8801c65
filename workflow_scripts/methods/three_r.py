"""3R: redundant dimensions of a batch lose what frequent words alone would say, while training.

3R: Enhancing Sentence Representation Learning via Redundant Representation Reduction. It wraps another
contrastive method: every vector that enters that method's loss is reduced first (``losses.reduction``),
with one set S and one redundant vector a step. At test nothing is reduced and the encoder is the other
method's. No code is public; what the text leaves open is a setting, its default argued for here:

* ``k`` exemplars a step, drawn without repetition as a function of seed and step; the redundant vector is
  the mean of their embeddings, in training mode, through the head where there is one, gradient kept
  ("input to the encoder"). Their dropout is drawn apart, so the other method sees the random numbers that
  it would see alone.
* ``identify``: deviations of the first view (``batch``, Eq. 3), of both (``both_views``), of the embeddings
  of frequent words ("static identification": ``words_each_step``, ``words_at_start``), or every dimension
  (``all``: "overall subtraction").
  ASSUME: "static identification" embeds the words at every step, as "token subtraction" does. The paper says that
  its dimensions are the same among different batches; they depend on no batch, but on the encoder, and on c, which
  is learnt there too, so that no reading keeps them the same from step to step. Before the first step there is
  nothing to find: the head has random weights, dropout is on, and all of MiniLM's 384 deviations lie between .040
  and .065, below nearly every c that is drawn from U(0, 1). ``words_at_start`` keeps those, and is "overall
  subtraction" until c is lower, if it ever is.
* ``subtract``: the mean of ``exemplars``; of frequent words, each encoded as a text (``words``: "token
  subtraction") or looked up in the embedding matrix (``word_rows``); or nothing is kept there at all
  (``own``: "dynamic mask").
* ``where``: after the head, on what enters Eq. 4, or before it, on the readout itself.
* c starts anywhere in U(0, 1) (appendix C). Its learning rate is not printed, but its path is (table 7, an epoch of
  15,625 steps): from 1 it falls by .135, .123, .111, .099, .086, ... a tenth of an epoch, until it stays at .273.
  ASSUME: rates that decay linearly and add up to .75, which is 9.6e-5 at first on BERT-base and keeps within .014 of
  that path, since Adam's steps are about its rate. From 1e-5 it rises by .020, .011, .005 and .002 up to the end of the
  epoch and by .012 after it: the schedule begins again (``training.restart_every`` in the grid of table 7). ``travel``
  is the sum of one schedule, whatever the number of steps: 1e-4 itself moves c by .098 at most at RoBERTa's batches of
  512, and by .05 in LLM2Vec's 1,000 steps, so that it would stay where it was drawn.

``metrics.parquet`` of a run holds c and the number of dimensions in S at every step. A run is labelled if S held
nothing or everything for a tenth of its steps, which makes it the method underneath or "overall subtraction" there, and
if c was still on its way when the training ended.

Expected: SimCSE on BERT-base 75.21 without and 77.52 with it (the paper, five runs); c ends at 0.273.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.reduction import Threshold, deviation, reduce
from workflow_scripts.methods import base, load_method
from workflow_scripts.models.dropout import Keys, keyed, keys_of
from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder
from workflow_scripts.models.packed import PLACES
from workflow_scripts.models.tokens import TokenBatch, onto
from workflow_scripts.settings.methods import ThreeR as Config
from workflow_scripts.training import contrastive
from workflow_scripts.training.data import TrainingData

FEW = 0.1
"""Share of the steps from which on an empty or a full S is worth a label."""
LAST = 0.2
"""Share of the steps, the last ones, in which c must have turned round for having settled."""
EMPTY = "3R: for a tenth of the steps or more no dimension was redundant, so that nothing was subtracted"
FULL = "3R: for a tenth of the steps or more every dimension was redundant (overall subtraction)"
ON_ITS_WAY = "3R: its threshold c had not settled when the training ended"


def build(config: Config, backbone: PreTrainedModel) -> SentenceEncoder:
    """The encoder of the method underneath."""
    encoder: SentenceEncoder = load_method(config.base.module).build(config.base, backbone)
    return encoder


def path_findings(
    threshold_S: NDArray[np.float64], reduced_S: NDArray[np.float64], width: int
) -> Sequence[str]:
    """What the path of c over S steps says against the run, as labels.

    ASSUME: c has settled if over the last fifth of the steps it ended up less than half as far away as it moved in
    all, that is, if it turned round.

    Args:
        threshold_S: c at every step.
        reduced_S: Dimensions in S at every step.
        width: Dimensions in all.
    """
    moves = np.diff(threshold_S[-max(2, round(LAST * len(threshold_S))) :])
    on_its_way = abs(moves.sum()) > np.abs(moves).sum() / 2
    found = {EMPTY: (reduced_S == 0).mean() >= FEW, FULL: (reduced_S == width).mean() >= FEW}
    return [label for label, holds in (found | {ON_ITS_WAY: on_its_way}).items() if holds]


class Inputs(NamedTuple):
    """What a step reads."""

    own: Any
    """Inputs of the method underneath, or chunks of its sentences followed by the exemplars."""
    exemplars: tuple[TokenBatch, ...] | None
    """Chunks of the exemplars, where they are read apart."""
    words: tuple[TokenBatch, ...] | None
    apart: Keys
    """What exemplars and words that are read apart draw by."""
    together: int | None
    """The sentences that are followed by exemplars, where these are read in the same pass."""


class Objective(base.Objective):
    """Loss of the method underneath on reduced vectors."""

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
        travel = config.threshold.travel
        self.rate_budgets = {"threshold.c": travel} if travel else {}
        self._exemplars = data.tokenised("exemplar") if config.subtract == "exemplars" else None
        if self._exemplars is not None and config.k > len(self._exemplars):
            raise ConfigError(f"methods: k is {config.k}; the pool has {len(self._exemplars)}. Lower it.")
        self._words = None
        if config.reads_words:
            words = data.tokenised("word")
            self._words = data.ready(words.batch(np.arange(len(words))))
        if config.identify == "words_at_start":
            assert self._words is not None
            encoder.train()
            with torch.no_grad():  # before the first step, which a resumed training finds again
                words_RD = self._embedded(*onto((self._words, self._keys_apart(0)), encoder.device))
            self._deviation_at_start = deviation(words_RD)

    def inputs(self, step: int) -> Inputs:
        """The step's sentences and exemplars, in one batch where encoder and method read them in one pass."""
        apart = self._keys_apart(step)
        if self._exemplars is None:
            return Inputs(self.under.inputs(step), None, self._words, apart, None)
        exemplars = self._exemplars.batch(self.exemplars_of(step))
        if not (self.under.reads_once and self._encoder.tells_sentences_apart):
            return Inputs(self.under.inputs(step), self._ready(exemplars), self._words, apart, None)
        own = self.under.batch(step)
        both = self._ready(own.followed_by(exemplars))
        return Inputs(both, None, self._words, apart, len(own.ids_BT))

    def loss(self, inputs: Inputs) -> base.Step:
        """Reduce the step's vectors, then compare them; metrics are threshold c and the number of dimensions in S."""
        self.threshold.clamp()
        views_VBR, exemplars_KD = self._read(inputs)
        views_VBD = self._placed(views_VBR)
        member_D = self._members(views_VBD, inputs)
        views_VBD = reduce(views_VBD, self._redundant(exemplars_KD, inputs), member_D)
        if self._config.where == "before_head":
            views_VBD = self._encoder.project(views_VBD)
        loss = self.under.contrast_at_widths(views_VBD)
        measured = {
            "threshold": self.threshold.c.detach().clone(),
            "reduced_dimensions": (member_D > 0.5).sum(),
        }
        return base.Step(loss, measured)

    def _keys_apart(self, step: int) -> Keys:
        depth = max(leaf.backbone.config.num_hidden_layers for leaf in self._encoder.leaves)
        return keys_of(self._seed, step, 4, passes=1, places=PLACES * depth)

    def _read(self, inputs: Inputs) -> tuple[Tensor, Tensor | None]:
        """The step's vectors, and those of its exemplars, if it has any."""
        if inputs.together is None:
            views_VBR = self.under.views(inputs.own)
            if inputs.exemplars is None:
                return views_VBR, None
            return views_VBR, self._embedded(inputs.exemplars, inputs.apart)
        views_xR, exemplars_KR = self.under.read(inputs.own).tensor_split([inputs.together])
        return self.under.of_all_processes(views_xR), self._placed(exemplars_KR)

    @property
    def scored(self) -> TextEncoder | None:
        """That of the method underneath."""
        return self.under.scored

    def findings(self, metrics: base.Metrics) -> Sequence[str]:
        """That S was empty or full for long, or that c was still on its way."""
        if self._config.identify == "all":
            return []
        return path_findings(metrics["threshold"], metrics["reduced_dimensions"], self._encoder.width)

    def finish(self) -> None:
        """What the method underneath does."""
        self.under.finish()

    def _members(self, views_VBD: Tensor, inputs: Inputs) -> Tensor:
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
                assert inputs.words is not None
                deviation_D = deviation(self._embedded(inputs.words, inputs.apart))
        member_D: Tensor = self.threshold(deviation_D)
        return member_D

    def _redundant(self, exemplars_KD: Tensor | None, inputs: Inputs) -> Tensor | None:
        match self._config.subtract:
            case "own":
                return None
            case "exemplars":
                assert exemplars_KD is not None
                vectors_KD = exemplars_KD
            case "words":
                assert inputs.words is not None
                vectors_KD = self._embedded(inputs.words, inputs.apart)
            case "word_rows":
                assert inputs.words is not None
                vectors_KD = torch.cat([self._word_rows(chunk) for chunk in inputs.words])
        redundant_D = vectors_KD.mean(dim=0)
        return redundant_D.detach() if self._config.detach else redundant_D

    def exemplars_of(self, step: int) -> np.ndarray[Any, Any]:
        """Rows of the pool that ``step`` takes, sorted: with all of them, always the same."""
        assert self._exemplars is not None
        draw = np.random.default_rng([self._seed, step, 2])
        return np.sort(draw.choice(len(self._exemplars), self._config.k, replace=False))

    def _embedded(self, chunks: tuple[TokenBatch, ...], keys: Keys) -> Tensor:
        """Vectors as those of the batch are made, their dropout drawn apart."""
        with keyed(keys):
            return self._placed(self.under.read(chunks))

    def _placed(self, vectors_xR: Tensor) -> Tensor:
        """Vectors where they are reduced: after the head, or before it."""
        return self._encoder.project(vectors_xR) if self._config.where == "after_head" else vectors_xR

    def _word_rows(self, words: TokenBatch) -> Tensor:
        """Mean row of the embedding matrix over each word's pieces, special tokens left out."""
        ids_BT, mask_BT, _ = words
        pieces_BT = mask_BT.cumsum(dim=1)
        inside_BT = (pieces_BT > 1) & (pieces_BT < mask_BT.sum(dim=1, keepdim=True)) & mask_BT.bool()
        rows_BTD = self._encoder.backbone.get_input_embeddings()(ids_BT)
        weight_BT1 = inside_BT.unsqueeze(-1).to(rows_BTD.dtype)
        mean_BD: Tensor = (rows_BTD * weight_BT1).sum(dim=1) / weight_BT1.sum(dim=1).clamp(min=1)
        return mean_BD
