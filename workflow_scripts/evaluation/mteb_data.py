"""Tasks of mteb, and their data in the cache of the Hub's client; mteb's version fixes their revisions."""

import hashlib
import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import mteb
import pyarrow as pa
from mteb.abstasks import AbsTask
from mteb.abstasks.aggregated_task import AbsTaskAggregate

from workflow_scripts.columns import TASKS
from workflow_scripts.data.hub import at_commit, find, snapshot
from workflow_scripts.errors import ConfigError, MissingError
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import sha256_of


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


def fetch(tasks: Iterable[AbsTask]) -> pa.Table:
    """Download the datasets of tasks into the cache of the Hub's client, each at the commit that mteb names.

    Returns:
        A row per task with its own data (``columns.TASKS``).

    Raises:
        UnreachableError: if the Hub does not answer, and a task's data are not on this machine.
    """
    rows = []
    for task in chain.from_iterable(map(leaves, tasks)):
        repository, commit = (str(task.metadata.dataset[name]) for name in ("path", "revision"))
        try:
            reason = load_data(task, offline=find(repository, commit, "dataset") is None)
        except MissingError as error:
            reason = str(error)
        task.unload_data()
        files_hash = None if reason else _files_hash(snapshot(repository, commit, "dataset"))
        rows.append((task.metadata.name, repository, commit, files_hash, reason))
    return pa.table([list(column) for column in zip(*rows, strict=True)], schema=TASKS)


def _files_hash(folder: Path) -> str:
    """Hash of the names and contents of all files of a folder."""
    files = {
        path.relative_to(folder).as_posix(): sha256_of(path) for path in folder.rglob("*") if path.is_file()
    }
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def fetch_tasks(job: Job) -> None:
    """Bring the data of a suite of mteb's tasks onto this machine (rule fetch_tasks)."""
    tasks = find_tasks(job.settings["tasks"])
    fetched = fetch(tasks)
    for row in fetched.to_pylist():
        print(row["task"], row["missing"] or f"{row['repository']}@{row['revision']}")  # noqa: T201
    job.write({"tasks": fetched})
