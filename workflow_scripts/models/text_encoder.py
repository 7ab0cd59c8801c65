"""The interface of all encoders of sentences: a single one, a sum of several, or a folder as it was published."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.settings.names import Template
from workflow_scripts.settings.readouts import ReadoutConfig

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer  # slow to import


class TokenEncoder(nn.Module):
    """A module that maps token ids and mask, both (B, T), to vectors (B, D), which are not normalised."""

    width: int
    """D, number of entries of a vector at test."""
    template: Template | None
    """The prompt around each sentence."""
    tokenizer: PreTrainedTokenizerBase
    """The tokeniser; of an ensemble, that of its first sub-encoder."""

    @property
    def device(self) -> torch.device:
        """The device of the weights."""
        return next(self.parameters()).device


class TextEncoder(TokenEncoder, ABC):
    """A module that encodes, saves and loads itself."""

    labels: Sequence[str] = ()
    """Labels for every number made with the encoder, in addition to those of its settings."""
    can_be_summed: ClassVar[bool] = True
    """Whether the encoder can be part of an ensemble."""

    @property
    def reads_one_vocabulary(self) -> bool:
        """Whether all parts of the encoder read the same token ids."""
        return True

    @property
    @abstractmethod
    def backbones(self) -> list[PreTrainedModel]:
        """The backbone of each single encoder, first to last."""

    @abstractmethod
    def with_readout(self, readout: ReadoutConfig, *, keep_prompt: bool = True) -> "TextEncoder":
        """Return an encoder of the same backbones with another readout, and of all heads only their poolers.

        Args:
            readout: Settings of a readout without parameters.
            keep_prompt: Whether sentences stay inside the encoder's template.
        """

    @abstractmethod
    def encode(self, sentences: Sequence[str], max_tokens: int) -> NDArray[np.float32]:
        """Embed sentences, inside the encoder's template if it has one, without dropout.

        Returns:
            Vectors of shape (N, D), in the order of ``sentences``, not normalised. A vector does not depend on the
            other sentences, up to float32 rounding.
        """

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the encoder into a folder from which ``load`` and ``SentenceTransformer`` give the same vectors."""

    @abstractmethod
    def sentence_transformer(self, folder: Path) -> "SentenceTransformer":
        """Write the files of this pipeline's loader into a folder; return the model that writes the others."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """Load a folder that ``save`` wrote, in evaluation mode or not, without verifying its files."""
