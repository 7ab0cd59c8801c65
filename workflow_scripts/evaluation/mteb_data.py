"""Data of mteb's tasks in the cache of the Hub's client."""

import hashlib
import json
from collections.abc import Iterable
from itertools import chain
from pathlib import Path

import pyarrow as pa
from mteb.abstasks import AbsTask

from workflow_scripts.columns import TASKS
from workflow_scripts.data.hub import find, snapshot
from workflow_scripts.errors import MissingError
from workflow_scripts.evaluation.mteb_tasks import find_tasks, leaves, load_data
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import sha256_of


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
