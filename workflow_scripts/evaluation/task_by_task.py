"""The tasks of a suite one by one: a finished task is on disk at once, and a failing one costs its own cells.

Finished tasks lie beside the scores in ``<scores>.checkpoints``, which no rule names as an output, so that Snakemake
leaves the folder alone: a file for each task and table, sealed like every artefact, under a key of the task's own
(``task_key``). A job that was killed goes on behind them, and a suite with another list of tasks takes over what it has
in common with the one before. A file that is damaged, or of another key, is made again.

A failed task leaves no file. It is tried again by the next job of the same place, which is never put back from
``.kept`` instead.
"""

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote

import pyarrow as pa

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.config import Settings
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.embeddings import Encode, SharedTexts, texts_asked_for
from workflow_scripts.evaluation.failures import Failures
from workflow_scripts.evaluation.scores import Score, score_table
from workflow_scripts.provenance.artefacts import read_record, read_table, write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.key import job_key
from workflow_scripts.provenance.record import Input, Record

Tables = dict[str, pa.Table]
"""What is written of a task or suite, by the job's output."""


class Task(NamedTuple):
    """One task, and all that it reads."""

    dataset: Path
    settings: Settings
    """Those of the suite, without what is about other tasks."""
    evaluate: Callable[[Encode], Mapping[str, Iterable[Score] | pa.Table]]
    """Scores or a table for each output of the job; what it needs encoded, it asks for at once."""


class Outcome(NamedTuple):
    """What became of a suite."""

    tables: Tables
    labels: list[str]
    """A gap for each task that failed."""


def evaluate_tasks(
    job: Job, tasks: Mapping[str, Task], encode: Encode, columns: Mapping[str, pa.Schema]
) -> Outcome:
    """Evaluate the tasks that are not finished yet, each text of them encoded once.

    Args:
        job: With the wildcards suite, run and seed; its ``scores`` say where finished tasks are kept.
        tasks: By name, in the order of the suite.
        encode: Texts to vectors.
        columns: Output to the columns of what each task adds to it.

    Returns:
        The tables of all tasks, in their order. A task that failed has a gap in every table of scores.

    Raises:
        DataError: if not one task could be evaluated.
    """
    checkpoints = _Checkpoints(job, columns)
    texts = SharedTexts(encode, {name: texts_asked_for(task.evaluate) for name, task in tasks.items()})
    failures = Failures(job)
    found: list[Tables] = []
    for name, task in tasks.items():
        tables = checkpoints.read(name, task)
        if tables is None:
            try:
                tables = _computed(job, task, texts.of(name), columns)
            except Exception as error:  # every task has reasons of its own to fail; Ctrl-C is none
                tables = _lost(job, failures.add(name, error), columns)
            else:
                checkpoints.write(name, task, tables)
        found.append(tables)
        texts.forget(name)
    joined = {
        role: pa.concat_tables([schema.empty_table(), *(part[role] for part in found)])
        for role, schema in columns.items()
    }
    return Outcome(joined, failures.settle(joined["scores"]))


def scores_of(job: Job, scores: Iterable[Score]) -> pa.Table:
    """Scores as a table with the suite, run and seed of a job."""
    return score_table(scores, **{name: job.wildcards[name] for name in ("suite", "run", "seed")})


def task_key(job: Job, task: Task) -> str:
    """Hash of all that decides what a task gives: the job's, without datasets and settings of its other tasks."""
    return job_key(
        job.rule,
        wildcards=job.wildcards,
        settings=_settings(job, task),
        inputs={role: given.sha256 for role, given in _inputs(job, task).items()},
        meaning=job.start.meaning,
        packages=job.start.packages,
    )


def _settings(job: Job, task: Task) -> dict[str, Any]:
    return {**job.settings, "suite": task.settings.model_dump(mode="json")}


def _inputs(job: Job, task: Task) -> dict[str, Input]:
    """A job's inputs but for the datasets of other tasks."""
    others = {f"datasets/{path.as_posix()}" for path in job.many("datasets") if path != task.dataset}
    return {role: given for role, given in job.start.inputs.items() if role not in others}


def _computed(job: Job, task: Task, encode: Encode, columns: Mapping[str, pa.Schema]) -> Tables:
    made = task.evaluate(encode)
    return {role: _as_table(job, made[role]) for role in columns}


def _as_table(job: Job, made: Iterable[Score] | pa.Table) -> pa.Table:
    return made if isinstance(made, pa.Table) else scores_of(job, made)


def _lost(job: Job, missing: Score, columns: Mapping[str, pa.Schema]) -> Tables:
    """A gap in every table of scores, and no row in others."""
    row = scores_of(job, [missing])
    return {role: row if schema == SCORES else schema.empty_table() for role, schema in columns.items()}


# Finished tasks


class _Checkpoints:
    """Tables of finished tasks, beside the scores of a job."""

    def __init__(self, job: Job, columns: Mapping[str, pa.Schema]) -> None:
        self._job = job
        self._columns = columns
        self._folder = job.outputs["scores"].with_suffix(".checkpoints")

    def _path(self, name: str, role: str) -> Path:
        return self._folder / f"{quote(name, safe='')}.{role}.parquet"

    def read(self, name: str, task: Task) -> Tables | None:
        """The tables of a task; None unless all are there, whole, and of the task's present key."""
        key = task_key(self._job, task)
        try:
            return {role: self._table(self._path(name, role), role, key) for role in self._columns}
        except (DataError, OSError, ValueError):  # absent or damaged, a record of another version among it
            return None

    def _table(self, path: Path, role: str, key: str) -> pa.Table:
        table, record = read_table(path, self._columns[role]), read_record(path)
        if record is None or record.key != key:
            raise DataError(f"{path}: of another task.")
        return table

    def write(self, name: str, task: Task, tables: Tables) -> None:
        """Keep the tables of a finished task."""
        for role, table in tables.items():
            path = self._path(name, role)
            write_table(path, table, self._record(path, task))

    def _record(self, path: Path, task: Task) -> Record:
        own = {
            "key": task_key(self._job, task),
            "settings": _settings(self._job, task),
            "inputs": _inputs(self._job, task),
            "outputs": [path.as_posix()],
        }
        return self._job.record().model_copy(update=own)
