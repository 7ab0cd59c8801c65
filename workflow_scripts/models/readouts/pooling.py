"""Pooling of token states: the poolers of SimCSE and of sentence-transformers, with layers by index.

Gao et al. 2021, https://arxiv.org/abs/2104.08821. ``avg_first_last`` averages hidden states 1 and -1, as the official
code does since January 2022. Before, the code averaged 0 and -1 (SimCSE issue 285), which ``layers: [0, -1]`` selects.
Means include [CLS] and [SEP], and never padding. ``last_token`` is the token of a decoder that attends to all others.
If several layers are given, their average is pooled.

Shape suffixes: B sentences, T tokens, D width.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from workflow_scripts.models.readouts.base import ReadoutModule
from workflow_scripts.settings.readouts import Pooling as Config


class Readout(ReadoutModule):
    """Pooling as a readout without parameters."""

    def __init__(self, width: int, **settings: Any) -> None:
        super().__init__(width, **settings)
        self._config = Config(kind="pooling", **settings)
        if self._config.indices == (-1,):
            self.reads = "first" if self._config.mode == "cls" else "last"

    def read(self, hidden_states: Sequence[Tensor], ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Return the pooled states of the chosen layers, (B, D)."""
        return pool(hidden_states, mask_BT, self._config)

    def sentence_modules(self, depth: int) -> Sequence[nn.Module]:
        """Return built-in modules: a pooler, after an average of layers unless only the last layer is pooled."""
        from sentence_transformers.sentence_transformer.modules import Pooling, WeightedLayerPooling

        pooler: nn.Module = Pooling(self.width, pooling_mode=self._config.mode)
        if self.reads != "all":
            return [pooler]
        weights = torch.zeros(depth + 1)
        for index in self._config.indices:
            weights[index] += 1  # a layer named twice weighs twice
        average = WeightedLayerPooling(
            self.width, num_hidden_layers=depth, layer_start=0, layer_weights=nn.Parameter(weights)
        )
        return [average, pooler]


def pool(hidden_states: Sequence[Tensor], mask_BT: Tensor, pooling: Config) -> Tensor:
    """Return pooled token states of the chosen layers.

    Args:
        hidden_states: Embedding output and every layer's output, each (B, T, D), or (B, 1, D) of the first token.
        mask_BT: 1 for a token, 0 for padding; every row has at least one token.
        pooling: Layers and pooler.

    Returns:
        Sentence vectors, shape (B, D), not normalised.
    """
    chosen = [hidden_states[index] for index in pooling.indices]
    states_BTD = sum(chosen[1:], chosen[0]) / len(chosen)
    if pooling.mode == "cls":
        return states_BTD[:, 0]
    if pooling.mode == "lasttoken":
        return states_BTD[torch.arange(len(mask_BT), device=mask_BT.device), mask_BT.sum(dim=1) - 1]
    weight_BT1 = mask_BT.unsqueeze(-1).to(states_BTD.dtype)
    return (states_BTD * weight_BT1).sum(dim=1) / weight_BT1.sum(dim=1)
