"""The interface of evaluators, which are modules of this folder with ``Config`` and ``load``; scores and failed tasks.

Scores are in long form: one row per number.

A suite is a block of settings below ``suites.<kind>`` in the configuration, which ``<kind>.py`` evaluates. Kinds whose
jobs need more than vectors (``cost``, ``attention``, ``mteb``) have their own rules, and settings that are no
``SuiteConfig``. The study of vectors without training scores its vectors with the same tasks.
"""

import sys
import traceback
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns import SCORES, SIMILARITIES
from workflow_scripts.errors import DataError, SemblanceError
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Label, gap_label
from workflow_scripts.settings.suites import SuiteConfig

NO_PAIRS: pa.Table = SIMILARITIES.empty_table()
"""Table of the scored pairs of a task without any."""


class Score(NamedTuple):
    """One score of one encoder."""

    task: str
    aggregation: str
    metric: str
    value: float | None
    n: int
    note: str | None = None


def gap(task: str, reason: str) -> Score:
    """Return the score of a task that could not be evaluated; tables print the reason."""
    return Score(task, aggregation="", metric="", value=None, n=0, note=reason)


def score_table(scores: Iterable[Score], *, run: str, seed: str, suite: str) -> pa.Table:
    """Return the scores of one run as a table with the columns of ``SCORES``.

    Raises:
        AssertionError: if a value is not finite; evaluators define the score of degenerate input.
    """
    rows = [{"run": run, "seed": int(seed), "suite": suite, **score._asdict()} for score in scores]
    table = pa.Table.from_pylist(rows, schema=SCORES)
    assert pc.all(pc.is_finite(table["value"])).as_py() is not False, f"{run} {suite}: a score is not finite"
    return table


def scored_tasks(scores: pa.Table) -> set[str]:
    """Return the tasks of a table of scores that have a value."""
    return set(scores.filter(pc.field("value").is_valid())["task"].to_pylist())


class Failures:
    """The failed tasks of one job, which has the wildcards suite, run and seed, and the output ``scores``.

    The cells of a failed task are gaps with the reason; the next job tries the task again.
    """

    def __init__(self, job: Job) -> None:
        self._job, self._reasons = job, job.failed

    def add(self, task: str, error: Exception) -> Score:
        """Return the gap of a failed task, and print its reason to stderr."""
        reason = self._reasons[task] = _reason(error)
        print(f"{self._job.rule}: task {task} failed: {reason}", file=sys.stderr, flush=True)  # noqa: T201
        retry = f"tried again by snakemake --forcerun {self._job.outputs['scores']}"
        return gap(task, f"failed: {reason}; {retry}")

    def labels(self, scores: pa.Table) -> list[Label]:
        """Return labels for a table of scores, one for each failed task; a job with failed tasks is not cached.

        Raises:
            DataError: if tasks failed and no number is left.
        """
        if self._reasons and scores["value"].null_count == len(scores):
            task, reason = next(iter(self._reasons.items()))
            problem = f"no task gave a score, {len(self._reasons)} failed, {task} with {reason.rstrip('.')}"
            raise DataError(f"{self._job.outputs['scores']}: {problem}. Correct this, and run the job again.")
        suite, run, seed = (self._job.wildcards[name] for name in ("suite", "run", "seed"))
        return [
            gap_label(f"{suite}, task {task} of {run}, seed {seed}, failed: {why}")
            for task, why in self._reasons.items()
        ]


def _reason(error: Exception) -> str:
    """Return an error in one line, with its position in the code unless users can correct it."""
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, SemblanceError):
        return f"{type(error).__name__}: {text}"
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(frame.filename).name}, line {frame.lineno})"


class Task(NamedTuple):
    """One task: its texts, and the functions that score their vectors."""

    columns: Sequence[Sequence[str]]
    """Columns of texts, with repetitions; each distinct text is encoded once."""
    score: Callable[..., list[Score]]
    """Function from the vectors (N, D) of each column, which it must not change, to scores: finite numbers that are
    bit-identical for the same vectors, or a ``gap``."""
    pairs: Callable[..., pa.Table] = lambda *_: NO_PAIRS
    """Function from the same vectors to scored pairs, columns of ``columns.SIMILARITIES``."""
    groups: Sequence[str] | None = None
    """Group (subset) of every row of the columns; None for a task without groups."""


def not_scored(task: str, reason: str) -> Task:
    """Return a task without texts, whose score is a gap."""
    return Task([], lambda: [gap(task, reason)])


class Evaluator(Protocol):
    """A module of this folder."""

    @property
    def Config(self) -> type[SuiteConfig]:  # noqa: N802
        """Return the class of the settings, in ``settings.suites``, which has the form of the datasets."""

    def load(self, task: str, table: pa.Table, config: Any) -> Task:
        """Return one task of a suite.

        Args:
            task: Name of the task, one of ``config.tasks``.
            table: Its dataset, not empty.
            config: Settings of the suite; those of other tasks must not be read (``SuiteConfig.for_task``).

        Raises:
            DataError: if the dataset cannot be scored; other tasks are scored anyway.
        """
