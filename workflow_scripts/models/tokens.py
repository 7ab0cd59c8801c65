"""Sentences as token ids: tokenised once, kept without padding, padded batch by batch."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from workflow_scripts.models.packing import Packing, onto

Rows = Sequence[int] | NDArray[np.int64]
_SLICE = 10_000  # sentences handed to the tokeniser at once; bounds the memory of its Python objects


class TokenBatch(NamedTuple):
    """Padded token ids of some sentences.

    Shape suffixes: B sentences, T tokens of the longest.
    """

    ids_BT: Tensor
    mask_BT: Tensor
    packing: Packing | None = None
    """Where its tokens are, if somebody has looked."""

    def to(self, device: torch.device) -> "TokenBatch":
        """Copy to ``device`` with its packing, without waiting for it."""
        packing = self.packed()
        if device == self.ids_BT.device:
            return self._replace(packing=packing)
        return TokenBatch(onto(self.ids_BT, device), onto(self.mask_BT, device), packing.to(device))

    def packed(self) -> Packing:
        """Where its tokens are."""
        return self.packing or Packing.of(self.mask_BT)

    @classmethod
    def joined(cls, batches: Sequence["TokenBatch"], pad_id: int = 0) -> "TokenBatch":
        """The sentences of ``batches`` one after the other, padded to the longest of all."""
        width = max(batch.ids_BT.shape[1] for batch in batches)
        padding = [(0, width - batch.ids_BT.shape[1]) for batch in batches]
        ids = [F.pad(batch.ids_BT, pad, value=pad_id) for batch, pad in zip(batches, padding, strict=True)]
        masks = [F.pad(batch.mask_BT, pad) for batch, pad in zip(batches, padding, strict=True)]
        return cls(torch.cat(ids), torch.cat(masks))

    def followed_by(self, shared: "TokenBatch") -> "TokenBatch":
        """This process's sentences, and behind them some that every process of a training has alike."""
        both = self.joined([self, shared])
        return both._replace(packing=Packing.of(both.mask_BT, own=len(self.ids_BT)))

    def repeated(self) -> "TokenBatch":
        """The batch twice, one after the other: (2B, T)."""
        return self.joined([self, self])


class TokenisedText:
    """Token ids of many sentences end to end, 4 bytes a token; sentence ``n`` begins at ``starts[n]``."""

    def __init__(self, ids: NDArray[np.int32], starts: NDArray[np.int64], pad_id: int) -> None:
        self.ids = ids
        self.starts = starts
        self.pad_id = pad_id

    def __len__(self) -> int:
        """Number of sentences."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each sentence."""
        return np.diff(self.starts)

    def lengths_of(self, rows: Rows) -> NDArray[np.int64]:
        """Tokens of some sentences."""
        rows = np.asarray(rows)
        lengths: NDArray[np.int64] = self.starts[rows + 1] - self.starts[rows]
        return lengths

    def subset(self, rows: NDArray[np.int64]) -> "TokenisedText":
        """Some sentences, in the order of ``rows``."""
        lengths = self.lengths_of(rows)
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        positions = np.repeat(self.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return TokenisedText(self.ids[positions], starts, self.pad_id)

    def batch(self, rows: Rows) -> TokenBatch:
        """Pad ``rows`` to the longest of them."""
        starts, lengths = self.starts[rows], self.lengths_of(rows)
        column = np.arange(lengths.max())
        token = column < lengths[:, None]
        ids = np.full(token.shape, self.pad_id, dtype=np.int64)
        ids[token] = self.ids[(starts[:, None] + column)[token]]
        return TokenBatch(torch.from_numpy(ids), torch.from_numpy(token.astype(np.int64)))


def tokenise(tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], max_tokens: int) -> TokenisedText:
    """Tokenise ``sentences``, each cut to ``max_tokens`` ids, special tokens included."""
    ids: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    for start in range(0, len(sentences), _SLICE):
        piece = list(sentences[start : start + _SLICE])
        rows = tokenizer(piece, truncation=True, max_length=max_tokens, return_attention_mask=False)[
            "input_ids"
        ]
        lengths.extend(map(len, rows))
        ids.extend(np.asarray(row, dtype=np.int32) for row in rows)
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    flat = np.concatenate(ids) if ids else np.empty(0, dtype=np.int32)
    return TokenisedText(flat, starts, int(tokenizer.pad_token_id))
