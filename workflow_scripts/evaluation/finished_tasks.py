"""Task-wise evaluation: a finished task is cached at once, and a failed one becomes a gap without stopping others.

After a kill, the next job continues with the unfinished tasks. A suite with a changed list of tasks reuses the tasks
that remain. The next job tries failed tasks again.
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
    """Hash of everything that determines the task's results."""
    files: Mapping[str, Path]
    """Files of the results, by name."""
    compute: Callable[[], object]
    """Function that writes all files.

    A MissingError means that the task has no data, which is a gap. An UnreachableError ends the job, because the data
    may be available elsewhere. Any other error is a failure of this task.
    """


def run_tasks(
    runs: Iterable[TaskRun], cache: Cache, failed: Callable[[str, Exception], Score]
) -> dict[str, Score]:
    """Restore the cached results of tasks, and compute and cache those of the others.

    Args:
        runs: Evaluations, one for each task.
        cache: Cache of finished tasks.
        failed: Function that returns the gap of a task that raised an error (``Failures.add``).

    Returns:
        Gaps by task; the files of every other task exist.

    Raises:
        UnreachableError: if the data of an uncached task are not on this machine.
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
        except Exception as error:  # all errors except Ctrl-C fail only this task
            gaps[run.task] = failed(run.task, error)
        else:
            cache.put(run.key, run.files)
    return gaps
