"""Keyed dropout: masks are a function of key, pass, site, sentence, token and feature.

A key is made from seed and step. There is no generator whose state a checkpoint would have to save. A mask does not
depend on padding, on the packing of tokens, on the process that computes a sentence, or on whether a layer computes all
tokens or only the first. The distribution is that of ``torch.nn.functional.dropout``, with the probability rounded to a
multiple of 2^-32: every element has 32 bits of SplitMix64's output for its number (Steele, Lea and Flood, 2014,
https://doi.org/10.1145/2660193.2660195), computed in PyTorch's integers, so a GPU and a CPU draw the same. One thread
takes a quarter of the time of PyTorch's own generator.

Modules that were written for PyTorch's generator (layers of Transformers, RReLU) draw by the same keys inside
``patched_dropout``. Keys are tensors: a replayed step reads its own keys, not those with which it was compiled or
captured.

Shape suffixes: P passes, K sites, N tokens, B sentences, H heads, Q query and T key tokens, D width.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.overrides import TorchFunctionMode

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.contexts import DRAWS, Draws, Keys
from workflow_scripts.models.tokens import Packing

T = TypeVar("T")
LONGEST = 1 << 16
"""Stride from one sentence's numbers to the next one's, larger than the number of tokens of any sentence."""
_SHARED = 1 << 24
_WORDS_AT_ONCE = 1 << 15
"""Words per call of ``splitmix`` on a CPU, few enough to stay in its cache from one operation to the next."""
_WORD = 1 << 64
_GAMMA = 0x9E3779B97F4A7C15
_FACTORS = ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB), (31, 1))


def keys_of(*numbers: int, passes: int = 8, sites: int = 64) -> Keys:
    """Return keys as a function of non-negative ``numbers``, such as seed and step."""
    pass_keys = [_hashed(*numbers, number) for number in range(passes)]
    site_keys = [[_signed(_hashed(key, site)) for site in range(sites)] for key in pass_keys]
    return Keys(torch.tensor([_signed(key) for key in pass_keys]), torch.tensor(site_keys))


@contextmanager
def dropout_keys(keys: Keys, rank: int = 0, ranks: int = 1) -> Iterator[None]:
    """Draw by ``keys`` inside the block, pass after pass.

    Args:
        keys: Keys, the same in every process of a training, on the device that draws.
        rank: Number of this process; its sentence i is number ``i * ranks + rank`` of the whole batch.
        ranks: Number of processes.
    """
    DRAWS.append(Draws(keys, rank, ranks))
    try:
        yield
    finally:
        DRAWS.pop()


def _current() -> Draws:
    """Return the keys of the innermost block; without one, new random keys, as passes differ in PyTorch's layers."""
    if DRAWS:
        return DRAWS[-1]
    return Draws(keys_of(int(torch.randint(1 << 62, ())), passes=1, sites=256))


def with_one_draw(read: Callable[[T], Tensor]) -> Callable[[T], Tensor]:
    """Return ``read`` with the same random numbers in all calls, even after the block of ``dropout_keys`` has ended.

    All calls together count as one pass.
    """
    draws = _current()
    first = draws.passes

    def repeatable(batch: T) -> Tensor:
        draws.passes = first
        DRAWS.append(draws)
        try:
            return read(batch)
        finally:
            DRAWS.pop()

    return repeatable


