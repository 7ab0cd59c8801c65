"""Vectors of the unique sentences of a suite, from one forward pass."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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


class _Asked(Exception):  # noqa: N818 - a question, no error
    """Carries the texts that a task asks for out of it."""

    def __init__(self, texts: Sequence[str]) -> None:
        super().__init__()
        self.texts = texts


def texts_asked_for(evaluate: Callable[[Encode], object]) -> list[str]:
    """The distinct texts whose vectors a task asks for first, found by stopping it there.

    Returns none for a task that asks for nothing, or fails before; it will fail again when it is evaluated.
    """

    def stop(texts: Sequence[str]) -> Vectors:
        raise _Asked(texts)

    try:
        evaluate(stop)
    except _Asked as asked:
        return list(dict.fromkeys(asked.texts))
    except Exception:  # which costs this task alone, in its turn
        return []
    return []


@dataclass
class _Unit:
    """Texts that the same tasks ask for, which are encoded together."""

    tasks: tuple[str, ...]
    texts: list[str] = field(default_factory=list)
    vectors: Vectors | None = None

    def encoded(self, encode: Encode) -> Vectors:
        """The vectors, shape (U, D), encoded unless they are there."""
        if self.vectors is None:
            self.vectors = encode(self.texts)
        return self.vectors


class SharedTexts:
    """The texts of a suite, each of which is encoded once, when the first of its tasks asks for it.

    Texts are encoded in units, those of one task alone and those that several have in common, so that a vector is the
    same to the bit whichever of the tasks are left to do: what else is in its batches depends on the suite alone.

    Args:
        encode: Texts to vectors.
        texts: Task to its distinct texts, in the order in which tasks will be evaluated.
    """

    def __init__(self, encode: Encode, texts: Mapping[str, Sequence[str]]) -> None:
        self._encode = encode
        tasks: dict[str, tuple[str, ...]] = {}
        for task, asked in texts.items():
            for text in asked:
                tasks[text] = (*tasks.get(text, ()), task)
        units = {shared: _Unit(shared) for shared in tasks.values()}
        for text, shared in tasks.items():
            units[shared].texts.append(text)
        self._units = list(units.values())

    def of(self, task: str) -> Encode:
        """What a task gets its vectors from, which are not to be changed."""
        units = {text: unit for unit in self._units if task in unit.tasks for text in unit.texts}

        def encode(sentences: Sequence[str]) -> Vectors:
            if not sentences:
                return self._encode([])
            if more := [text for text in dict.fromkeys(sentences) if text not in units]:
                units.update(dict.fromkeys(more, _Unit((), more)))
            return self._gathered(sentences, [units[text] for text in sentences])

        return encode

    def _gathered(self, sentences: Sequence[str], units: Sequence[_Unit]) -> Vectors:
        """Vectors of ``sentences``, shape (N, D); no copy of those of one whole unit, which may be large."""
        distinct = list({id(unit): unit for unit in units}.values())
        vectors = [unit.encoded(self._encode) for unit in distinct]
        texts = chain.from_iterable(unit.texts for unit in distinct)
        row = {text: number for number, text in enumerate(texts)}
        rows = [row[text] for text in sentences]
        joined = vectors[0] if len(vectors) == 1 else np.concatenate(vectors)
        return joined if rows == list(range(len(joined))) else joined[rows]

    def forget(self, task: str) -> None:
        """Let go of the vectors that no task after ``task`` asks for."""
        for unit in self._units:
            if unit.tasks[-1] == task:
                unit.vectors = None
