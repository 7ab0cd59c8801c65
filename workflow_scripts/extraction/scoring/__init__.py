"""One kind of evaluation a module, imported by the name of its kind.

A module has ``load(task, table, suite, by_group) -> Task``: which texts a task has, and what vectors of them score.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol, cast

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from workflow_scripts.evaluation.scores import Score

Vectors = NDArray[np.float32]
Integers = NDArray[np.int64]


class Task(NamedTuple):
    """A task as the study sees it.

    Shape suffixes: U distinct texts, N texts as often as the task has them, D width.
    """

    texts: Sequence[str]
    """Distinct texts, U of them; with groups, distinct within their group."""
    groups_U: Integers
    """Number of each text's group (subset), from 0."""
    occurrences_N: Integers
    """The task's texts in its order, as numbers of distinct ones: what post-processings are fitted on."""
    score: Callable[[Vectors], list[Score]]
    """Vectors (U, D) to scores."""


class Scoring(Protocol):
    """What a module of this package offers."""

    def load(self, task: str, table: pa.Table, suite: Mapping[str, Any], *, by_group: bool) -> Task:
        """The texts of a task and how they are scored."""


def load_scoring(kind: str) -> Scoring:
    """The module of one kind."""
    return cast(Scoring, importlib.import_module(f"{__name__}.{kind}"))


def distinct(*columns: Sequence[str]) -> tuple[list[str], list[Integers]]:
    """Distinct entries of all columns in order, and every column as numbers of them."""
    numbers: dict[str, int] = {}
    rows = [
        np.array([numbers.setdefault(text, len(numbers)) for text in column], np.int64) for column in columns
    ]
    return list(numbers), rows
