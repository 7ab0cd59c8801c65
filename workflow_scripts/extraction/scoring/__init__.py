"""One module per kind of evaluation, imported by the name of the kind.

Each module has ``load(task, table, suite, by_group) -> Task``: a task's texts, and how vectors of them are scored.
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
    """A task: its texts and the function that scores their vectors.

    Shape suffixes: U distinct texts, N texts with repetitions, D width.
    """

    texts: Sequence[str]
    """The U distinct texts; with groups, distinct within their group."""
    groups_U: Integers
    """Number of each text's group (subset), from 0."""
    occurrences_N: Integers
    """Every text of the task in order, as an index into ``texts``: post-processings are fitted on these."""
    score: Callable[[Vectors], list[Score]]
    """Turns vectors (U, D) into scores."""
    labels: Callable[[Callable[[str], object]], Sequence[str]] = lambda _: ()
    """What readers must know of scores with a tokeniser, given how that cuts a text into tokens."""


class Scoring(Protocol):
    """The contract of a module of this package."""

    def load(self, task: str, table: pa.Table, suite: Mapping[str, Any], *, by_group: bool) -> Task:
        """The texts of a task and how they are scored."""


def load_scoring(kind: str) -> Scoring:
    """The module of one kind."""
    return cast(Scoring, importlib.import_module(f"{__name__}.{kind}"))


def distinct(*columns: Sequence[str]) -> tuple[list[str], list[Integers]]:
    """The distinct entries of all columns in order, and every column as indices into them."""
    numbers: dict[str, int] = {}
    rows = [
        np.array([numbers.setdefault(text, len(numbers)) for text in column], np.int64) for column in columns
    ]
    return list(numbers), rows
