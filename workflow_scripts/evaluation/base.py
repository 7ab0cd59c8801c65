"""The contract of an evaluator: a file of this folder with ``Config`` and ``load``, which scores vectors of texts.

A suite is a block of settings below ``suites.<kind>`` in the configuration, and ``<kind>.py`` evaluates it. Kinds
whose jobs need more than vectors (``cost``, ``attention``, ``mteb``) have rules of their own, and their settings are
no ``SuiteConfig``. The study of vectors without training scores its own vectors with the same tasks.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.evaluation.scores import Score, gap
from workflow_scripts.settings.suites import SuiteConfig

Vectors = NDArray[np.float32]


def _no_pairs(*_: Any) -> pa.Table:
    return SIMILARITIES.empty_table()


class Task(NamedTuple):
    """One task: its texts, and what their vectors are scored with."""

    columns: Sequence[Sequence[str]]
    """Texts column by column, as often as they occur; each distinct one is encoded once."""
    score: Callable[..., list[Score]]
    """From the vectors (N, D) of each column, which are not to be changed, to finite numbers, the same to the bit for
    the same vectors; ``evaluation.scores.gap`` for what cannot be scored."""
    pairs: Callable[..., pa.Table] = _no_pairs
    """From the same to columns of ``columns.scores.SIMILARITIES``, of scored pairs."""
    groups: Sequence[str] | None = None
    """The group (subset) of every row of the columns; None where there are none."""


def not_scored(task: str, reason: str) -> Task:
    """A task that asks for nothing, and is a gap."""
    return Task([], lambda: [gap(task, reason)])


class Evaluator(Protocol):
    """A module of this folder."""

    @property
    def Config(self) -> type[SuiteConfig]:  # noqa: N802
        """The class of its settings, which is in ``settings/suites`` and names the form of the datasets."""

    def load(self, task: str, table: pa.Table, config: Any) -> Task:
        """One task of a suite.

        Args:
            task: Its name, one of ``config.tasks``.
            table: Its dataset; not empty.
            config: Of the suite; what is about other tasks is not to be looked at (``SuiteConfig.of_task``).

        Raises:
            DataError: if the dataset cannot be scored at all; other tasks are.
        """
