"""Encoding of sentences at test: tokenised once, batched by length under a budget of tokens."""

from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from workflow_scripts.errors import ConfigError
from workflow_scripts.models.encoder import TextEncoder
from workflow_scripts.models.packed import compiled
from workflow_scripts.models.templates import PLAIN, pieces, tokenise_in
from workflow_scripts.models.tokens import TokenisedText
from workflow_scripts.progress import progress

TOKENS_PER_BATCH = 1024
"""Budget on a CPU, whose caches then hold the states: 4096 take 1.2 times as long (MiniLM, one thread, STS-B)."""
TOKENS_PER_BATCH_ON_GPU = 65_536
"""Budget on a GPU, assumed to be enough for the host to keep up; states of BERT-base then take a gigabyte."""
COMPILED_FROM = 200_000
"""Number of sentences from which compiling is assumed to pay on a GPU: it takes up to a minute (H200)."""


def encode(
    encoder: TextEncoder,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    max_tokens: int,
) -> NDArray[np.float32]:
    """Embed ``sentences``, inside the encoder's template if it has one, without dropout.

    Returns:
        Vectors of shape (N, D), float32, in the order of ``sentences``, not normalised. A vector does not depend on
        other sentences (up to float32 rounding).
    """
    special: Any = encoder
    if encoder.tokenizer is not None:  # an encoder as published
        return special.encode(sentences, max_tokens)  # type: ignore[no-any-return]
    if encoder.tokenizers:  # an ensemble of several tokenisers
        vectors = [
            weight * encode(member, own, sentences, max_tokens)
            for weight, member, own in zip(special.weights, special.members, special.tokenizers, strict=True)
        ]
        return np.sum(vectors, axis=0, dtype=np.float32)  # type: ignore[no-any-return]
    return encode_tokens(encoder, tokenise_in(encoder.template, tokenizer, sentences, max_tokens))


def encode_tokens(encoder: TextEncoder, text: TokenisedText) -> NDArray[np.float32]:
    """Embed tokenised sentences; the same vectors as from ``encode``."""
    vectors = np.empty((len(text), encoder.width), dtype=np.float32)
    was_training = encoder.training
    encoder.eval()
    on_cpu = encoder.device.type == "cpu"
    budget = TOKENS_PER_BATCH if on_cpu else TOKENS_PER_BATCH_ON_GPU
    compiles = not on_cpu and len(text) >= COMPILED_FROM
    with (
        torch.inference_mode(),
        compiled() if compiles else nullcontext(),
        progress(len(text), "encode", "sentence", disable=len(text) < 1000, delay=5) as bar,
    ):
        last: tuple[NDArray[np.int64], Tensor] | None = None  # a batch that a GPU may not have finished
        for rows in batches_by_length(text.lengths, budget):
            vectors_BD = encoder(*text.batch(rows).to(encoder.device)).float()
            if last is not None:
                vectors[last[0]] = last[1].cpu().numpy()
            last = rows, vectors_BD
            bar.update(len(rows))
        if last is not None:
            vectors[last[0]] = last[1].cpu().numpy()
    encoder.train(was_training)
    return vectors


def check_tells_apart(encoder: TextEncoder, tokenizer: PreTrainedTokenizerBase) -> None:
    """Check that a readout does not give all sentences the same vector, by words from the whole vocabulary.

    They all follow the same word, so that the first token of a causal decoder, which sees none of them, is found out.

    Raises:
        ConfigError: if the vectors are equal.
    """
    before, after = pieces(encoder.template or PLAIN, tokenizer)
    words = sorted({*range(len(tokenizer))} - {*tokenizer.all_special_ids})
    rows = [[*before, words[0], word, *after] for word in words[:: max(1, len(words) // 8)]]
    starts = np.arange(len(rows) + 1) * len(rows[0])
    vectors = encode_tokens(encoder, TokenisedText(np.array(rows, np.int32).ravel(), starts, 0))
    if np.ptp(vectors, axis=0).max() <= 1e-6 * np.abs(vectors).max():
        raise ConfigError("readout: sentences of different words have one vector. Take another pooling.")


def batches_by_length(lengths: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """Split rows into batches, longest first, of at most ``budget`` tokens including padding."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, int(lengths[order[start]])))
        yield order[start : start + size]
        start += size
