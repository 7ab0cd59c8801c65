"""Sentences to vectors at test: tokenised once, batched by length under a token budget."""

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
from workflow_scripts.progress import Progress

TOKENS_PER_BATCH = 1024
"""On a CPU, where the states of so few stay in its caches: 4096 take 1.2 times as long (MiniLM, one thread, STS-B)."""
TOKENS_PER_BATCH_ON_GPU = 65_536
"""Assumed: so many that the host keeps up, and states of BERT-base take a gigabyte."""
COMPILED_FROM = 200_000
"""Sentences from which compiling the layers is assumed to pay on a GPU: it takes up to a minute (H200)."""


def encode(
    encoder: TextEncoder,
    tokenizer: PreTrainedTokenizerBase,
    sentences: Sequence[str],
    max_tokens: int,
) -> NDArray[np.float32]:
    """Embed ``sentences``, inside the encoder's template if it has one, dropout off.

    Returns:
        Vectors of shape (N, D), float32, in the order of ``sentences``, not normalised. A vector does
        not depend on what else is encoded (up to float32 rounding).
    """
    several: Any = encoder
    if encoder.tokenizer is not None:  # one as it was published
        return several.encode(sentences, max_tokens)  # type: ignore[no-any-return]
    if encoder.tokenizers:  # an ensemble: nothing else has sub-encoders
        vectors = [
            weight * encode(part, own, sentences, max_tokens)
            for weight, part, own in zip(several.weights, several.members, several.tokenizers, strict=True)
        ]
        return np.sum(vectors, axis=0, dtype=np.float32)  # type: ignore[no-any-return]
    return encode_tokens(encoder, tokenise_in(encoder.template, tokenizer, sentences, max_tokens))


def encode_tokens(encoder: TextEncoder, text: TokenisedText) -> NDArray[np.float32]:
    """As ``encode``, for sentences that are tokenised already."""
    vectors = np.empty((len(text), encoder.width), dtype=np.float32)
    was_training = encoder.training
    encoder.eval()
    compiles = encoder.device.type == "cuda" and len(text) >= COMPILED_FROM
    with (
        torch.inference_mode(),
        compiled() if compiles else nullcontext(),
        Progress(len(text), "encode", "sentence", hidden=len(text) < 1000, brief=True) as progress,
    ):
        ahead: list[tuple[NDArray[np.int64], Tensor]] = []  # a batch that a GPU may not have finished
        for rows in batches_by_length(text.lengths, tokens_per_batch(encoder.device)):
            ahead.append((rows, encoder(*text.batch(rows).to(encoder.device)).float()))
            if len(ahead) > 1:
                _bring(vectors, *ahead.pop(0))
            progress.update(len(rows))
        for rows, found_BD in ahead:
            _bring(vectors, rows, found_BD)
    encoder.train(was_training)
    return vectors


def _bring(vectors: NDArray[np.float32], rows: NDArray[np.int64], found_BD: Tensor) -> None:
    """Copy the vectors of a batch to the host, which waits for them."""
    vectors[rows] = found_BD.cpu().numpy()


def check_tells_apart(encoder: TextEncoder, tokenizer: PreTrainedTokenizerBase) -> None:
    """Refuse a readout by which all sentences have one vector; asked of words all over the vocabulary.

    Raises:
        ConfigError: if the vectors are equal, or there are no words.
    """
    before, after = pieces(encoder.template or PLAIN, tokenizer)
    words = [number for number in range(len(tokenizer)) if number not in tokenizer.all_special_ids]
    if len(words) < 2:
        found = f"the tokeniser has {len(words)} words beside its special tokens"
        raise ConfigError(f"encoders: {found}. Name another encoder.")
    rows = [[*before, word, *after] for word in words[:: max(1, len(words) // 8)]]
    starts = np.arange(len(rows) + 1) * len(rows[0])
    vectors = encode_tokens(encoder, TokenisedText(np.array(rows, np.int32).ravel(), starts, 0))
    if np.ptp(vectors, axis=0).max() <= 1e-6 * np.abs(vectors).max():
        raise ConfigError("readout: sentences of different words have one vector. Take another pooling.")


def tokens_per_batch(device: torch.device) -> int:
    """The budget of a batch, padding included."""
    return TOKENS_PER_BATCH if device.type == "cpu" else TOKENS_PER_BATCH_ON_GPU


def batches_by_length(lengths: NDArray[np.int64], budget: int) -> Iterator[NDArray[np.int64]]:
    """Split rows, longest first, so that no batch holds more than ``budget`` tokens with its padding."""
    order = np.argsort(-lengths, kind="stable")
    start = 0
    while start < len(order):
        size = max(1, budget // max(1, int(lengths[order[start]])))
        yield order[start : start + size]
        start += size
