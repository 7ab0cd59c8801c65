"""Unsupervised SimCSE: a sentence's two dropout views are each other's positive.

Gao et al. 2021, https://arxiv.org/abs/2104.08821; settings of the official code. Both views go through
the encoder in one call. With the pooler ``cls`` an MLP head is trained on top; the paper drops it at
test (``head_at_test: false``). With the readout ``s2sent`` this is S2Sent's first baseline and method, with
``layer_attention`` LayerAttPooler's Equation 7.

Expected: BERT-base on a million Wikipedia sentences, seven STS tasks, 73.5 to 76.3 depending on the
seed (the paper prints 76.25); about 1.5 hours on one GPU. The laboratory's figures are in
``resources/laboratory``.
"""

import torch
from torch import Tensor

from workflow_scripts.losses.infonce import infonce
from workflow_scripts.methods.base import ContrastiveObjective
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.contrastive import Contrastive
from workflow_scripts.settings.methods.simcse import Config
from workflow_scripts.training.contrastive import build, overrides
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.ranks import gathered

__all__ = ["Config", "Objective", "build", "overrides"]


class Objective(ContrastiveObjective):
    """Contrasts the two dropout views of a step's sentences."""

    def __init__(self, config: Contrastive, encoder: SentenceEncoder, data: TrainingData) -> None:
        self.module = self.encoder = encoder
        self._text = data.tokenised("anchor")
        self._sampler = data.sampler
        self._temperature = config.temperature

    def views(self, step: int) -> Tensor:
        """Both views of the step's sentences before the head, of all processes, shape (2, B, D)."""
        batch = self._text.batch(self._sampler.rows_of(step)).repeated().to(self.encoder.device)
        views = self.encoder.read(batch).chunk(2)
        return torch.stack([gathered(view_BD) for view_BD in views])

    def contrast(self, views_2BD: Tensor) -> Tensor:
        """Contrast two views of some sentences, a scalar."""
        first_BD, second_BD = views_2BD
        return infonce(first_BD, second_BD, self._temperature)
