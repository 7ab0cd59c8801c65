"""Common parts of methods that contrast dropout views: settings, the encoder, texts of several columns."""

import numpy as np
from numpy.typing import NDArray
from transformers import PreTrainedModel

from workflow_scripts.models.encoder import SentenceEncoder, check_fit
from workflow_scripts.settings.contrastive import Contrastive
from workflow_scripts.settings.templates import Template


def overrides(config: Contrastive) -> dict[str, float | None]:
    """Arguments of ``load_backbone`` for a contrastive method."""
    return {"dropout": config.dropout}


def build(
    config: Contrastive, backbone: PreTrainedModel, template: Template | None = None, *, head: bool = True
) -> SentenceEncoder:
    """The encoder that is trained, evaluated and saved; ``head`` is false for methods with a projector of their own.

    Raises:
        ConfigError: if the encoder lacks what the settings ask for, such as dropout of its own.
    """
    check_fit(config.misfits, backbone)
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
