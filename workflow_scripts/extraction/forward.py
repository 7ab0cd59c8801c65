"""One forward pass over texts, which yields the hidden states of every layer batch by batch.

Within blocks of a fixed number of texts, batches are formed by length under a token budget.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedModel

from workflow_scripts.models.devices import mixed_precision
from workflow_scripts.models.encoder import hidden_states
from workflow_scripts.models.encoding import batches_by_length
from workflow_scripts.models.tokens import TokenBatch, TokenisedText
from workflow_scripts.settings.precision import Precision


class States(NamedTuple):
    """One batch: the texts' numbers, their tokens, and hidden states (B, T, D) for each layer from 0."""

    rows_B: NDArray[np.int64]
    batch: TokenBatch
    layers: tuple[Tensor, ...]


TOKENS_PER_BATCH = 4096
"""Padding included: more than encoding alone likes, since every cell of the study costs some calls a batch."""


def passes(
    backbone: PreTrainedModel, text: TokenisedText, precision: Precision, block: int | None = None
) -> Iterator[States]:
    """Yield the states of every text once; a batch's states are released when the next one is requested.

    Args:
        backbone: The encoder, in evaluation mode, on the device to use.
        text: The texts.
        precision: Of the encoder's matrix products; states are returned in float32.
        block: Number of texts that are sorted by length together; None for all.
    """
    lengths = text.lengths
    size = block or max(1, len(text))
    for start in range(0, len(text), size):
        for rows in batches_by_length(lengths[start : start + size], TOKENS_PER_BATCH):
            batch = text.batch(start + rows).to(backbone.device)
            with torch.inference_mode(), mixed_precision(precision, backbone.device):
                layers = hidden_states(backbone, batch, "all")
            yield States(start + rows, batch, tuple(states.float() for states in layers))
