"""Tasks that an evaluation has still to compute: a finished one is cached at once, a failed one is only its own gap.

After a kill, the next job continues with the unfinished tasks; a suite with a changed list of tasks reuses the tasks
that remain; the next job tries failed tasks again.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.errors import MissingError, UnreachableError
from workflow_scripts.evaluation.base import Score, gap
from workflow_scripts.provenance.cache import Cache


class TaskRun(NamedTuple):
    """The evaluation of an encoder on one task."""

    task: str
    key: str
    """Hash of everything that decides the task's results."""
    files: Mapping[str, Path]
    """Results, by name."""
    compute: Callable[[], object]
    """Writes all files.

    A MissingError means that the task has no data, which is a gap; an UnreachableError ends the job, because its data
    may be elsewhere. Any other error is a failure of this task.
    """


def run_tasks(
    runs: Iterable[TaskRun], cache: Cache, failed: Callable[[str, Exception], Score]
) -> dict[str, Score]:
    """Restore the results of tasks that are cached, and compute and cache those of the others.

    Args:
        runs: One for each task.
        cache: Of finished tasks.
        failed: Returns the gap of a task that raised an error (``Failures.add``).

    Returns:
        Gaps by task; the files of every other task exist.

    Raises:
        UnreachableError: if the data of a task that is not cached are not on this machine.
    """
    gaps: dict[str, Score] = {}
    for run in runs:
        if cache.restore(run.key, run.files):
            continue
        try:
            run.compute()
        except UnreachableError:
            raise
        except MissingError as error:
            gaps[run.task] = gap(run.task, str(error))
        except Exception as error:  # any error but Ctrl-C fails this task only
            gaps[run.task] = failed(run.task, error)
        else:
            cache.put(run.key, run.files)
    return gaps
