"""The tasks of a suite one by one: a finished task is on disk at once, and a failing one costs its own cells.

Finished tasks lie beside the scores in ``<scores>.checkpoints``, which no rule names as an output, so that Snakemake
leaves the folder alone: a file for each task and table, sealed like every artefact, under a key of the
task's own. A job that was killed goes on behind them, and a suite with another list of tasks takes over what it has in
common with the one before. A file that is damaged, or of another key, is made again.

A failed task leaves no file. It is tried again by the next job of the same place, which is never put back from
``.kept`` instead.
"""

from collections.abc import Iterable, Sequence
from functools import partial
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa

from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.columns.scores import SCORES, SIMILARITIES
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.base import Evaluator, Task, not_scored
from workflow_scripts.evaluation.embeddings import SharedTexts, Vectors
from workflow_scripts.evaluation.failures import Failures
from workflow_scripts.evaluation.scores import Score, score_table
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.provenance.artefacts import read_record, read_table, write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.key import job_key
from workflow_scripts.provenance.record import Record
from workflow_scripts.settings.suites import SuiteConfig

COLUMNS = {"scores": SCORES, "pairs": SIMILARITIES}
"""Of each output that a rule may have."""
Tables = dict[str, pa.Table]
"""What is written of a task or suite, by the job's output."""


def evaluate_suite(job: Job, evaluator: Evaluator) -> None:
    """Score a run on a suite and write: tasks that are not finished yet, each text of them encoded once.

    Args:
        job: With the inputs ``model`` and ``datasets``, the wildcards suite, run and seed, and the output ``scores``,
            which says where finished tasks are kept.
        evaluator: Of the suite's kind.

    Raises:
        DataError: if a dataset is not of its form, or not one task could be evaluated.
    """
    config = evaluator.Config.parse(job.settings["suite"], f"suites ({job.wildcards['suite']})")
    tables = {path.stem: _read(path, config) for path in job.many("datasets")}
    tasks = {name: _loaded(evaluator, name, tables[of], config) for name, of in config.tasks.items()}
    encoder, tokenizer = load_encoder(job.inputs["model"].parent, config.readout)
    encoder.to(granted_device(job.operational["gpu"]))
    encoding = partial(encode, encoder, tokenizer, max_tokens=config.max_tokens)
    texts = SharedTexts(encoding, {name: task.columns for name, task in tasks.items()})
    failures, finished = Failures(job), _Finished(job, config)
    parts: list[Tables] = []
    for name, task in tasks.items():
        made = finished.read(name)
        if made is None:
            try:
                made = _scored(job, task, texts.of(name))
            except Exception as error:  # every task has reasons of its own to fail; Ctrl-C is none
                made = _tables(job, [failures.add(name, error)], SIMILARITIES.empty_table())
            else:
                finished.write(name, made)
        parts.append(made)
        texts.forget(name)
    whole = {role: pa.concat_tables([part[role] for part in parts]) for role in parts[0]}
    labels = [*config.labels(tokenizer.tokenize), *failures.settle(whole["scores"])]
    for role, table in whole.items():
        write_table(job.outputs[role], table, job.record(labels=labels))


def _read(path: Path, config: SuiteConfig) -> pa.Table:
    """A dataset; of the form that the suite's kind reads, unless a task of another name reads it."""
    return read_table(path, FORMS[config.form]) if path.stem in config.datasets else read_dataset_table(path)


def _loaded(evaluator: Evaluator, name: str, table: pa.Table, config: SuiteConfig) -> Task:
    """A task; one that cannot be loaded fails in its turn."""
    if not len(table):
        return not_scored(name, "no source of the dataset is available")
    try:
        return evaluator.load(name, table, config)
    except Exception as error:  # as above
        return Task([], partial(_fail, error))


def _fail(error: Exception) -> list[Score]:
    raise error


def _scored(job: Job, task: Task, vectors: Sequence[Vectors]) -> Tables:
    return _tables(job, task.score(*vectors), task.pairs(*vectors))


def _tables(job: Job, scores: Iterable[Score], pairs: pa.Table) -> Tables:
    """What the rule writes of a task."""
    names = {name: job.wildcards[name] for name in ("suite", "run", "seed")}
    made = {"scores": score_table(scores, **names), "pairs": pairs}
    return {role: table for role, table in made.items() if role in job.outputs}


class _Finished:
    """Tables of finished tasks, beside the scores of a job."""

    def __init__(self, job: Job, config: SuiteConfig) -> None:
        self._job = job
        self._config = config
        self._folder = job.outputs["scores"].with_suffix(".checkpoints")

    def read(self, task: str) -> Tables | None:
        """The tables of a task; None unless all are there, whole, and of the task's present key."""
        key = self._record(task).key
        roles = [role for role in COLUMNS if role in self._job.outputs]
        try:
            return {role: _of_key(self._path(task, role), COLUMNS[role], key) for role in roles}
        except (DataError, OSError, ValueError):  # absent or damaged, a record of another version among it
            return None

    def write(self, task: str, tables: Tables) -> None:
        """Keep the tables of a finished task."""
        record = self._record(task)
        for role, table in tables.items():
            path = self._path(task, role)
            write_table(path, table, record.model_copy(update={"outputs": [path.as_posix()]}))

    def _path(self, task: str, role: str) -> Path:
        return self._folder / f"{quote(task, safe='')}.{role}.parquet"

    def _record(self, task: str) -> Record:
        """The job's, without datasets and settings of its other tasks; its key is a hash of what decides the task."""
        start, of = self._job.start, self._config.tasks[task]
        others = {f"datasets/{path.as_posix()}" for path in self._job.many("datasets") if path.stem != of}
        inputs = {role: given for role, given in start.inputs.items() if role not in others}
        settings = {**start.settings, "suite": self._config.of_task(task).model_dump(mode="json")}
        key = job_key(
            start.rule,
            wildcards=start.wildcards,
            settings=settings,
            inputs={role: given.sha256 for role, given in inputs.items()},
            meaning=start.meaning,
            packages=start.packages,
        )
        return self._job.record().model_copy(update={"key": key, "settings": settings, "inputs": inputs})


def _of_key(path: Path, columns: pa.Schema, key: str) -> pa.Table:
    table, record = read_table(path, columns), read_record(path)
    if record is None or record.key != key:
        raise DataError(f"{path}: of another task.")
    return table
