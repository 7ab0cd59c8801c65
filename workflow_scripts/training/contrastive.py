"""Common parts of methods that contrast dropout views: settings, the encoder, texts of several columns."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from transformers import PreTrainedModel

from workflow_scripts.errors import ConfigError
from workflow_scripts.methods.base import MethodConfig
from workflow_scripts.models.encoder import SentenceEncoder, has_dropout
from workflow_scripts.models.readouts import AnyReadout
from workflow_scripts.models.templates import Template


class Contrastive(MethodConfig):
    """Settings of a contrastive method."""

    readout: AnyReadout
    head_at_test: bool = Field(description="Whether the MLP head is part of the embedding at test.")
    temperature: float = Field(gt=0, le=1, description="Softmax temperature; 0.05 in the paper.")
    dropout: float | None = Field(
        ge=0, lt=1, description="Dropout of hidden states and attention; null keeps the model's."
    )

    @property
    def labels(self) -> Sequence[str]:
        """The readout's."""
        return self.readout.labels


def overrides(config: Contrastive) -> dict[str, float | None]:
    """Arguments of ``load_backbone`` for a contrastive method."""
    return {"dropout": config.dropout}


def build(
    config: Contrastive, backbone: PreTrainedModel, template: Template | None = None, *, head: bool = True
) -> SentenceEncoder:
    """The encoder that is trained, evaluated and saved; ``head`` is false for methods with a projector of their own.

    Raises:
        ConfigError: if the encoder's own dropout is to be used and is 0, so that two views would be the same.
    """
    if config.dropout is None and not has_dropout(backbone):
        raise ConfigError(
            "methods: dropout is null, but the encoder drops nothing of its own. Give a number."
        )
    return SentenceEncoder(
        backbone,
        config.readout,
        head=head and config.readout.has_head,
        head_at_test=config.head_at_test,
        template=template,
    )


def rows_of_all(rows: NDArray[np.int64], columns: int, joined: int) -> NDArray[np.int64]:
    """The same rows of several columns that were concatenated to ``joined`` texts in total; shape (columns * B,)."""
    return np.concatenate([rows + column * (joined // columns) for column in range(columns)])
