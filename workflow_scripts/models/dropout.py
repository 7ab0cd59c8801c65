"""Dropout whose masks are a function of what they drop: key, pass, place, sentence, token and feature.

A key is the numbers that the training loop gives, seed and step. There is no generator whose state a checkpoint must
hold; a mask does not depend on padding, on how tokens are packed, on which process computes a sentence, or on whether
a layer computes all tokens or the first alone. The law is that of ``torch.nn.functional.dropout``, the probability
rounded to a multiple of 2^-32: every element has 32 bits of SplitMix64's output for its number (Steele, Lea and Flood,
2014, https://doi.org/10.1145/2660193.2660195), computed in PyTorch's integers, so that a GPU draws what a CPU draws.
One thread takes a quarter of the time of PyTorch's own generator.

Shape suffixes: N tokens, B sentences, H heads, Q query and T key tokens, D width.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.models.tokens import Packing

T = TypeVar("T")
LONGEST = 1 << 16
"""More tokens than any sentence has: the stride from one sentence's numbers to the next one's."""
_SHARED = 1 << 24
_WORDS_AT_ONCE = 1 << 15
"""On a processor, whose cache then holds them from one operation of ``splitmix`` to the next."""
_WORD = 1 << 64
_GAMMA = 0x9E3779B97F4A7C15
_FACTORS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


@dataclass
class _Key:
    """The key of some passes, which process makes them, and how many of them there have been."""

    numbers: Sequence[int]
    rank: int
    ranks: int
    passes: int = 0


_keys: list[_Key] = []


@contextmanager
def keyed(*numbers: int, rank: int = 0, ranks: int = 1) -> Iterator[None]:
    """Make all dropout inside a function of ``numbers`` and of how many passes went before.

    Layers outside ``models.packed`` draw from PyTorch's generators, which are seeded with ``numbers`` and ``rank`` here
    and go on where they were afterwards.

    Args:
        numbers: Not negative; the same in every process of a training.
        rank: Of this process, whose sentence i is number ``i * ranks + rank`` of all processes' batch.
        ranks: Number of processes.
    """
    devices = range(torch.cuda.device_count()) if torch.cuda.is_initialized() else []  # type: ignore[no-untyped-call]
    with torch.random.fork_rng(devices):
        torch.manual_seed(_hashed(*numbers, rank))
        _keys.append(_Key(numbers, rank, ranks))
        try:
            yield
        finally:
            _keys.pop()


def _current() -> _Key:
    """The innermost key; outside a training every pass draws something else, as PyTorch's own layers do."""
    return _keys[-1] if _keys else _Key([int(torch.randint(1 << 62, ()))], rank=0, ranks=1)


def with_one_draw(read: Callable[[T], Tensor]) -> Callable[[T], Tensor]:
    """``read`` such that all calls draw what the next one would, after the key's block has ended, too.

    However many calls there are, they count as one where passes are counted.
    """
    key = _current()
    first = key.passes

    def repeatable(what: T) -> Tensor:
        key.passes = first
        _keys.append(key)
        try:
            return read(what)
        finally:
            _keys.pop()

    return repeatable


class Masks:
    """What one pass over a batch draws."""

    def __init__(self, packing: Packing) -> None:
        key = _current()
        self._key = _hashed(*key.numbers, key.passes)
        key.passes += 1
        self._ranks = (key.rank, key.ranks)
        self._packing = packing

    def hidden(self, place: int, p: float, width: int, *, first: bool = False) -> Tensor:
        """Factors of hidden states: 0 or 1 / (1 - p), of each token or of the first of each sentence, (N or B, D)."""
        packing = self._packing
        token_N = self._sentences(packing.token_rows) * LONGEST + packing.token_columns
        if first:
            token_N = token_N[packing.first_B]
        return self._factors(token_N * ((width + 1) // 2), place, p, width)

    def attention(self, place: int, p: float, heads: int, *, first: bool = False) -> Tensor:
        """Factors of attention weights, of each query or of the first of each sentence, (B, H, T or 1, T)."""
        width, device = self._packing.width, self._packing.first_B.device
        row_B = self._sentences(torch.arange(len(self._packing.first_B), device=device))
        head_H = torch.arange(heads, device=device)
        query_Q = torch.arange(1 if first else width, device=device)
        query_BHQ = (row_B[:, None] * heads + head_H)[:, :, None] * LONGEST + query_Q
        return self._factors(query_BHQ * (LONGEST // 2), place, p, width)

    def _sentences(self, row_x: Tensor) -> Tensor:
        """Numbers of sentences: of the batch of all processes, and behind them of what every process has."""
        rank, ranks = self._ranks
        own, row_x = self._packing.own, row_x + self._packing.start
        return torch.where(row_x < own, row_x * ranks + rank, row_x - own + _SHARED)

    def _factors(self, start_x: Tensor, place: int, p: float, size: int) -> Tensor:
        """Rows of ``size`` factors, (..., size), whose pairs are numbered from ``start_x``; the last may be cut."""
        factors_RS = torch.empty(start_x.numel(), size, device=start_x.device)
        word_W = torch.arange((size + 1) // 2, device=start_x.device)
        key, least = _hashed(self._key, place), round(p * (1 << 32)) - (1 << 31)
        start_R1 = start_x.reshape(-1, 1)
        rows = len(start_R1) if start_x.is_cuda else max(1, _WORDS_AT_ONCE // len(word_W))
        for low in range(0, len(start_R1), rows):
            bits_RW = splitmix(start_R1[low : low + rows] + word_W, key)
            kept_RS = factors_RS[low : low + rows]
            torch.ge(bits_RW.view(torch.int32)[:, :size], least, out=kept_RS).mul_(1 / (1 - p))
        return factors_RS.view(*start_x.shape, size)


def splitmix(counter: Tensor, key: int) -> Tensor:
    """64 bits for each number, as int64: SplitMix64's output after so many steps from the state ``key``."""
    state = (counter * _signed(_GAMMA)).add_(_signed(key))
    for shift, factor in _FACTORS:
        state.bitwise_xor_((state >> shift).bitwise_and_((1 << (64 - shift)) - 1))  # a logical shift
        if factor > 1:
            state.mul_(_signed(factor))
    return state


def _signed(word: int) -> int:
    """The 64-bit integer with the bits of ``word``."""
    return (word + _WORD // 2) % _WORD - _WORD // 2


def _hashed(*numbers: int) -> int:
    """64 bits for a list of numbers, whose length counts, since seeds are filled up with zeros."""
    return int(np.random.SeedSequence((len(numbers), *numbers)).generate_state(1, np.uint64)[0])
