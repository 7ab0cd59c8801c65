"""Tasks of mteb and their data, whose revisions mteb's version fixes."""

from collections.abc import Iterable

import mteb
from mteb.abstasks import AbsTask
from mteb.abstasks.aggregated_task import AbsTaskAggregate

from workflow_scripts.data.hub import at_commit
from workflow_scripts.errors import ConfigError


def find_tasks(names: Iterable[str]) -> list[AbsTask]:
    """Look up tasks by name in mteb, without network.

    Raises:
        ConfigError: if this version of mteb has no task of that name.
    """
    tasks = []
    for name in names:
        try:
            tasks.append(mteb.get_task(name))
        except KeyError as error:
            problem = f"mteb {mteb.__version__} has no task {name}"
            advice = "Correct the name, or say why under not_in_this_mteb."
            raise ConfigError(f"config/mteb.yaml: {problem}. {advice}") from error
    return tasks


def leaves(task: AbsTask) -> list[AbsTask]:
    """The tasks whose scores an aggregate such as CQADupstackRetrieval averages; or the task itself."""
    return list(task.tasks) if isinstance(task, AbsTaskAggregate) else [task]


def load_data(task: AbsTask, *, offline: bool) -> str | None:
    """Load a task's dataset; returns the reason in one line if it is unavailable."""
    try:
        with at_commit(task.metadata.revision, offline=offline):
            task.load_data()
    except Exception as error:  # every dataset has its own loader with its own errors
        first_line = (str(error).splitlines() or [""])[0]
        return f"data set {task.metadata.dataset['path']}: {type(error).__name__}: {first_line}"
    return None
