"""Ensembles, which sum the vectors of encoders: twins, larger ensembles, fusions with a published encoder.

``models.loading`` imports this module by name, only for a folder of several encoders.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Self, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from transformers import PreTrainedModel

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.backbone import have_one_vocabulary
from workflow_scripts.models.encoding import encode_sentences
from workflow_scripts.models.folders import (
    SUM_FILE,
    forbid_auto_model,
    write_with_sentence_transformers,
)
from workflow_scripts.models.loading import class_of
from workflow_scripts.models.readouts.base import bypass_layernorms
from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.models.tokens import Packing
from workflow_scripts.settings.readouts import ReadoutConfig

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer  # slow to import


class EnsembleEncoder(TextEncoder):
    """Weighted sum of the vectors of its sub-encoders, each an encoder or an ensemble.

    If all have the same vocabulary, they read the tokens of the first one's tokeniser; otherwise each reads its own.

    Args:
        sub_encoders: Encoders of the same width and template.
        weights: Weights of the sub-encoders, in their order.
        bypassed_layernorms: Number of last layers of each sub-encoder whose LayerNorms are left out.

    Raises:
        ConfigError: if widths or templates differ, or a sub-encoder is an encoder as published.
    """

    def __init__(
        self, sub_encoders: Sequence[TextEncoder], weights: Sequence[float], bypassed_layernorms: int = 0
    ) -> None:
        super().__init__()
        if not all(sub_encoder.can_be_summed for sub_encoder in sub_encoders):
            raise ConfigError(
                "encoders: an encoder as published cannot be added up. Use a run of frozen_avg or frozen_cls."
            )
        first, *others = sub_encoders
        if any(other.width != first.width for other in others):
            raise ConfigError("encoders: sub-encoders that differ in width cannot be added up.")
        if any(other.template != first.template for other in others):
            raise ConfigError("encoders: sub-encoders that differ in template cannot be added up.")
        self.sub_encoders = nn.ModuleList(sub_encoders)
        self.weights = tuple(weights)
        self.bypassed_layernorms = bypassed_layernorms
        self.width, self.template, self.tokenizer = first.width, first.template, first.tokenizer
        tokenizers = [sub_encoder.tokenizer for sub_encoder in sub_encoders]
        each_reads_one = all(sub_encoder.reads_one_vocabulary for sub_encoder in sub_encoders)
        self._reads_one_vocabulary = each_reads_one and have_one_vocabulary(tokenizers)
        if self._reads_one_vocabulary:
            for sub_encoder in sub_encoders:
                sub_encoder.tokenizer = self.tokenizer
        if bypassed_layernorms:
            for backbone in self.backbones:
                bypass_layernorms(backbone, bypassed_layernorms)

    @property
    def members(self) -> list[TextEncoder]:
        """Return the sub-encoders."""
        return [cast(TextEncoder, sub_encoder) for sub_encoder in self.sub_encoders]

    @property
    def reads_one_vocabulary(self) -> bool:
        """Return whether all sub-encoders read the same token ids."""
        return self._reads_one_vocabulary

    @property
    def backbones(self) -> list[PreTrainedModel]:
        """Return the backbones of all single encoders, first to last."""
        return [backbone for sub_encoder in self.members for backbone in sub_encoder.backbones]

    def with_readout(self, readout: ReadoutConfig, *, keep_prompt: bool = True) -> "EnsembleEncoder":
        """Return an ensemble whose sub-encoders all have another readout and no head."""
        sub_encoders = [
            sub_encoder.with_readout(readout, keep_prompt=keep_prompt) for sub_encoder in self.members
        ]
        return EnsembleEncoder(sub_encoders, self.weights, self.bypassed_layernorms)

    def forward(self, ids_BT: Tensor, mask_BT: Tensor, packing: Packing | None = None) -> Tensor:
        """Return embeddings of the tokens of a batch, (B, D), not normalised.

        Raises:
            ConfigError: if sub-encoders read different tokens.
        """
        if not self.reads_one_vocabulary:
            raise ConfigError(
                "encoders: sub-encoders of several tokenisers embed sentences, not tokens. Use "
                "sub-encoders of one tokeniser."
            )
        vectors = [
            weight * sub_encoder(ids_BT, mask_BT, packing)
            for weight, sub_encoder in zip(self.weights, self.members, strict=True)
        ]
        return torch.stack(vectors).sum(dim=0)

    def encode(self, sentences: Sequence[str], max_tokens: int) -> NDArray[np.float32]:
        """Return embeddings, (N, D) (``TextEncoder.encode``); each sub-encoder reads its own tokens if they differ."""
        if self.reads_one_vocabulary:
            return encode_sentences(self, sentences, max_tokens)
        vectors = [
            weight * sub_encoder.encode(sentences, max_tokens)
            for weight, sub_encoder in zip(self.weights, self.members, strict=True)
        ]
        return np.sum(vectors, axis=0, dtype=np.float32)  # type: ignore[no-any-return]

    def save(self, folder: Path) -> None:
        """Write the sub-encoders and modules of sentence-transformers."""
        write_with_sentence_transformers(folder, self.sentence_transformer(folder))

    def sentence_transformer(self, folder: Path) -> "SentenceTransformer":
        """Write the files of this pipeline's loader, and return the model that writes the others."""
        from sentence_transformers import SentenceTransformer

        from workflow_scripts.models.readouts.encoder_sum import EncoderSum

        folder.mkdir(exist_ok=True)
        self.tokenizer.save_pretrained(folder)
        folders = sub_folders(folder, len(self.members))
        parts = [
            sub_encoder.sentence_transformer(subfolder)
            for sub_encoder, subfolder in zip(self.members, folders, strict=True)
        ]
        total = EncoderSum(list(self.weights), self.bypassed_layernorms, parts)
        forbid_auto_model(folder)
        return SentenceTransformer(modules=[total], device="cpu")

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Return the ensemble in a folder that ``save`` wrote."""
        saved = json.loads((folder / SUM_FILE).read_text("utf-8"))
        folders = sub_folders(folder, len(saved["weights"]))
        return cls([class_of(subfolder).load(subfolder) for subfolder in folders], **saved)


def sub_folders(folder: Path, count: int) -> list[Path]:
    """Return the folders of the sub-encoders of an ensemble."""
    return [folder / f"encoder{number}" for number in range(1, count + 1)]
