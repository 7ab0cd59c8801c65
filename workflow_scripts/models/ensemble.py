"""Encoders whose vectors are added up: twins, larger ensembles, fusions with a published encoder."""

from collections.abc import Sequence
from typing import cast

import torch
from torch import Tensor, nn

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.cross_attention import bypass_layernorms
from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.templates import Template


class Ensemble(nn.Module):
    """Weighted sum of the vectors of its towers, each an encoder or an ensemble, over the same tokens.

    Args:
        towers: Encoders of one width and one vocabulary.
        weights: Of the towers, in their order.
        bypassed_layernorms: Last layers of every tower whose LayerNorms are left out.

    Raises:
        ConfigError: if widths differ, or there is not one weight a tower.
    """

    def __init__(
        self,
        towers: Sequence["SentenceEncoder | Ensemble"],
        weights: Sequence[float],
        bypassed_layernorms: int = 0,
    ) -> None:
        super().__init__()
        widths = sorted({tower.width for tower in towers})
        if len(widths) > 1:
            raise ConfigError(f"encoders: towers of several widths, {widths}, cannot be added up.")
        if len(weights) != len(towers):
            raise ConfigError(f"methods: {len(weights)} weights for {len(towers)} towers. Give one each.")
        self.towers = nn.ModuleList(towers)
        self.weights = tuple(weights)
        self.bypassed_layernorms = bypassed_layernorms
        if bypassed_layernorms:
            for tower in self.members:
                assert isinstance(tower, SentenceEncoder)
                bypass_layernorms(tower.backbone, bypassed_layernorms)

    @property
    def members(self) -> list["SentenceEncoder | Ensemble"]:
        """The towers."""
        return [cast("SentenceEncoder | Ensemble", tower) for tower in self.towers]

    @property
    def width(self) -> int:
        """Entries of an embedding."""
        return self.members[0].width

    @property
    def template(self) -> Template | None:
        """The prompt of all towers.

        Raises:
            ConfigError: if they have different ones: they read the same tokens.
        """
        first, *others = [tower.template for tower in self.members]
        if any(other != first for other in others):
            raise ConfigError("encoders: towers with different templates cannot be added up.")
        return first

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.members[0].device

    @property
    def leaves(self) -> list[SentenceEncoder]:
        """Encoders that are no ensembles themselves, first to last."""
        nested = [tower.leaves if isinstance(tower, Ensemble) else [tower] for tower in self.members]
        return [leaf for part in nested for leaf in part]

    @property
    def modules_by_name(self) -> list[str]:
        """Project modules that loading the towers imports by name."""
        return sorted({name for tower in self.members for name in tower.modules_by_name})

    def forward(self, ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Embed token ids; returns (B, D), not normalised."""
        vectors = [w * tower(ids_BT, mask_BT) for w, tower in zip(self.weights, self.members, strict=True)]
        return torch.stack(vectors).sum(dim=0)
