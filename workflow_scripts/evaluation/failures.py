"""Tasks of an evaluation that failed: their cells are gaps with the reason, and the next job tries them again."""

import sys
import traceback
from pathlib import Path

import pyarrow as pa

from workflow_scripts.errors import DataError, SemblanceError
from workflow_scripts.evaluation.base import Score, gap
from workflow_scripts.provenance.job import Job


class Failures:
    """The failed tasks of one job, which has the wildcards suite, run and seed and writes ``scores``."""

    def __init__(self, job: Job) -> None:
        self._job, self._reasons = job, job.failed

    def add(self, task: str, error: Exception) -> Score:
        """The gap of a task that failed, which stderr gets as one line."""
        reason = self._reasons[task] = _reason(error)
        print(f"{self._job.rule}: task {task} failed: {reason}", file=sys.stderr, flush=True)  # noqa: T201
        return gap(
            task, f"failed: {reason}; tried again by snakemake --forcerun {self._job.outputs['scores']}"
        )

    def settle(self, scores: pa.Table) -> list[str]:
        """The labels of ``scores``, one for each failed task; where there are any, the job is not cached.

        Raises:
            DataError: if tasks failed and not one number is left.
        """
        if self._reasons and scores["value"].null_count == len(scores):
            task, reason = next(iter(self._reasons.items()))
            found = f"no task gave a score, {len(self._reasons)} failed, {task} with {reason.rstrip('.')}"
            raise DataError(f"{self._job.outputs['scores']}: {found}. Mend that and run it again.")
        suite, run, seed = (self._job.wildcards[name] for name in ("suite", "run", "seed"))
        return [
            f"gap: {suite}, task {task} of {run}, seed {seed}, failed: {reason}"
            for task, reason in self._reasons.items()
        ]


def _reason(error: Exception) -> str:
    """An error in one line, with its place in the code unless it is one that a user can mend."""
    text = " ".join(str(error).split()) or "no message"
    if isinstance(error, SemblanceError):
        return f"{type(error).__name__}: {text}"
    place = traceback.extract_tb(error.__traceback__)[-1]
    return f"{type(error).__name__}: {text} ({Path(place.filename).name}, line {place.lineno})"
