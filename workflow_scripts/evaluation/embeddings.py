"""Vectors of the texts of a suite, each text encoded once."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from workflow_scripts.errors import DataError

Vectors = NDArray[np.float32]
Encode = Callable[[Sequence[str]], Vectors]
"""Texts to vectors of shape (N, D), in order; not normalised."""
Columns = Sequence[Sequence[str]]


class SharedTexts:
    """The texts of several tasks, each of which is encoded once, when the first of its tasks asks for it.

    Texts are encoded in units, those of one task alone and those that several have in common, so that a vector is the
    same to the bit whichever of the tasks are left to do: what else is in its batches depends on the suite alone.

    Args:
        encode: Texts to vectors.
        columns: Task to its columns of texts, in the order in which tasks will be evaluated.
    """

    def __init__(self, encode: Encode, columns: Mapping[str, Columns]) -> None:
        self._encode = encode
        self._columns = columns
        tasks: defaultdict[str, tuple[str, ...]] = defaultdict(tuple)
        for task, own in columns.items():
            for text in distinct(own):
                tasks[text] += (task,)
        self._units: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for text, shared in tasks.items():
            self._units[shared].append(text)
        self._vectors: dict[tuple[str, ...], Vectors] = {}

    def of(self, task: str) -> list[Vectors]:
        """The vectors of each column of a task, shape (N, D).

        Raises:
            DataError: if one is not finite or all are equal: the encoder is broken, and its scores would be
                meaningless.
        """
        units = [shared for shared in self._units if task in shared]
        if not units:
            return []
        for shared in units:
            if shared not in self._vectors:
                self._vectors[shared] = self._encode(self._units[shared])
        vectors = [self._vectors[shared] for shared in units]
        joined = vectors[0] if len(vectors) == 1 else np.concatenate(vectors)
        _check(joined)
        row = {
            text: number
            for number, text in enumerate(chain.from_iterable(self._units[shared] for shared in units))
        }
        return [joined[[row[text] for text in column]] for column in self._columns[task]]

    def forget(self, task: str) -> None:
        """Let go of the vectors that no task after ``task`` asks for."""
        self._vectors = {shared: vectors for shared, vectors in self._vectors.items() if shared[-1] != task}


def distinct(columns: Columns) -> list[str]:
    """The distinct texts of some columns, in order."""
    return list(dict.fromkeys(chain.from_iterable(columns)))


def _check(vectors_UD: Vectors) -> None:
    if broken := int((~np.isfinite(vectors_UD)).any(axis=1).sum()):
        raise DataError(f"encoder: {broken} embeddings are not finite. Retrain it.")
    if len(vectors_UD) > 1 and not vectors_UD.std(axis=0).any():
        raise DataError(f"encoder: all {len(vectors_UD)} sentences have the same embedding. Retrain it.")
