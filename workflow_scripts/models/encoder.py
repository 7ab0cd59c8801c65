"""A sentence encoder: any BERT-, RoBERTa- or ModernBERT-like backbone, a pooler, and an optional MLP head."""

from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import AutoModel, AutoTokenizer, PreTrainedModel, PreTrainedTokenizerBase
from transformers.utils import logging as transformers_logging

from workflow_scripts.errors import DataError
from workflow_scripts.models.pooling import Pooling, pool


transformers_logging.disable_progress_bar()  # bars of loading weights drown those of the work


class Head(nn.Module):
    """Linear and tanh on the pooled vector, started afresh from N(0, 0.02) (SimCSE, cl_init)."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.dense = nn.Linear(width, width)
        nn.init.normal_(self.dense.weight, std=0.02)
        nn.init.zeros_(self.dense.bias)

    def forward(self, vectors_BD: Tensor) -> Tensor:
        """Map (B, D) to (B, D), each entry in (-1, 1)."""
        return torch.tanh(self.dense(vectors_BD))


class SentenceEncoder(nn.Module):
    """Backbone, pooler and head; the head runs while training and, if ``head_at_test``, at test."""

    def __init__(self, backbone: PreTrainedModel, pooling: Pooling, *, head: bool, head_at_test: bool) -> None:
        super().__init__()
        depth = backbone.config.num_hidden_layers
        if not all(-depth - 1 <= index <= depth for index in pooling.indices):
            raise DataError(f"pooling.layers {pooling.indices}: the encoder has hidden states 0 to {depth}.")
        self.backbone = backbone
        self.pooling = pooling
        self.head = Head(backbone.config.hidden_size) if head else None
        self.head_at_test = head and head_at_test

    def forward(self, ids_BT: Tensor, mask_BT: Tensor) -> Tensor:
        """Embed token ids; returns (B, D), not normalised."""
        vectors_BD = pool(self.hidden_states(ids_BT, mask_BT), mask_BT, self.pooling)
        if self.head is not None and (self.training or self.head_at_test):
            vectors_BD = self.head(vectors_BD)
        return vectors_BD

    def hidden_states(self, ids_BT: Tensor, mask_BT: Tensor) -> tuple[Tensor, ...]:
        """States (B, T, D) of the embedding output and every layer; only the last where no other is pooled."""
        last_only = self.pooling.indices == (-1,)
        output = self.backbone(input_ids=ids_BT, attention_mask=mask_BT, output_hidden_states=not last_only)
        states: tuple[Tensor, ...] = (output.last_hidden_state,) if last_only else output.hidden_states
        return states


def load_backbone(folder: Path, **overrides: Any) -> PreTrainedModel:
    """Load the encoder of a model folder in float32, dropout off.

    Args:
        folder: A folder as ``save_pretrained`` writes it, weights in safetensors.
        overrides: Entries of the model's configuration to replace, such as ``hidden_dropout_prob``.

    Raises:
        DataError: if the folder holds no usable model.
    """
    try:
        model = AutoModel.from_pretrained(
            folder, use_safetensors=True, local_files_only=True, dtype=torch.float32, **overrides
        )
    except (OSError, ValueError) as error:
        raise DataError(f"{folder}: no encoder can be loaded: {str(error).splitlines()[0]}") from error
    model.eval()
    return model  # type: ignore[no-any-return]


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load the fast tokeniser of a model folder."""
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True, use_fast=True)
    return tokenizer  # type: ignore[no-any-return]
