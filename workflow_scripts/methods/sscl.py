"""SSCL: SimCSE whose negatives include the batch's own intermediate layers.

    l_i = -log e(h_i, h_i+) / (sum_j e(h_i, h_j+) + sum_m sum_v e(h_i, g_i^{m,v})),   e(a, b) = exp(cos(a, b) / t)

where g^{m,v} is the readout of hidden state m in view v. Alleviating Over-smoothing for Unsupervised
Sentence Representation, Chen et al. 2023, https://aclanthology.org/2023.acl-long.197; its script takes
hidden states -2 and -3, mean pooling, batch size 64, rate 3e-5. ASSUME: a sentence's negatives are its own
earlier layers, not those of others, since it is from those that the paper moves it away.

Expected: BERT-base 76.10 over seven STS tasks (as 3R prints it; its cells average 75.95).
"""

from typing import Literal

import torch
import torch.nn.functional as F  # noqa: N812
from pydantic import Field
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.infonce import cosine_matrix
from workflow_scripts.methods import simcse
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.readouts.pooled import Config as Pooled
from workflow_scripts.models.readouts.pooled import pool
from workflow_scripts.training.material import Material
from workflow_scripts.training.ranks import gathered


class Config(simcse.Config):
    """Settings of SSCL."""

    module: Literal["sscl"]  # type: ignore[assignment]
    negative_layers: tuple[int, ...] = Field(min_length=1, description="Hidden states that are negatives.")


def overrides(config: Config) -> dict[str, float | None]:
    """What this method asks of ``load_backbone``."""
    return simcse.overrides(config)


def build(config: Config, backbone: PreTrainedModel) -> SentenceEncoder:
    """The encoder that is trained, evaluated and saved.

    Raises:
        ConfigError: if the readout cannot be taken at other layers, or the encoder has no such layers.
    """
    depth = backbone.config.num_hidden_layers
    if not isinstance(config.readout, Pooled) or len(config.readout.indices) != 1:
        raise ConfigError("methods: SSCL pools one layer as it pools others. Give a pooled readout of one.")
    if not all(-depth - 1 <= layer <= depth for layer in config.negative_layers):
        raise ConfigError(
            f"methods: negative_layers {config.negative_layers}; hidden states are 0 to {depth}."
        )
    return simcse.build(config, backbone)


class Objective(simcse.Objective):
    """SimCSE's loss with a sentence's intermediate layers among its negatives."""

    def __init__(self, config: Config, encoder: SentenceEncoder, material: Material) -> None:
        super().__init__(config, encoder, material)
        assert isinstance(config.readout, Pooled)
        layers = (*config.readout.indices, *config.negative_layers)
        self._readouts = [config.readout.model_copy(update={"layers": (layer,)}) for layer in layers]

    def read(self, step: int) -> Tensor:
        """Both views of every layer that is read, the embedding's own first: (2 + 2M, B, D)."""
        batch = self._text.batch(self._sampler.rows_of(step)).repeated().to(self.encoder.device)
        states = self.encoder.backbone(
            input_ids=batch.ids_BT, attention_mask=batch.mask_BT, output_hidden_states=True
        ).hidden_states
        layers = [pool(states, batch.mask_BT, readout) for readout in self._readouts]
        return torch.stack([gathered(view_BD) for layer in layers for view_BD in layer.chunk(2)])

    def compare(self, views_VBD: Tensor) -> Tensor:
        """Contrast the first view with the second among its own intermediate layers too, a scalar."""
        first_BD, second_BD = views_VBD[:2]
        others_BB = cosine_matrix(first_BD, second_BD)
        own_BM = torch.einsum("bd,mbd->bm", F.normalize(first_BD, dim=-1), F.normalize(views_VBD[2:], dim=-1))
        logits_BC = torch.cat([others_BB, own_BM], dim=1) / self._temperature
        return F.cross_entropy(logits_BC, torch.arange(len(first_BD), device=logits_BC.device))
