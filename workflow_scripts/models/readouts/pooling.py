"""Token states to one vector: the poolers of SimCSE, their layers named by index.

Gao et al. 2021, https://arxiv.org/abs/2104.08821. ``avg_first_last`` averages hidden states 1 and -1,
as the official code does since January 2022; before, it took 0 and -1 (SimCSE issue 285), which
``layers: [0, -1]`` selects. Means count [CLS] and [SEP] and never padding.

Shape suffixes: B sentences, T tokens, D width.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from pydantic import Field
from torch import Tensor, nn
from transformers import PretrainedConfig

from workflow_scripts.errors import DataError
from workflow_scripts.models.readouts import Readout, ReadoutConfig
from workflow_scripts.models.tokens import TokenBatch

Pooler = Literal["cls", "cls_before_pooler", "avg", "avg_top2", "avg_first_last"]

LAYERS: dict[str, tuple[int, ...]] = {
    "cls": (-1,),
    "cls_before_pooler": (-1,),
    "avg": (-1,),
    "avg_top2": (-2, -1),
    "avg_first_last": (1, -1),
}


class Config(ReadoutConfig):
    """How token states become a sentence vector."""

    kind: Literal["pooling"]
    pooler: Pooler = Field(
        description="cls is followed by the method's MLP head, or the encoder's own pooler where none is trained; "
        "the others have no head."
    )
    layers: tuple[int, ...] | None = Field(
        min_length=1,
        description="Hidden states (0 is the embedding output) that are averaged; null for the pooler's own.",
    )

    @property
    def indices(self) -> tuple[int, ...]:
        """The hidden states that are averaged."""
        return self.layers if self.layers is not None else LAYERS[self.pooler]

    @property
    def has_head(self) -> bool:
        """Whether a method trains an MLP on the pooled vector."""
        return self.pooler == "cls"

    @property
    def reads_pooler(self) -> bool:
        """Whether an encoder that is not trained is read through the pooler that it has."""
        return self.pooler == "cls"

    @property
    def takes_cls(self) -> bool:
        """Whether the first token alone is pooled."""
        return self.pooler.startswith("cls")


class Pooled(Readout):
    """Pooling as a readout; it has no parameters."""

    def __init__(self, config: Config, width: int, depth: int) -> None:
        super().__init__(width)
        self._config = config
        self._depth = depth  # layers of the encoder
        if config.indices == (-1,):
            self.reads = "first" if config.takes_cls else "last"

    def forward(self, hidden_states: Sequence[Tensor], batch: TokenBatch) -> Tensor:
        """Pool the chosen layers."""
        return pool(hidden_states, batch.mask_BT, self._config)

    def sentence_modules(self) -> Sequence[nn.Module]:
        """Built-in poolings: an average of hidden states, if several or others than the last are read, and a pooler."""
        from sentence_transformers.sentence_transformer.modules import Pooling, WeightedLayerPooling

        pooler: nn.Module = Pooling(self.width, pooling_mode="cls" if self._config.takes_cls else "mean")
        if self.reads != "all":
            return [pooler]
        weights = torch.zeros(self._depth + 1)
        for index in self._config.indices:
            weights[index] += 1  # a layer named twice weighs twice
        average = WeightedLayerPooling(
            self.width, num_hidden_layers=self._depth, layer_start=0, layer_weights=nn.Parameter(weights)
        )
        return [average, pooler]


def build(config: Config, backbone_config: PretrainedConfig) -> Pooled:
    """Make the readout.

    Raises:
        DataError: if the encoder has no such layers.
    """
    depth = backbone_config.num_hidden_layers
    if not all(-depth - 1 <= index <= depth for index in config.indices):
        raise DataError(f"readout.layers {config.indices}: the encoder has hidden states 0 to {depth}.")
    return Pooled(config, backbone_config.hidden_size, depth)


def pool(hidden_states: Sequence[Tensor], mask_BT: Tensor, pooling: Config) -> Tensor:
    """Pool token states of the chosen layers.

    Args:
        hidden_states: Embedding output and every layer's output, each (B, T, D), or of the first token alone.
        mask_BT: 1 for a token, 0 for padding; every row holds at least one token.
        pooling: Layers and pooler.

    Returns:
        Sentence vectors, shape (B, D), not normalised.
    """
    chosen = [hidden_states[index] for index in pooling.indices]
    states_BTD = sum(chosen[1:], chosen[0]) / len(chosen)
    if pooling.takes_cls:
        return states_BTD[:, 0]
    weight_BT1 = mask_BT.unsqueeze(-1).to(states_BTD.dtype)
    return (states_BTD * weight_BT1).sum(dim=1) / weight_BT1.sum(dim=1)
