"""Sentences as token ids: tokenised once, kept without padding, padded batch by batch, or packed end to end."""

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
_SLICE = 10_000  # sentences handed to the tokeniser at once; bounds the memory of its Python objects


class Shapes(NamedTuple):
    """How batches are rounded up, so that few shapes occur; a captured step is replayed for each."""

    tokens: int = 1
    """Of which the number of packed tokens is a multiple."""
    width: int = 1
    """Of which the padded length is a multiple."""
    longest: int | None = None
    """The greatest padded length, where the encoder has one."""


NATURAL = Shapes()
"""Batches are as long as their longest sentence."""


class Packing(NamedTuple):
    """Sentences end to end: the places of a batch's tokens, padding left out; every sentence holds at least one.

    Made where the mask lies: on a GPU that means waiting for it, hence ``TokenBatch.ready``. Where the number of tokens
    is rounded up, those behind the last are padding, which nothing reads.

    Shape suffixes: B sentences, T tokens of the longest, N tokens in all.
    """

    width: int
    """T."""
    places_N: Tensor
    """Of each token among the B * T padded places."""
    token_of_BT: Tensor
    """Of each padded place its token, flat; padding names the first token of all, to be masked."""
    first_B: Tensor
    """The first token of each sentence."""
    bias_B11T: Tensor
    """To add to scores of attention: 0 for a token, minus infinity for padding."""
    padded: bool
    """Whether there is padding at all."""
    own: int
    """The sentences that this process alone has; those after them every process of a training has alike."""
    start: int = 0
    """The number of the first sentence, where these are a chunk of a batch; ``own`` counts from the batch's first."""

    @classmethod
    def of(cls, mask_BT: Tensor, own: int | None = None, start: int = 0, multiple: int = 1) -> "Packing":
        """Find the tokens of a mask: 1 for a token, 0 for padding; all sentences are a process's own if not said.

        The number of tokens is rounded up to a ``multiple``, as far as there is padding.
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
            len(mask_BT) if own is None else own,
            start,
        )

    @property
    def token_rows(self) -> Tensor:
        """The sentence of each token, (N)."""
        return self.places_N // self.width

    @property
    def token_columns(self) -> Tensor:
        """The place of each token in its row, from 0, (N)."""
        return self.places_N % self.width

    def rows(self, tokens_Nx: Tensor) -> Tensor:
        """Tokens in padded rows, (B, T, ...); what stands in padding is arbitrary."""
        if self.padded:
            tokens_Nx = _Moved.apply(tokens_Nx, self.token_of_BT, self.places_N, None)  # type: ignore[no-untyped-call]
        return tokens_Nx.view(-1, self.width, *tokens_Nx.shape[1:])

    def heads(self, tokens_ND: Tensor, parts: int, heads: int) -> Tensor:
        """Padded rows of each head of each part, (parts, B, heads, T, E), in one move; padding is arbitrary."""
        token_BT, pieces = self.token_of_BT.view(-1, self.width), parts * heads
        part = torch.arange(parts, device=token_BT.device)[:, None]
        piece = part * heads + torch.arange(heads, device=token_BT.device)  # of a token
        order = token_BT[:, None] * pieces + piece[:, None, :, None]
        back = part * order[0].numel() + self._places_of_heads(heads)[:, None]
        source = tokens_ND.reshape(len(tokens_ND) * pieces, -1)
        moved: Tensor = _Moved.apply(source, order.flatten(), back.flatten(), None)  # type: ignore[no-untyped-call]
        return moved.view(*order.shape, -1)

    def joined(self, rows_BHTE: Tensor) -> Tensor:
        """The tokens of padded rows of heads, all heads side by side, (N, D)."""
        heads = rows_BHTE.shape[1]
        order_NH = self._places_of_heads(heads)
        head_H1 = torch.arange(heads, device=order_NH.device)[:, None]
        back_BHT = self.token_of_BT.view(-1, 1, self.width) * heads + head_H1
        is_token_BHT = (self.bias_B11T[:, :, 0] == 0).expand_as(back_BHT) if self.padded else None
        moved: Tensor = _Moved.apply(  # type: ignore[no-untyped-call]
            rows_BHTE.flatten(0, 2), order_NH.flatten(), back_BHT.flatten(), is_token_BHT
        )
        return moved.view(len(order_NH), -1)

    def _places_of_heads(self, heads: int) -> Tensor:
        """Where each head of each token stands among B * heads * T padded places, (N, heads)."""
        head = torch.arange(heads, device=self.places_N.device)
        return (self.token_rows[:, None] * heads + head) * self.width + self.token_columns[:, None]


def onto(tree: Any, device: torch.device) -> Any:
    """Copy every tensor of nested tuples to ``device``; to a GPU from pinned memory, so that nobody waits for it."""

    def copied(tensor: Tensor) -> Tensor:
        if device.type == "cuda" and tensor.device.type == "cpu":
            tensor = tensor.pin_memory()
        return tensor.to(device, non_blocking=True)

    return tree_map_only(Tensor, copied, tree)


class _Moved(torch.autograd.Function):
    """Rows in another order, each at most once, so that the gradient is moved back instead of added up.

    ``back`` says where each row went, one place where it went to several; ``went`` says which rows went anywhere, if
    not all did. Gradients of padding are left out: nothing that is read depends on it.
    """

    @staticmethod
    def forward(context: Any, source: Tensor, order: Tensor, back: Tensor, went: Tensor | None) -> Tensor:
        context.back, context.went = back, went
        return source.index_select(0, order)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> Any:
        moved = gradient.index_select(0, context.back)
        if context.went is not None:
            moved = moved.masked_fill_(~context.went.reshape(-1, 1), 0)
        return moved, None, None, None


class TokenBatch(NamedTuple):
    """Padded token ids of some sentences.

    Shape suffixes: B sentences, T tokens of the longest.
    """

    ids_BT: Tensor
    mask_BT: Tensor
    packing: Packing | None = None
    """Where its tokens are, once it is ``ready``."""

    def to(self, device: torch.device) -> "TokenBatch":
        """Copy to ``device`` with its packing, without waiting for it."""
        batch: TokenBatch = onto(self.ready(), device)
        return batch

    def ready(self, shapes: Shapes = NATURAL) -> "TokenBatch":
        """The batch with its packing, both of a shape that is rounded up as ``shapes`` says."""
        if self.packing and shapes == NATURAL:
            return self
        behind = -self.mask_BT.shape[1] % shapes.width
        if shapes.longest:
            behind = max(0, min(behind, shapes.longest - self.mask_BT.shape[1]))
        mask_BT, own = F.pad(self.mask_BT, (0, behind)), self.packing and self.packing.own
        packing = Packing.of(mask_BT, own, multiple=shapes.tokens)
        return TokenBatch(F.pad(self.ids_BT, (0, behind)), mask_BT, packing)

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

    def chunks(self, size: int) -> Iterator["TokenBatch"]:
        """So many sentences at a time, as wide as the batch, each known by its number in the batch."""
        own = self.packing.own if self.packing else len(self.ids_BT)
        for start in range(0, len(self.ids_BT), size):
            rows = slice(start, start + size)
            mask_BT = self.mask_BT[rows]
            yield TokenBatch(self.ids_BT[rows], mask_BT, Packing.of(mask_BT, own, start))

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
