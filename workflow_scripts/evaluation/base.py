"""The contract of an evaluator: a file of this folder with ``Config`` and ``load``, which scores vectors of texts.

Scores are in long form, a row a number, whoever computes them.

A suite is a block of settings below ``suites.<kind>`` in the configuration, and ``<kind>.py`` evaluates it. Kinds
whose jobs need more than vectors (``cost``, ``attention``, ``mteb``) have rules of their own, and settings that are no
``SuiteConfig``. The study of vectors without training scores its own vectors with the same tasks.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from workflow_scripts.columns.scores import SCORES, SIMILARITIES
from workflow_scripts.settings.suites import SuiteConfig

Vectors = NDArray[np.float32]


class Score(NamedTuple):
    """One number about one encoder."""

    task: str
    aggregation: str
    metric: str
    value: float | None
    n: int
    note: str | None = None


def gap(task: str, reason: str) -> Score:
    """A task that could not be evaluated; tables print the reason instead of a number."""
    return Score(task, aggregation="", metric="", value=None, n=0, note=reason)


def score_table(scores: Iterable[Score], *, run: str, seed: str, suite: str) -> pa.Table:
    """The scores of one run as a table with the columns of ``SCORES``.

    Raises:
        AssertionError: if a value is not finite; evaluators define the score of degenerate input.
    """
    rows = [{"run": run, "seed": int(seed), "suite": suite, **score._asdict()} for score in scores]
    table = pa.Table.from_pylist(rows, schema=SCORES)
    assert pc.all(pc.is_finite(table["value"])).as_py() is not False, f"{run} {suite}: a score is not finite"
    return table


class Task(NamedTuple):
    """One task: its texts, and what their vectors are scored with."""

    columns: Sequence[Sequence[str]]
    """Texts column by column, as often as they occur; each distinct one is encoded once."""
    score: Callable[..., list[Score]]
    """Takes the vectors (N, D) of each column, which it must not change, and returns finite numbers, the same to the
    bit for the same vectors; a ``gap`` for what cannot be scored."""
    pairs: Callable[..., pa.Table] = lambda *_: SIMILARITIES.empty_table()
    """Takes the same, and returns scored pairs with the columns of ``columns.scores.SIMILARITIES``."""
    groups: Sequence[str] | None = None
    """The group (subset) of every row of the columns; None where there are none."""


def not_scored(task: str, reason: str) -> Task:
    """A task that asks for nothing, and is a gap."""
    return Task([], lambda: [gap(task, reason)])


class Evaluator(Protocol):
    """A module of this folder."""

    @property
    def Config(self) -> type[SuiteConfig]:  # noqa: N802
        """The class of its settings, which is in ``settings.suites`` and names the form of the datasets."""

    def load(self, task: str, table: pa.Table, config: Any) -> Task:
        """One task of a suite.

        Args:
            task: Its name, one of ``config.tasks``.
            table: Its dataset; not empty.
            config: Settings of the suite, of which those of other tasks must not matter (``SuiteConfig.of_task``).

        Raises:
            DataError: if the dataset cannot be scored at all; other tasks are.
        """
