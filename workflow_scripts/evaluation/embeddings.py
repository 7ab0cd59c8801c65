"""Vectors of the unique sentences of a suite, from one forward pass."""

from collections.abc import Callable, Iterable, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from workflow_scripts.errors import DataError

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
"""Sentences to vectors of shape (N, D), in order; not normalised."""


class Embeddings:
    """The vectors of sentences that were encoded together, looked up by sentence.

    Shape suffixes: N requested sentences, U unique sentences, D width.
    """

    def __init__(self, sentences: Sequence[str], vectors_UD: Vectors) -> None:
        self._row = {sentence: row for row, sentence in enumerate(sentences)}
        self._vectors_UD = vectors_UD

    def __getitem__(self, sentences: Sequence[str]) -> Vectors:
        """Vectors of ``sentences``, shape (N, D); repeats are allowed."""
        return self._vectors_UD[[self._row[sentence] for sentence in sentences]]


def embed(encode: Encode, *columns: Iterable[str]) -> Embeddings:
    """Encode every distinct sentence of ``columns`` once.

    Raises:
        DataError: if an embedding is not finite or all embeddings are equal: the encoder is broken, and its scores
            would be meaningless.
    """
    unique = list(dict.fromkeys(chain.from_iterable(columns)))
    vectors = encode(unique)
    if not np.isfinite(vectors).all():
        raise DataError(
            f"encoder: {int((~np.isfinite(vectors)).any(axis=1).sum())} embeddings are not finite. Retrain it."
        )
    if len(unique) > 1 and not vectors.std(axis=0).any():
        raise DataError(f"encoder: all {len(unique)} sentences have the same embedding. Retrain it.")
    return Embeddings(unique, vectors)


def remembering(encode: Encode) -> Encode:
    """``encode`` with a cache, so that sentences in several measures of a suite are encoded once."""
    known: dict[str, Vectors] = {}

    def once(sentences: Sequence[str]) -> Vectors:
        new = [sentence for sentence in dict.fromkeys(sentences) if sentence not in known]
        if new:
            known.update(zip(new, encode(new), strict=True))
        return np.stack([known[sentence] for sentence in sentences])

    return once
