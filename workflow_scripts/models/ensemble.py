"""Encoders whose vectors are added up: twins, larger ensembles, fusions with a published encoder.

Whoever loads a model folder imports this module by name, and only for a folder of several encoders.
"""

from collections.abc import Sequence
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder, have_one_vocabulary
from workflow_scripts.models.readouts.base import bypass_layernorms
from workflow_scripts.models.tokens import Packing
from workflow_scripts.settings.readouts import ReadoutConfig


class Ensemble(TextEncoder):
    """Weighted sum of the vectors of its sub-encoders, each an encoder or an ensemble.

    All read the same tokens, or each those of its own tokeniser, where the first one's tokens are not those of all.

    Args:
        sub_encoders: Encoders of one width and one template.
        weights: Of the sub-encoders, in their order.
        bypassed_layernorms: Last layers of every sub-encoder whose LayerNorms are left out.
        tokenizers: Of the sub-encoders; none where all are known to have the same.

    Raises:
        ConfigError: if widths or templates differ, or one is read as it was published.
    """

    def __init__(
        self,
        sub_encoders: Sequence[TextEncoder],
        weights: Sequence[float],
        bypassed_layernorms: int = 0,
        tokenizers: Sequence[PreTrainedTokenizerBase] = (),
    ) -> None:
        super().__init__()
        first, *others = sub_encoders
        if any(one.tokenizer for one in sub_encoders):
            raise ConfigError(
                "encoders: a run as it was published is not added up. Take frozen_avg or frozen_cls."
            )
        for what in ("width", "template"):
            if any(getattr(other, what) != getattr(first, what) for other in others):
                raise ConfigError(f"encoders: sub-encoders that differ in {what} cannot be added up.")
        self.sub_encoders = nn.ModuleList(sub_encoders)
        self.weights = tuple(weights)
        self.bypassed_layernorms = bypassed_layernorms
        self.width = first.width
        self.template = first.template
        if not have_one_vocabulary(tokenizers) or any(one.tokenizers for one in sub_encoders):
            self.tokenizers = tokenizers
        if bypassed_layernorms:
            for leaf in self.leaves:
                bypass_layernorms(leaf.backbone, bypassed_layernorms)

    @property
    def members(self) -> list[TextEncoder]:
        """The sub-encoders."""
        return [cast(TextEncoder, sub_encoder) for sub_encoder in self.sub_encoders]

    @property
    def leaves(self) -> list[SentenceEncoder]:
        """Encoders that are no ensembles themselves, first to last."""
        return [leaf for sub_encoder in self.members for leaf in sub_encoder.leaves]

    def read_by(self, readout: ReadoutConfig) -> "Ensemble":
        """The same sub-encoders with another readout and no head."""
        sub_encoders = [sub_encoder.read_by(readout) for sub_encoder in self.members]
        return Ensemble(sub_encoders, self.weights, self.bypassed_layernorms, self.tokenizers)

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, packing: Packing | None = None) -> Tensor:
        """Embed the tokens of a batch; returns (B, D), not normalised.

        Raises:
            ConfigError: if sub-encoders read different tokens.
        """
        if self.tokenizers:
            raise ConfigError(
                "encoders: sub-encoders of several tokenisers embed sentences, not tokens. Take one that shares them."
            )
        vectors = [
            weight * sub_encoder(ids_BT, mask_BT, packing)
            for weight, sub_encoder in zip(self.weights, self.members, strict=True)
        ]
        return torch.stack(vectors).sum(dim=0)

    def sentence_module(self, parts: list[Any]) -> nn.Module:
        """What computes the sum in sentence-transformers, of the ``SentenceTransformer`` of each sub-encoder."""
        from workflow_scripts.models.readouts.encoder_sum import EncoderSum

        return EncoderSum(list(self.weights), self.bypassed_layernorms, parts)
