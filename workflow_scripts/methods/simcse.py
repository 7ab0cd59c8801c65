"""Unsupervised SimCSE: a sentence's two dropout views are each other's positive.

Gao et al. 2021, https://arxiv.org/abs/2104.08821; settings of the official code. Both views go through
the encoder in one call. With the pooler ``cls`` an MLP head is trained on top; the paper drops it at
test (``head_at_test: false``), other readouts have none.

Expected: BERT-base on a million Wikipedia sentences, seven STS tasks, 73.5 to 76.3 depending on the
seed (the paper prints 76.25); about 1.5 hours on one GPU. The laboratory's figures are in
``resources/laboratory``.
"""

from typing import Literal

import torch
from pydantic import Field
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError
from workflow_scripts.losses.infonce import infonce
from workflow_scripts.models.encoder import SentenceEncoder, has_dropout
from workflow_scripts.models.readouts import AnyReadout
from workflow_scripts.training.material import Material
from workflow_scripts.training.ranks import gathered


class Config(Slice):
    """Settings of unsupervised SimCSE."""

    module: Literal["simcse"]
    readout: AnyReadout
    head_at_test: bool = Field(description="Whether the MLP head is part of the embedding at test.")
    temperature: float = Field(gt=0, le=1, description="Softmax temperature; 0.05 in the paper.")
    dropout: float | None = Field(
        ge=0, lt=1, description="Of hidden states and attention; null keeps the model's."
    )


def overrides(config: Config) -> dict[str, float | None]:
    """What this method asks of ``load_backbone``."""
    return {"dropout": config.dropout}


def build(config: Config, backbone: PreTrainedModel) -> SentenceEncoder:
    """The encoder that is trained, evaluated and saved.

    Raises:
        ConfigError: if the encoder's own dropout is asked for and it has none: both views would be the same.
    """
    if config.dropout is None and not has_dropout(backbone):
        raise ConfigError(
            "methods: dropout is null, but the encoder drops nothing of its own. Give a number."
        )
    return SentenceEncoder(
        backbone, config.readout, head=config.readout.has_head, head_at_test=config.head_at_test
    )


class Objective:
    """Loss of one step on a corpus of sentences; ``read`` and ``compare`` are its halves, for who comes between."""

    def __init__(self, config: Config, encoder: SentenceEncoder, material: Material) -> None:
        self.module = encoder
        self.encoder = encoder
        self._text = material.tokenised("anchor")
        self._sampler = material.sampler
        self._temperature = config.temperature

    def loss(self, step: int) -> Tensor:
        """Contrast the two dropout views of the step's sentences."""
        return self.compare(self.encoder.project(self.read(step)))

    def read(self, step: int) -> Tensor:
        """Both views of the step's sentences before the head, of all processes, shape (2, B, D)."""
        batch = self._text.batch(self._sampler.rows_of(step)).repeated().to(self.encoder.device)
        views = self.encoder.read(batch.ids_BT, batch.mask_BT).chunk(2)
        return torch.stack([gathered(view_BD) for view_BD in views])

    def compare(self, views_2BD: Tensor) -> Tensor:
        """Contrast two views of some sentences, a scalar."""
        first_BD, second_BD = views_2BD
        return infonce(first_BD, second_BD, self._temperature)
