"""Hidden states of texts in every layer, from one forward pass per text.

Shape suffixes: B texts of a batch, T tokens, D width.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.models.backbone import hidden_states
from workflow_scripts.models.devices import mixed_precision
from workflow_scripts.models.encoding import batches_by_length
from workflow_scripts.models.tokens import TokenBatch, TokenisedText
from workflow_scripts.settings.names import Precision


class States(NamedTuple):
    """One batch: row numbers of its texts, their tokens, and hidden states (B, T, D) for each layer from 0."""

    rows_B: NDArray[np.int64]
    batch: TokenBatch
    layers: tuple[Tensor, ...]


TOKENS_PER_BATCH = {"cpu": 4096, "cuda": 16_384}
"""Tokens per batch with padding; more than for encoding, because every cell of the study adds calls per batch."""


def passes(
    backbone: PreTrainedModel, text: TokenisedText, precision: Precision, block: int | None = None
) -> Iterator[States]:
    """Yield the states of every text once; a batch's states are released when the next batch is requested.

    Args:
        backbone: The encoder, in evaluation mode, on the device to use.
        text: The texts.
        precision: Precision of the encoder's matrix products; states are returned in float32.
        block: Number of texts that are sorted by length together; None for all.
    """
    lengths = text.lengths
    size = block or max(1, len(text))
    for start in range(0, len(text), size):
        budget = TOKENS_PER_BATCH[backbone.device.type]
        for rows in batches_by_length(lengths[start : start + size], budget):
            batch = text.batch(start + rows).to(backbone.device)
            with torch.inference_mode(), mixed_precision(precision, backbone.device):
                layers = hidden_states(backbone, batch, "all")
            yield States(start + rows, batch, tuple(states.float() for states in layers))
