"""The contract of an evaluator: a file of this folder that rule evaluate_suite runs for the suites of its name.

A suite is a block of settings below ``suites.<kind>`` in the configuration, and ``<kind>.py`` evaluates it. Kinds
whose jobs read or write more than datasets and scores (``sts``, ``geometry``, ``search``, ``cost``, ``attention``,
``mteb``) have rules of their own, and their settings are no ``SuiteConfig``.
"""

from collections.abc import Mapping
from typing import Any, Protocol

import pyarrow as pa

from workflow_scripts.evaluation.embeddings import Encode
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.settings.suites import SuiteConfig


class Evaluator(Protocol):
    """A module of this folder."""

    @property
    def Config(self) -> type[SuiteConfig]:  # noqa: N802
        """The class of its settings, which is in ``settings/suites`` and names the form of the datasets."""

    def evaluate(self, datasets: Mapping[str, pa.Table], encode: Encode, config: Any) -> list[Score]:
        """Score an encoder; a job hands over its tasks one by one (``evaluation.task_by_task``).

        Args:
            datasets: Task name to a table with the columns of that form; none is empty.
            encode: Texts to vectors (N, D), not normalised and not to be changed; a text that was asked for before
                costs nothing. What a task asks for first, all of it at once, is shared with other tasks.
            config: Of the suite, without what is about other tasks (``SuiteConfig.of_task``).

        Returns:
            Finite numbers, the same to the bit for the same vectors; ``evaluation.scores.gap`` for a task
            that cannot be scored.
        """
