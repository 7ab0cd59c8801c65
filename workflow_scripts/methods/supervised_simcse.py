"""Supervised SimCSE: what a premise entails is its positive, what it contradicts its hard negative.

Gao et al. 2021, https://arxiv.org/abs/2104.08821, section 4. All sentences of a step go through the encoder in one
call. Without hard negatives it is the supervised loss with in-batch negatives alone (LayerAttPooler, Eq. 6);
with the readout ``layer_attention`` the two are LayerAttPooler's Equations 8 and 6.

Expected: BERT-base on 275,601 NLI triples, three epochs of batches of 512, seven STS tasks: 81.57.
"""

import torch
from torch import Tensor

from workflow_scripts.losses.infonce import infonce, infonce_with_negatives
from workflow_scripts.methods.base import ContrastiveObjective
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.tokens import TokenisedText
from workflow_scripts.settings.methods.supervised_simcse import Config
from workflow_scripts.training.contrastive import build, overrides, rows_of_all
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.ranks import gathered

__all__ = ["Config", "Objective", "build", "overrides"]


class Objective(ContrastiveObjective):
    """Contrasts a step's anchors with its positives and hard negatives; for a corpus of triples, or of pairs."""

    def __init__(self, config: Config, encoder: SentenceEncoder, data: TrainingData) -> None:
        self.module = self.encoder = encoder
        columns = ("anchor", "positive", "negative") if config.hard_negatives else ("anchor", "positive")
        self._text = TokenisedText.joined([data.tokenised(column) for column in columns])
        self._columns = len(columns)
        self._sampler = data.sampler
        self._config = config

    def views(self, step: int) -> Tensor:
        """The step's columns before the head, of all processes, shape (2, B, D) or (3, B, D)."""
        rows = rows_of_all(self._sampler.rows_of(step), self._columns, len(self._text))
        batch = self._text.batch(rows).to(self.encoder.device)
        views = self.encoder.read(batch).chunk(self._columns)
        return torch.stack([gathered(view_BD) for view_BD in views])

    def contrast(self, views_VBD: Tensor) -> Tensor:
        """Contrast anchors with positives and, where there are any, hard negatives, a scalar."""
        anchors_BD, positives_BD, *negatives = views_VBD
        temperature, weight = self._config.temperature, self._config.hard_negative_weight
        if negatives:
            return infonce_with_negatives(anchors_BD, positives_BD, negatives[0], temperature, weight)
        return infonce(anchors_BD, positives_BD, temperature)
