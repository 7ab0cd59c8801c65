"""Encoding of sentences at test: tokenised once, batched by length under a budget of tokens."""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from functools import partial
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.packed import can_compile, compiled
from workflow_scripts.models.templates import PLAIN, pieces, tokenise_in
from workflow_scripts.models.text_encoder import TokenEncoder
from workflow_scripts.models.tokens import TokenisedText
from workflow_scripts.progress import progress

S = TypeVar("S")
T = TypeVar("T")
TOKENS_PER_BATCH = 1024
"""Budget on a CPU, whose caches then hold the states: 4096 take 1.2 times as long (MiniLM, one thread, STS-B)."""
TOKENS_PER_BATCH_ON_GPU = 65_536
"""Budget on a GPU, assumed to be enough for the host to keep up; states of BERT-base then take a gigabyte."""
SENTENCES_AT_ONCE = 50_000
"""Number of sentences tokenised while a GPU encodes earlier ones: tokenising a million takes 79 s of a core."""
COMPILED_FROM = 200_000
"""Minimum number of sentences for which compiling is assumed to pay on a GPU: it takes up to a minute (H200)."""


def encode_sentences(encoder: TokenEncoder, sentences: Sequence[str], max_tokens: int) -> NDArray[np.float32]:
    """Return embeddings by an encoder whose parts all read the tokens of its tokeniser (``TextEncoder.encode``)."""
    at_once = len(sentences) if encoder.device.type == "cpu" else SENTENCES_AT_ONCE
    tokenised = partial(tokenise_in, encoder.template, encoder.tokenizer, max_tokens=max_tokens)
    starts = range(0, len(sentences), max(1, at_once))
    with closing(prefetched(tokenised, [sentences[start : start + at_once] for start in starts])) as texts:
        return _encode(encoder, texts, len(sentences))


def encode_tokens(encoder: TokenEncoder, text: TokenisedText) -> NDArray[np.float32]:
    """Return embeddings of tokenised sentences, equal to those of ``encode_sentences``."""
    return _encode(encoder, [text], len(text))


def prefetched(make: Callable[[S], T], parts: Sequence[S]) -> Generator[T, None, None]:
    """Yield ``make(part)`` for each part, in order; a thread prepares the next result meanwhile."""
    if len(parts) < 2:
        yield from map(make, parts)
        return
    with ThreadPoolExecutor(1) as thread:
        later = thread.submit(make, parts[0])
        for part in parts[1:]:
            result, later = later.result(), thread.submit(make, part)
            yield result
        yield later.result()


def _encode(encoder: TokenEncoder, texts: Iterable[TokenisedText], count: int) -> NDArray[np.float32]:
    """Return embeddings of the ``count`` sentences of ``texts``; a batch has sentences of only one text."""
    vectors = np.empty((count, encoder.width), dtype=np.float32)
    was_training = encoder.training
    encoder.eval()
    on_cpu = encoder.device.type == "cpu"
    budget = TOKENS_PER_BATCH if on_cpu else TOKENS_PER_BATCH_ON_GPU
    pays = not on_cpu and count >= COMPILED_FROM

    def launched() -> Iterator[tuple[NDArray[np.int64], Tensor]]:
        first = 0
        for text in texts:
            for rows in batches_by_length(text.lengths, budget):
                yield first + rows, encoder(*text.batch(rows).to(encoder.device)).float()
            first += len(text)

    with (
        torch.inference_mode(),
        compiled() if pays and can_compile() else nullcontext(),
        progress(count, "encode", "sentence", disable=count < 1000, delay=5) as bar,
    ):
        for rows, vectors_BD in on_the_host(launched()):
            vectors[rows] = vectors_BD
            bar.update(len(rows))
    encoder.train(was_training)
    return vectors


def on_the_host(launched: Iterable[tuple[T, Tensor]]) -> Iterator[tuple[T, NDArray[Any]]]:
    """Yield results of batches as arrays, in order; a GPU's are copied while it computes the next batch.

    A copy is launched directly after its batch. A GPU works in the order of launches: a copy launched after the next
    batch would wait for that batch, and the GPU would then wait until the host has made another one.
    """
    last: tuple[T, Tensor, torch.cuda.Event] | None = None
    for batch, result in launched:
        if not result.is_cuda:
            yield batch, result.numpy()
            continue
        copied = result.to("cpu", non_blocking=True), torch.cuda.Event()  # type: ignore[no-untyped-call]
        copied[1].record()
        if last is not None:
            yield _finished(last)
        last = batch, *copied
    if last is not None:
        yield _finished(last)


def _finished(copied: tuple[T, Tensor, torch.cuda.Event]) -> tuple[T, NDArray[Any]]:
    batch, result, event = copied
    event.synchronize()
    return batch, result.numpy()


def check_not_collapsed(encoder: TokenEncoder) -> None:
    """Raise ConfigError if a readout gives all sentences the same vector, by words from the whole vocabulary.

    They all follow the same word, to detect a readout of a causal decoder's first token, which does not depend on them.

    Raises:
        ConfigError: if the vectors are equal.
    """
    tokenizer = encoder.tokenizer
    before, after = pieces(encoder.template or PLAIN, tokenizer)
    words = sorted({*range(len(tokenizer))} - {*tokenizer.all_special_ids})
    rows = [[*before, words[0], word, *after] for word in words[:: max(1, len(words) // 8)]]
    starts = np.arange(len(rows) + 1) * len(rows[0])
    vectors = encode_tokens(encoder, TokenisedText(np.array(rows, np.int32).ravel(), starts, 0))
    if np.ptp(vectors, axis=0).max() <= 1e-6 * np.abs(vectors).max():
        raise ConfigError(
            "readout: sentences of different words have one vector. Choose a pooling that reads all "
            "tokens, such as avg."
        )


def batches_by_length(lengths: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """Yield batches of rows, longest first, of at most ``budget`` tokens including padding."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, int(lengths[order[start]])))
        yield order[start : start + size]
        start += size
