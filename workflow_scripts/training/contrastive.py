"""What methods that contrast dropout views of sentences share: settings, the encoder, texts of several columns."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pydantic import Field
from transformers import PreTrainedModel

from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import SentenceEncoder, has_dropout
from workflow_scripts.models.readouts import AnyReadout
from workflow_scripts.models.templates import Template


class Contrastive(Slice):
    """Settings of a contrastive method."""

    readout: AnyReadout
    head_at_test: bool = Field(description="Whether the MLP head is part of the embedding at test.")
    temperature: float = Field(gt=0, le=1, description="Softmax temperature; 0.05 in the paper.")
    dropout: float | None = Field(
        ge=0, lt=1, description="Of hidden states and attention; null keeps the model's."
    )

    @property
    def labels(self) -> Sequence[str]:
        """Substitutions and warnings that travel with whatever these settings make."""
        return self.readout.labels


def overrides(config: Contrastive) -> dict[str, float | None]:
    """What a contrastive method asks of ``load_backbone``."""
    return {"dropout": config.dropout}


def build(
    config: Contrastive, backbone: PreTrainedModel, template: Template | None = None, *, head: bool = True
) -> SentenceEncoder:
    """The encoder that is trained, evaluated and saved; ``head`` is false where a method has a projector of its own.

    Raises:
        ConfigError: if the encoder's own dropout is asked for and it has none: two views would be the same.
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
    """The same rows of each of several columns whose texts were joined, ``joined`` in all: (columns * B,)."""
    return np.concatenate([rows + column * (joined // columns) for column in range(columns)])
