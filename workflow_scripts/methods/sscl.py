"""SSCL: SimCSE, and SimCSE whose negatives include every sentence's intermediate layers, half of each.

    L   = (mean_i l_i + mean_i r_i) / 2
    r_i = -log e(h_i, h_i+) / sum_j e(h_i, h_j+),                                    e(a, b) = exp(cos(a, b) / t)
    l_i = -log e(h_i, h_i+) / (sum_j e(h_i, h_j+) + sum_m sum_v sum_j e(h_i, g_j^{m,v}))

where g_j^{m,v} is the readout of hidden state m of sentence j in view v. Alleviating Over-smoothing for Unsupervised
Sentence Representation, Chen et al. 2023, https://aclanthology.org/2023.acl-long.197; its script takes hidden states
-2 and -3, mean pooling, batch size 64, rate 3e-5. The half of plain SimCSE is the official code's, not the text's.

That script keeps the checkpoint with the best average on seven transfer tasks; here STS-B's development part chooses
it, as for all other methods.

Expected: BERT-base 76.10 over seven STS tasks (as 3R prints it; its cells average 75.95).
"""

from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor

from workflow_scripts.losses.infonce import cos_sim
from workflow_scripts.methods import contrastive
from workflow_scripts.methods.contrastive import build as build
from workflow_scripts.models.backbone import hidden_states
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.readouts.pooling import pool
from workflow_scripts.models.tokens import TokenBatch
from workflow_scripts.settings.methods import Sscl as Config
from workflow_scripts.settings.readouts import Pooling as Pooled
from workflow_scripts.training.chunks import in_chunks
from workflow_scripts.training.data import TrainingData


class Objective(contrastive.Objective):
    """SimCSE's loss with the intermediate layers of all sentences among the negatives."""

    reads_once = False

    def __init__(self, config: Config, encoder: SentenceEncoder, data: TrainingData) -> None:
        super().__init__(config, encoder, data)
        assert isinstance(config.readout, Pooled)
        layers = (*config.readout.indices, *config.negative_layers)
        self._readouts = [config.readout.model_copy(update={"layers": (layer,)}) for layer in layers]

    def views(self, inputs: Any) -> Tensor:
        """Return both views of the embedding, then both views of each intermediate layer: (2 + 2M, B, D)."""
        layers_BLD = in_chunks(self._read_layers, inputs)
        return torch.cat([self.gather_processes(layer_BD) for layer_BD in layers_BLD.unbind(dim=1)])

    def _read_layers(self, batch: TokenBatch) -> Tensor:
        """Return the embedding, then the intermediate layers, (B, 1 + M, D)."""
        states = hidden_states(self.encoder.backbone, batch, "all")
        return torch.stack([pool(states, batch.mask_BT, readout) for readout in self._readouts], dim=1)

    def contrast(self, views_VBD: Tensor) -> Tensor:
        """Return the mean of SimCSE's loss and of the loss with all intermediate vectors as further candidates."""
        first_BD, second_BD = views_VBD[:2]
        layers_CD = views_VBD[2:].flatten(0, 1)
        plain_BB = cos_sim(first_BD, second_BD) / self._temperature
        logits_BC = torch.cat([plain_BB, cos_sim(first_BD, layers_CD) / self._temperature], dim=1)
        own_B = torch.arange(len(first_BD), device=logits_BC.device)
        return (F.cross_entropy(plain_BB, own_B) + F.cross_entropy(logits_BC, own_B)) / 2
