"""Sentences as token ids: tokenised once, stored without padding, padded batch by batch, or packed end to end."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from numpy.typing import NDArray
from torch import Tensor
from torch.utils._pytree import tree_map_only
from transformers import PreTrainedTokenizerBase

Rows = Sequence[int] | NDArray[np.int64]
_SLICE = 10_000  # sentences per call of the tokeniser, to limit the memory of its Python objects


class Shapes(NamedTuple):
    """Multiples to which the shapes of batches are rounded up: fewer shapes occur and have to be captured."""

    tokens: int = 1
    """The number of packed tokens is a multiple of this."""
    width: int = 1
    """The padded length is a multiple of this."""
    longest: int | None = None
    """The encoder's maximum padded length; None without a limit."""


NATURAL = Shapes()
"""Shapes that are not rounded: batches are as long as their longest sentence."""


class Packing(NamedTuple):
    """Positions of a batch's tokens without padding: sentences end to end, each with at least one token.

    Packing on a GPU would make the host wait for the mask; ``TokenBatch.ready`` packs on the host. If the number of
    tokens is rounded up, tokens after the last are padding, which is never read.

    Shape suffixes: B sentences, T tokens of the longest, N tokens of all.
    """

    width: int
    """Padded length T."""
    places_N: Tensor
    """Position of each token among the B * T padded positions."""
    token_of_BT: Tensor
    """Token of each padded position, flat; padding refers to the first token of the batch, and is masked."""
    first_B: Tensor
    """The first token of each sentence."""
    bias_B11T: Tensor
    """Added to attention scores: 0 for a token, minus infinity for padding."""
    padded: bool
    """Whether the batch has padding."""
    local: int
    """Number of this process's own sentences; later sentences are shared by all processes of a training."""
    start: int = 0
    """For a chunk, the number of its first sentence in the batch; ``local`` counts from the batch's first."""
    complete: bool = False
    """Whether padding also counts as tokens, to which no token attends."""

    @classmethod
    def of(cls, mask_BT: Tensor, local: int | None = None, start: int = 0, multiple: int = 1) -> "Packing":
        """Return the packing of a mask (1 for a token, 0 for padding); by default all sentences are this process's own.

        The number of tokens is rounded up to a ``multiple``, as far as padding allows.
        """
        token_BT = mask_BT.bool()
        places_N = token_BT.flatten().nonzero().squeeze(1)
        token_of_BT = torch.zeros(token_BT.numel(), dtype=torch.int64, device=mask_BT.device)
        token_of_BT[places_N] = torch.arange(len(places_N), device=mask_BT.device)
        if behind := min(-len(places_N) % multiple, token_BT.numel() - len(places_N)):
            padding = int(token_BT.flatten().int().argmin())
            places_N = F.pad(places_N, (0, behind), value=padding)
        lengths_B = token_BT.sum(dim=1)
        bias_BT = torch.zeros(mask_BT.shape, device=mask_BT.device).masked_fill_(~token_BT, -torch.inf)
        return cls(
            mask_BT.shape[1],
            places_N,
            token_of_BT,
            lengths_B.cumsum(0) - lengths_B,
            bias_BT[:, None, None, :],
            multiple > 1 or len(places_N) < token_BT.numel(),
            len(mask_BT) if local is None else local,
            start,
        )

    def with_padding(self) -> "Packing":
        """Return the packing of all positions, for models whose states of padding are read."""
        places_N = torch.arange(self.bias_B11T.numel(), device=self.places_N.device)
        return self._replace(
            places_N=places_N, token_of_BT=places_N, first_B=places_N[:: self.width], complete=True
        )

    @property
    def leaves_out(self) -> bool:
        """Return whether some positions are not tokens."""
        return self.padded and not self.complete

    @property
    def token_rows(self) -> Tensor:
        """Return the sentence of each token, (N)."""
        return self.places_N // self.width

    @property
    def token_columns(self) -> Tensor:
        """Return the column of each token, from 0, (N)."""
        return self.places_N % self.width

    def rows(self, tokens_Nx: Tensor) -> Tensor:
        """Return tokens in padded rows, (B, T, ...); padding is arbitrary."""
        if self.leaves_out:
            tokens_Nx = _Moved.apply(tokens_Nx, self.token_of_BT, self.places_N, None)  # type: ignore[no-untyped-call]
        return tokens_Nx.view(-1, self.width, *tokens_Nx.shape[1:])

    def heads(self, tokens_ND: Tensor, parts: int, heads: int) -> Tensor:
        """Return padded rows of each head of each part, (parts, B, heads, T, E); padding is arbitrary."""
        token_BT, pieces = self.token_of_BT.view(-1, self.width), parts * heads
        part = torch.arange(parts, device=token_BT.device)[:, None]
        piece = part * heads + torch.arange(heads, device=token_BT.device)  # index within a token
        order = token_BT[:, None] * pieces + piece[:, None, :, None]
        moved = tokens_ND.reshape(len(tokens_ND) * pieces, -1)
        if torch.is_grad_enabled():
            back = part * order[0].numel() + self._head_places(heads)[:, None]
            moved = _Moved.apply(moved, order.flatten(), back.flatten(), None)  # type: ignore[no-untyped-call]
        else:
            moved = moved.index_select(0, order.flatten())
        return moved.view(*order.shape, -1)

    def joined(self, rows_BHTE: Tensor) -> Tensor:
        """Return the tokens of padded rows, with their heads concatenated, (N, D)."""
        heads = rows_BHTE.shape[1]
        order_NH = self._head_places(heads)
        moved = rows_BHTE.flatten(0, 2)
        if torch.is_grad_enabled():
            head_H1 = torch.arange(heads, device=order_NH.device)[:, None]
            back_BHT = self.token_of_BT.view(-1, 1, self.width) * heads + head_H1
            is_token_BHT = (self.bias_B11T[:, :, 0] == 0).expand_as(back_BHT) if self.leaves_out else None
            moved = _Moved.apply(moved, order_NH.flatten(), back_BHT.flatten(), is_token_BHT)  # type: ignore[no-untyped-call]
        else:
            moved = moved.index_select(0, order_NH.flatten())
        return moved.view(len(order_NH), -1)

    def _head_places(self, heads: int) -> Tensor:
        """Return the position of each head of each token among B * heads * T padded positions, (N, heads)."""
        head = torch.arange(heads, device=self.places_N.device)
        return (self.token_rows[:, None] * heads + head) * self.width + self.token_columns[:, None]


