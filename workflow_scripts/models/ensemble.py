"""Encoders whose vectors are added up: twins, larger ensembles, fusions with a published encoder.

Whoever loads a model folder imports this module by name, and only for a folder of several encoders.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from pydantic import Field
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder, load_tokenizer, own_tokenizers
from workflow_scripts.models.folders import SUM_FILE
from workflow_scripts.models.packing import Packing
from workflow_scripts.models.readouts.base import bypass_layernorms
from workflow_scripts.settings.readouts import ReadoutConfig


class SavedEnsemble(Settings):
    """What a model folder says of the sub-encoders in it; number i, from 1, is in the folder encoder<i>."""

    weights: tuple[float, ...]
    bypassed_layernorms: int = Field(ge=0)


class Ensemble(TextEncoder):
    """Weighted sum of the vectors of its sub-encoders, each an encoder or an ensemble.

    All read the same tokens, or each those of its own tokeniser (``tokenizers``, which whoever joins them sets).

    Args:
        sub_encoders: Encoders of one width and one template.
        weights: Of the sub-encoders, in their order.
        bypassed_layernorms: Last layers of every sub-encoder whose LayerNorms are left out.

    Raises:
        ConfigError: if widths or templates differ.
    """

    def __init__(
        self, sub_encoders: Sequence[TextEncoder], weights: Sequence[float], bypassed_layernorms: int = 0
    ) -> None:
        super().__init__()
        first, *others = sub_encoders
        for what in ("width", "template"):
            if any(getattr(other, what) != getattr(first, what) for other in others):
                raise ConfigError(f"encoders: sub-encoders that differ in {what} cannot be added up.")
        self.sub_encoders = nn.ModuleList(sub_encoders)
        self.weights = tuple(weights)
        self.bypassed_layernorms = bypassed_layernorms
        self.width = first.width
        self.template = first.template
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
        read = Ensemble(sub_encoders, self.weights, self.bypassed_layernorms)
        read.tokenizers = self.tokenizers
        return read

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

    def sentence_modules(
        self,
        folder: Path,
        tokenizer: PreTrainedTokenizerBase,
        write_part: Callable[[Path, TextEncoder, PreTrainedTokenizerBase], Any],
    ) -> list[nn.Module]:
        """Write what the pipeline loads of each sub-encoder; returns what computes the sum in sentence-transformers.

        Args:
            folder: The model folder.
            tokenizer: Of all sub-encoders, unless each has its own.
            write_part: Writes one sub-encoder into its folder and returns its ``SentenceTransformer``.
        """
        from workflow_scripts.models.readouts.encoder_sum import EncoderSum

        tokenizers = self.tokenizers or [tokenizer] * len(self.members)
        places = _places(folder, len(self.members))
        parts = list(map(write_part, places, self.members, tokenizers))
        return [EncoderSum(list(self.weights), self.bypassed_layernorms, parts)]


def load_ensemble(folder: Path, load_part: Callable[[Path], TextEncoder]) -> Ensemble:
    """Load what ``EncoderSum`` wrote, each sub-encoder by ``load_part``."""
    saved = SavedEnsemble.model_validate_json((folder / SUM_FILE).read_text("utf-8"))
    places = _places(folder, len(saved.weights))
    parts = list(map(load_part, places))
    ensemble = Ensemble(parts, saved.weights, saved.bypassed_layernorms)
    ensemble.tokenizers = own_tokenizers(parts, list(map(load_tokenizer, places)))
    return ensemble


def _places(folder: Path, count: int) -> list[Path]:
    return [folder / f"encoder{number}" for number in range(1, count + 1)]