class DropoutMasks:
    """Random numbers of one pass over a batch; creating an instance begins a pass."""

    def __init__(self, packing: Packing) -> None:
        draws = _current()
        device = packing.first_B.device
        self._key = draws.keys.passes_P[draws.passes].to(device)
        self._sites_K = draws.keys.sites_PK[draws.passes].to(device)
        draws.passes += 1
        self._ranks = (draws.rank, draws.ranks)
        self._packing = packing
        self._calls = 0

    def sites(self, first: int, count: int) -> Tensor:
        """Return the keys of some consecutive sites, (count)."""
        return self._sites_K[first : first + count]

    def next_call(self) -> Tensor:
        """Return the key of the next random function that ``patched_dropout`` replaces."""
        self._calls += 1
        return splitmix(self._key.new_full((), self._calls), self._key)

    def hidden(self, key: Tensor, p: float, width: int, *, first: bool = False) -> Tensor:
        """Return factors, 0 or 1 / (1 - p), of the states of all tokens, (N, D), or each sentence's first, (B, D)."""
        packing = self._packing
        token_N = self._sentences(packing.token_rows) * LONGEST + packing.token_columns
        if first:
            token_N = token_N[packing.first_B]
        return _drawn(token_N * _words(width), key, width, partial(_factors, p))

    def attention(self, key: Tensor, p: float, heads: int, *, first: bool = False) -> Tensor:
        """Return factors of attention weights for all queries, or the first of each sentence, (B, H, T or 1, T)."""
        width = self._packing.width
        shape = (len(self._packing.first_B), heads, 1 if first else width, width)
        return self.shaped(key, shape, partial(_factors, p))

    def shaped(self, key: Tensor, shape: Sequence[int], values: Callable[[Tensor], Tensor]) -> Tensor:
        """Return values for all elements of a tensor, by each element's sentence and position in the sentence.

        Args:
            key: Key of the tensor.
            shape: Shape of the tensor: sentences first; tokens, if they have an axis, last but one.
            values: Function from 32 random bits, int32, to values.
        """
        rows, *others, width = shape
        row_R = torch.arange(rows, device=key.device)
        number = self._sentences(row_R) if rows == len(self._packing.first_B) else row_R
        for size, stride in zip(others, [*others[:-1], LONGEST][: len(others)], strict=True):
            number = number[..., None] * stride + torch.arange(size, device=key.device)
        # With more axes, the last one may also be of tokens: attention weights.
        return _drawn(number * (LONGEST // 2 if len(others) > 1 else _words(width)), key, width, values)

    def _sentences(self, row_x: Tensor) -> Tensor:
        """Return numbers of sentences: first those of the batch of all processes, then those that all share."""
        rank, ranks = self._ranks
        local, row_x = self._packing.local, row_x + self._packing.start
        # Also for one process, although it changes no number there: without it, the compilers of PyTorch 2.11 and 2.13
        # would compute numbers from indices of 32 bits, which overflow for long batches (pytorch#175966).
        return torch.where(row_x < local, row_x * ranks + rank, row_x - local + _SHARED)


def _words(values: int) -> int:
    """Return the number of 64-bit words for this number of 32-bit values."""
    return (values + 1) // 2


def _factors(p: float, bits_x: Tensor) -> Tensor:
    """Return random bits as factors of dropout: 0 with probability ``p``, else 1 / (1 - p)."""
    # The comparison writes numbers: writing truth values first takes four times as long on a CPU.
    factors_x = torch.empty(bits_x.shape, device=bits_x.device)
    return torch.ge(bits_x, round(p * (1 << 32)) - (1 << 31), out=factors_x).mul_(1 / (1 - p))


def _uniform(low: float, high: float, bits_x: Tensor) -> Tensor:
    """Return random bits as uniform numbers in [low, high), of 24 bits."""
    return low + (high - low) / (1 << 24) * ((bits_x >> 8) & 0xFFFFFF)


def _drawn(start_x: Tensor, key: Tensor, size: int, values: Callable[[Tensor], Tensor]) -> Tensor:
    """Return ``size`` values for each of ``start_x``, (..., size), two from each word, numbered from ``start_x``.

    On a CPU, some rows are computed at a time. Otherwise all operations are element-wise, which lets a compiler fuse
    them with the multiplication. For the backward pass it stores a mask as truth values.
    """
    if start_x.is_cuda or torch.compiler.is_compiling():
        column_S = torch.arange(size, device=start_x.device)
        word = splitmix(start_x[..., None] + column_S // 2, key)
        return values(torch.where(column_S % 2 == 1, word >> 32, (word << 32) >> 32))
    start_R1, word_W = start_x.reshape(-1, 1), torch.arange(_words(size))
    values_RS = torch.empty(len(start_R1), size)
    rows = max(1, _WORDS_AT_ONCE // len(word_W))
    for low in range(0, len(start_R1), rows):
        bits_RW = splitmix(start_R1[low : low + rows] + word_W, key)
        values_RS[low : low + rows] = values(bits_RW.view(torch.int32)[:, :size])
    return values_RS.view(*start_x.shape, size)


def splitmix(counter: Tensor, key: Tensor) -> Tensor:
    """Return 64 bits for each number n, as int64: SplitMix64's output after n steps from the state ``key``."""
    state = (counter * _signed(_GAMMA)).add_(key)
    for shift, factor in _FACTORS:
        state.bitwise_xor_((state >> shift).bitwise_and_((1 << (64 - shift)) - 1))  # a logical shift
        if factor > 1:
            state.mul_(_signed(factor))
    return state


def _signed(word: int) -> int:
    """Return the signed 64-bit integer with the bits of ``word``."""
    return (word + _WORD // 2) % _WORD - _WORD // 2


def _hashed(*numbers: int) -> int:
    """Return 64 bits for a list of numbers; its length is also hashed, because seeds are padded with zeros."""
    return int(np.random.SeedSequence((len(numbers), *numbers)).generate_state(1, np.uint64)[0])


# Random functions of PyTorch


def patched_dropout(masks: DropoutMasks | None) -> AbstractContextManager[object]:
    """Return a context in which random functions of PyTorch draw by the keys of ``masks``; no change for None."""
    return nullcontext() if masks is None else _Answering(masks)


class _Answering(TorchFunctionMode):
    """Replacement of the functions of ``_ANSWERS``; the first axis of their tensors is a batch's sentences."""

    def __init__(self, masks: DropoutMasks) -> None:
        super().__init__()
        self._masks = masks

    def __torch_function__(
        self, function: Any, types: Any, args: Sequence[Any] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        if function in _REFUSED:
            raise ConfigError(
                f"encoders: in training the encoder draws by {function.__name__}, which has no keyed "
                "replacement. Choose an encoder without it."
            )
        answer = _ANSWERS.get(function)
        return answer(self._masks, *args, **kwargs or {}) if answer else function(*args, **kwargs or {})


def _dropout(
    masks: DropoutMasks, input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Return ``F.dropout`` with a factor for each element by its sentence and position."""
    if not (training and p):
        return input
    factors = masks.shaped(masks.next_call(), input.shape, partial(_factors, p))
    return input * factors.to(input.dtype)


def _rrelu(
    masks: DropoutMasks,
    input: Tensor,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """Return ``F.rrelu`` with a random slope for each negative element (Xu et al. 2015, section 2.4)."""
    if not training:
        return F.rrelu(input, lower, upper)
    slopes = masks.shaped(masks.next_call(), input.shape, partial(_uniform, lower, upper))
    return torch.where(input < 0, input * slopes.to(input.dtype), input)


def _attention(
    masks: DropoutMasks,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """Return ``F.scaled_dot_product_attention`` with keyed dropout of the weights."""
    if not dropout_p:
        return F.scaled_dot_product_attention(
            query, key, value, attn_mask, dropout_p, is_causal, scale=scale, enable_gqa=enable_gqa
        )
    groups = query.shape[1] // key.shape[1]
    key, value = key.repeat_interleave(groups, dim=1), value.repeat_interleave(groups, dim=1)
    scores_BHQT = query @ key.transpose(2, 3) * (scale or query.shape[-1] ** -0.5)
    if is_causal:
        attn_mask = scores_BHQT.new_ones(scores_BHQT.shape[2:], dtype=torch.bool).tril()
    if attn_mask is not None and attn_mask.dtype == torch.bool:
        scores_BHQT = scores_BHQT.masked_fill(~attn_mask, -torch.inf)
    elif attn_mask is not None:
        scores_BHQT = scores_BHQT + attn_mask
    weights_BHQT = scores_BHQT.softmax(dim=-1, dtype=torch.float32).to(query.dtype)
    return _dropout(masks, weights_BHQT, dropout_p) @ value


_ANSWERS: Mapping[Any, Callable[..., Any]] = {
    F.dropout: _dropout,
    F.rrelu: _rrelu,
    F.scaled_dot_product_attention: _attention,
}
_REFUSED = (torch.rand, torch.rand_like, torch.randn, torch.randn_like, torch.bernoulli, F.alpha_dropout)