def onto(tree: Any, device: torch.device) -> Any:
    """Return nested tuples of tensors on ``device``; copies to a GPU use pinned memory, without waiting."""

    def copied(tensor: Tensor) -> Tensor:
        if device.type == "cuda" and tensor.device.type == "cpu":
            tensor = tensor.pin_memory()
        return tensor.to(device, non_blocking=True)

    return tree_map_only(Tensor, copied, tree)


class _Moved(torch.autograd.Function):
    """Rows in another order, each used at most once, which lets the backward pass move gradients without adding them.

    ``back`` is the new position of each row, or one of them for rows that padding repeats. ``used`` is false for rows
    that are left out; None if all are used. Gradients of padding are dropped, since no output depends on padding.
    """

    @staticmethod
    def forward(context: Any, source: Tensor, order: Tensor, back: Tensor, used: Tensor | None) -> Tensor:
        context.back, context.used = back, used
        return source.index_select(0, order)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        moved = gradient.index_select(0, context.back)
        if context.used is not None:
            moved = moved.masked_fill_(~context.used.reshape(-1, 1), 0)
        return moved, None, None, None


class TokenBatch(NamedTuple):
    """Padded token ids of some sentences.

    Shape suffixes: B sentences, T tokens of the longest.
    """

    ids_BT: Tensor
    mask_BT: Tensor
    packing: Packing | None = None
    """Positions of the batch's tokens, after ``ready``."""

    def to(self, device: torch.device) -> "TokenBatch":
        """Return the batch and its packing on ``device``, without waiting for the copy."""
        batch: TokenBatch = onto(self.ready(), device)
        return batch

    def ready(self, shapes: Shapes = NATURAL) -> "TokenBatch":
        """Return the batch with its packing, both rounded up to ``shapes``."""
        if self.packing and shapes == NATURAL:
            return self
        behind = -self.mask_BT.shape[1] % shapes.width
        if shapes.longest:
            behind = max(0, min(behind, shapes.longest - self.mask_BT.shape[1]))
        mask_BT, local = F.pad(self.mask_BT, (0, behind)), self.packing and self.packing.local
        packing = Packing.of(mask_BT, local, multiple=shapes.tokens)
        return TokenBatch(F.pad(self.ids_BT, (0, behind)), mask_BT, packing)

    def packed(self) -> Packing:
        """Return the positions of the batch's tokens."""
        return self.packing or Packing.of(self.mask_BT)

    @classmethod
    def joined(cls, batches: Sequence["TokenBatch"], pad_id: int = 0) -> "TokenBatch":
        """Return the sentences of ``batches`` one after another, padded to the longest."""
        width = max(batch.ids_BT.shape[1] for batch in batches)
        padding = [(0, width - batch.ids_BT.shape[1]) for batch in batches]
        ids = [F.pad(batch.ids_BT, pad, value=pad_id) for batch, pad in zip(batches, padding, strict=True)]
        masks = [F.pad(batch.mask_BT, pad) for batch, pad in zip(batches, padding, strict=True)]
        return cls(torch.cat(ids), torch.cat(masks))

    def followed_by(self, shared: "TokenBatch") -> "TokenBatch":
        """Return the batch's sentences, all this process's own, followed by those that all processes share."""
        both = self.joined([self, shared])
        return both._replace(packing=Packing.of(both.mask_BT, local=len(self.ids_BT)))

    def chunks(self, size: int) -> Iterator["TokenBatch"]:
        """Yield the batch in parts of ``size`` sentences, as wide as the batch; sentences keep their numbers."""
        local = self.packing.local if self.packing else len(self.ids_BT)
        for start in range(0, len(self.ids_BT), size):
            rows = slice(start, start + size)
            mask_BT = self.mask_BT[rows]
            yield TokenBatch(self.ids_BT[rows], mask_BT, Packing.of(mask_BT, local, start))

    def repeated(self) -> "TokenBatch":
        """Return the batch's sentences twice: (2B, T)."""
        return self.joined([self, self])


