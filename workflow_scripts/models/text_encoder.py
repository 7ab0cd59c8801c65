"""Interface of all encoders of sentences: a single one, a sum of several, or a folder as published."""

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
    """Number D of entries of a vector at test."""
    template: Template | None
    """The prompt around each sentence; None for none."""
    tokenizer: PreTrainedTokenizerBase
    """The tokeniser; of an ensemble, that of its first sub-encoder."""

    @property
    def device(self) -> torch.device:
        """Return the device of the weights."""
        return next(self.parameters()).device


class TextEncoder(TokenEncoder, ABC):
    """A sentence encoder with methods that encode, save and load."""

    labels: Sequence[str] = ()
    """Labels of all numbers that are made with the encoder, in addition to those of its settings."""
    can_be_summed: ClassVar[bool] = True
    """Whether the encoder can be part of an ensemble."""

    @property
    def reads_one_vocabulary(self) -> bool:
        """Return whether all parts of the encoder read the same token ids."""
        return True

    @property
    @abstractmethod
    def backbones(self) -> list[PreTrainedModel]:
        """Return the backbone of each single encoder, first to last."""

    @abstractmethod
    def with_readout(self, readout: ReadoutConfig, *, keep_prompt: bool = True) -> "TextEncoder":
        """Return an encoder of the same backbones with another readout; of heads, only poolers stay.

        Args:
            readout: Settings of a readout without parameters.
            keep_prompt: Whether sentences stay inside the encoder's template.
        """

    @abstractmethod
    def encode(self, sentences: Sequence[str], max_tokens: int) -> NDArray[np.float32]:
        """Return embeddings of sentences, inside the encoder's template if it has one, without dropout.

        Returns:
            Vectors of shape (N, D), in the order of ``sentences``, not normalised. A vector does not depend on the
            other sentences, up to float32 rounding.
        """

    @abstractmethod
    def save(self, folder: Path) -> None:
        """Write the encoder into a folder from which ``load`` and ``SentenceTransformer`` give the same vectors."""

    @abstractmethod
    def sentence_transformer(self, folder: Path) -> "SentenceTransformer":
        """Write the files of this pipeline's loader into a folder, and return the model that writes the others."""

    @classmethod
    @abstractmethod
    def load(cls, folder: Path) -> Self:
        """Return the encoder in a folder that ``save`` wrote, without verifying its files or setting its mode."""
