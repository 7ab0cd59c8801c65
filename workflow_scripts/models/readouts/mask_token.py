"""PromptBERT's readout: the vector of a sentence is the last state of [MASK] in its template.

Jiang et al. 2022, PromptBERT, https://arxiv.org/abs/2201.04337. Several masks are averaged. A mask inside the sentence
is a word like any other.

Shape suffixes: B sentences, T tokens, D width.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .base import ReadoutModule, own_masks, weighted_mean


class Readout(ReadoutModule):
    """State of [MASK] in the last layer."""

    reads = "last"
    mask_id: Tensor
    mask_counts: Tensor

    def __init__(self, width: int, **settings: Any) -> None:
        super().__init__(width, **settings)
        self.register_buffer("mask_id", torch.tensor(-1))
        self.register_buffer("mask_counts", torch.tensor([0, 0]))

    def read(self, hidden_states: Sequence[Tensor], ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Return sentence vectors, (B, D), from the last of ``hidden_states``."""
        return weighted_mean(hidden_states[-1], own_masks(ids_BT, mask_BT, self.mask_id, self.mask_counts))
