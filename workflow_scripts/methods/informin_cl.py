"""InforMin-CL: SimCSE, and a loss of predicting each view from the other, which discards other information.

    L = InfoNCE(h, h+) + w * 2 mean_i |n(h_i) - n(h_i+)|^2 / D

InforMin-CL (Chen et al. 2022, https://aclanthology.org/2022.coling-1.434); the second term, the forward and the inverse
prediction of its code, is twice the mean squared difference of the normalised views. The official script
trains the [CLS] state without a head, at batch size 128 and rate 5e-5.

Expected: BERT-base 74.93 over seven STS tasks (as 3R reproduces it).
"""

import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from workflow_scripts.methods import contrastive
from workflow_scripts.methods.contrastive import build as build
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.settings.methods import InforMinCL as Config
from workflow_scripts.training.data import TrainingData


class Objective(contrastive.Objective):
    """SimCSE's loss and the distance of the views."""

    def __init__(self, config: Config, encoder: SentenceEncoder, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        self._weight = config.reconstruction_weight

    def contrast(self, views_2BD: Tensor) -> Tensor:
        """Return the contrastive loss of two views plus their distance, a scalar."""
        first_BD, second_BD = F.normalize(views_2BD, dim=-1)
        distance = 2 * F.mse_loss(first_BD, second_BD)
        return super().contrast(views_2BD) + self._weight * distance