class TokenisedText:
    """Token ids of many sentences end to end, 4 bytes each; sentence ``n`` begins at ``starts[n]``."""

    def __init__(self, ids: NDArray[np.int32], starts: NDArray[np.int64], pad_id: int) -> None:
        self.ids = ids
        self.starts = starts
        self.pad_id = pad_id

    def __len__(self) -> int:
        """Return the number of sentences."""
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Return the number of tokens of each sentence."""
        return np.diff(self.starts)

    def lengths_of(self, rows: Rows) -> NDArray[np.int64]:
        """Return the numbers of tokens of some sentences."""
        rows = np.asarray(rows)
        lengths: NDArray[np.int64] = self.starts[rows + 1] - self.starts[rows]
        return lengths

    def subset(self, rows: NDArray[np.int64]) -> "TokenisedText":
        """Return some sentences, in the order of ``rows``."""
        lengths = self.lengths_of(rows)
        starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        positions = np.repeat(self.starts[rows] - starts[:-1], lengths) + np.arange(starts[-1])
        return TokenisedText(self.ids[positions], starts, self.pad_id)

    def batch(self, rows: Rows) -> TokenBatch:
        """Return a batch of ``rows``, padded to the longest of them."""
        starts, lengths = self.starts[rows], self.lengths_of(rows)
        column = np.arange(lengths.max())
        token = column < lengths[:, None]
        ids = np.full(token.shape, self.pad_id, dtype=np.int64)
        ids[token] = self.ids[(starts[:, None] + column)[token]]
        return TokenBatch(torch.from_numpy(ids), torch.from_numpy(token.astype(np.int64)))


def tokenise(tokenizer: PreTrainedTokenizerBase, sentences: Sequence[str], max_tokens: int) -> TokenisedText:
    """Return the tokens of ``sentences``, each cut to ``max_tokens`` ids including special tokens."""
    ids: list[NDArray[np.int32]] = []
    lengths: list[int] = []
    for start in range(0, len(sentences), _SLICE):
        part = list(sentences[start : start + _SLICE])
        encoded = tokenizer(part, truncation=True, max_length=max_tokens, return_attention_mask=False)
        rows = encoded["input_ids"]
        lengths.extend(map(len, rows))
        ids.extend(np.asarray(row, dtype=np.int32) for row in rows)
    starts = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
    flat = np.concatenate(ids) if ids else np.empty(0, dtype=np.int32)
    return TokenisedText(flat, starts, int(tokenizer.pad_token_id))
