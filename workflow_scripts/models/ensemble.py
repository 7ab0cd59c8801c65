"""Ensembles, whose vectors are sums over encoders: twins, larger ensembles, fusions with a published encoder.

``models.folders`` imports this module by name, and only for a folder of several encoders.
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

    All read the same tokens, or, if their vocabularies differ, each reads those of its own tokeniser.

    Args:
        sub_encoders: Encoders of the same width and template.
        weights: Weights of the sub-encoders, in their order.
        bypassed_layernorms: Number of last layers of every sub-encoder whose LayerNorms are left out.
        tokenizers: Tokenisers of the sub-encoders; empty if all have the same.

    Raises:
        ConfigError: if widths or templates differ, or one is an encoder as published.
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
        if any(sub_encoder.tokenizer for sub_encoder in sub_encoders):
            raise ConfigError(
                "encoders: an encoder as published cannot be added up. Take a run of frozen_avg or frozen_cls."
            )
        for name in ("width", "template"):
            if any(getattr(other, name) != getattr(first, name) for other in others):
                raise ConfigError(f"encoders: sub-encoders that differ in {name} cannot be added up.")
        self.sub_encoders = nn.ModuleList(sub_encoders)
        self.weights = tuple(weights)
        self.bypassed_layernorms = bypassed_layernorms
        self.width = first.width
        self.template = first.template
        if not have_one_vocabulary(tokenizers) or any(part.tokenizers for part in sub_encoders):
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
        """All single encoders, first to last."""
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
                "encoders: sub-encoders of several tokenisers embed sentences, not tokens. Take sub-encoders of one."
            )
        vectors = [
            weight * sub_encoder(ids_BT, mask_BT, packing)
            for weight, sub_encoder in zip(self.weights, self.members, strict=True)
        ]
        return torch.stack(vectors).sum(dim=0)

    def sentence_module(self, parts: list[Any]) -> nn.Module:
        """The sum as a module of sentence-transformers, from the ``SentenceTransformer`` of each sub-encoder."""
        from workflow_scripts.models.readouts.encoder_sum import EncoderSum

        return EncoderSum(list(self.weights), self.bypassed_layernorms, parts)
