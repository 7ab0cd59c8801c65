"""Tasks of mteb, and their data in the cache of the Hub's client; mteb's version fixes the revisions."""

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
    """Return tasks of mteb by name, without network requests.

    Raises:
        ConfigError: if this version of mteb has no task of a name.
    """
    tasks = []
    for name in names:
        try:
            tasks.append(mteb.get_task(name))
        except KeyError as error:
            problem = f"mteb {mteb.__version__} has no task {name}"
            advice = "Correct the name, or move the task to not_in_this_mteb, with the reason."
            raise ConfigError(f"config/mteb.yaml: {problem}. {advice}") from error
    return tasks


def leaves(task: AbsTask) -> list[AbsTask]:
    """Return the tasks over which an aggregate such as CQADupstackRetrieval averages, or the task itself."""
    return list(task.tasks) if isinstance(task, AbsTaskAggregate) else [task]


def load_data(task: AbsTask, *, offline: bool) -> str | None:
    """Load a task's dataset, and return the reason in one line if it is unavailable; else None."""
    try:
        with at_commit(task.metadata.revision, offline=offline):
            task.load_data()
    except Exception as error:  # the loaders of datasets raise many types
        first_line = (str(error).splitlines() or [""])[0]
        return f"data set {task.metadata.dataset['path']}: {type(error).__name__}: {first_line}"
    return None


def fetch(tasks: Iterable[AbsTask]) -> pa.Table:
    """Download the datasets of tasks into the cache of the Hub's client, each at mteb's commit.

    Returns:
        A row for each task that has its own data (``columns.TASKS``).

    Raises:
        UnreachableError: if the Hub does not answer and a task's data are not on this machine.
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
    """Return a hash of the names and contents of all files in a folder."""
    files = {
        path.relative_to(folder).as_posix(): sha256_of(path) for path in folder.rglob("*") if path.is_file()
    }
    return hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest()


def fetch_tasks(job: Job) -> None:
    """Download the data of a suite of mteb's tasks (rule fetch_tasks)."""
    tasks = find_tasks(job.settings["tasks"])
    fetched = fetch(tasks)
    for row in fetched.to_pylist():
        print(row["task"], row["missing"] or f"{row['repository']}@{row['revision']}")  # noqa: T201
    job.write({"tasks": fetched})
