"""Encoders whose vectors are added up: twins, larger ensembles, fusions with a published encoder.

Whoever loads a model folder imports this module by name, and only for a folder of several encoders.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from pydantic import Field
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder, load_tokenizer
from workflow_scripts.models.folders import ENSEMBLE_FILE, sub_encoder_folder
from workflow_scripts.models.packing import Packing
from workflow_scripts.settings.readouts import ReadoutConfig


class SavedEnsemble(Settings):
    """What a model folder says of the sub-encoders in it."""

    weights: tuple[float, ...] = Field(
        description="One a sub-encoder; sub-encoder i is in the folder encoder<i>, from 1."
    )
    bypassed_layernorms: int = Field(ge=0, description="Last layers of every sub-encoder without LayerNorms.")
    own_tokenizers: bool = Field(
        default=False,
        description="Whether each folder's own tokeniser is read; folders before 0.2 lack this.",
    )


class Ensemble(TextEncoder):
    """Weighted sum of the vectors of its sub-encoders, each an encoder or an ensemble.

    All read the same tokens, or each those of its own tokeniser (``tokenizers``, which whoever joins them sets).

    Args:
        sub_encoders: Encoders of one width and one template.
        weights: Of the sub-encoders, in their order.
        bypassed_layernorms: Last layers of every sub-encoder whose LayerNorms are left out.

    Raises:
        ConfigError: if widths or templates differ, or there is not one weight a sub-encoder.
    """

    def __init__(
        self, sub_encoders: Sequence[TextEncoder], weights: Sequence[float], bypassed_layernorms: int = 0
    ) -> None:
        super().__init__()
        widths = sorted({sub_encoder.width for sub_encoder in sub_encoders})
        if len(widths) > 1:
            raise ConfigError(f"encoders: sub-encoders of several widths, {widths}, cannot be added up.")
        if len(weights) != len(sub_encoders):
            raise ConfigError(
                f"methods: {len(weights)} weights for {len(sub_encoders)} sub-encoders. Give one each."
            )
        first, *others = [sub_encoder.template for sub_encoder in sub_encoders]
        if any(other != first for other in others):
            raise ConfigError("encoders: sub-encoders with different templates cannot be added up.")
        self.sub_encoders = nn.ModuleList(sub_encoders)
        self.weights = tuple(weights)
        self.bypassed_layernorms = bypassed_layernorms
        self.width = widths[0]
        self.template = first
        if bypassed_layernorms:
            for sub_encoder in self.members:
                assert isinstance(sub_encoder, SentenceEncoder)
                bypass_layernorms(sub_encoder.backbone, bypassed_layernorms)

    @property
    def members(self) -> list[TextEncoder]:
        """The sub_encoders."""
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
            w * sub_encoder(ids_BT, mask_BT, packing)
            for w, sub_encoder in zip(self.weights, self.members, strict=True)
        ]
        return torch.stack(vectors).sum(dim=0)

    def added_up(
        self, vectors_of: Callable[[TextEncoder, PreTrainedTokenizerBase], NDArray[np.float32]]
    ) -> NDArray[np.float32]:
        """Weighted sum, (N, D), of what ``vectors_of`` makes with each sub-encoder and the tokeniser of its own."""
        parts = zip(self.weights, self.members, self.tokenizers, strict=True)
        total = sum(np.float32(weight) * vectors_of(member, own) for weight, member, own in parts)
        return np.asarray(total, dtype=np.float32)

    def write(
        self, folder: Path, write_part: Callable[[Path, TextEncoder, PreTrainedTokenizerBase | None], Any]
    ) -> Any:
        """Write what the pipeline loads; returns the module of sentence-transformers that does the same.

        Args:
            folder: The model folder.
            write_part: Writes one sub-encoder into its folder with its own tokeniser, if it has one, and returns its
                ``SentenceTransformer``.
        """
        from workflow_scripts.models.portable.encoder_sum import EncoderSum

        parts = []
        for number, sub_encoder in enumerate(self.members, start=1):
            place = sub_encoder_folder(folder, number)
            place.mkdir()
            own = self.tokenizers[number - 1] if self.tokenizers else None
            parts.append(write_part(place, sub_encoder, own))
        saved = SavedEnsemble(
            weights=self.weights,
            bypassed_layernorms=self.bypassed_layernorms,
            own_tokenizers=bool(self.tokenizers),
        )
        (folder / ENSEMBLE_FILE).write_text(saved.model_dump_json(indent=1) + "\n", "utf-8")
        return EncoderSum(list(self.weights), self.bypassed_layernorms, parts, bool(self.tokenizers))


def load_ensemble(folder: Path, load_part: Callable[[Path], TextEncoder]) -> Ensemble:
    """Load what ``Ensemble.write`` wrote, each sub-encoder by ``load_part``."""
    saved = SavedEnsemble.model_validate_json((folder / ENSEMBLE_FILE).read_text("utf-8"))
    places = [sub_encoder_folder(folder, number) for number in range(1, len(saved.weights) + 1)]
    ensemble = Ensemble([load_part(place) for place in places], saved.weights, saved.bypassed_layernorms)
    if saved.own_tokenizers:
        ensemble.tokenizers = [load_tokenizer(place) for place in places]
    return ensemble


def bypass_layernorms(sub_encoder: Any, last: int) -> None:
    """Let the states of the last layers through unnormalised (JTCSE, section VI-A and Fig. 8).

    The weights of the LayerNorms stay where they are, unused, so that a saved sub-encoder is a stock encoder.

    Raises:
        ConfigError: if the encoder has fewer layers.
    """
    layers = list(sub_encoder.encoder.layer)
    if last > len(layers):
        raise ConfigError(f"methods: bypassed_layernorms is {last}; the encoder has {len(layers)} layers.")
    for layer in layers[len(layers) - last :]:
        for norm in (layer.attention.output.LayerNorm, layer.output.LayerNorm):
            norm.register_forward_hook(_let_through)


def _let_through(_module: nn.Module, inputs: tuple[Tensor, ...], _output: Tensor) -> Tensor:
    return inputs[0]
