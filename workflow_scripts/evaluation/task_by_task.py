"""Evaluation of a suite task by task (``evaluation.finished_tasks``); each text is encoded once.

The key of a task is the key of its job without the other tasks.
"""

import importlib
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.arrays import Vectors
from workflow_scripts.columns import FORMS
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.base import (
    NO_PAIRS,
    Evaluator,
    Failures,
    Score,
    Task,
    not_scored,
    score_table,
    scored_tasks,
)
from workflow_scripts.evaluation.finished_tasks import TaskRun, run_tasks
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import identity, read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.key import job_key
from workflow_scripts.provenance.record import merged_labels
from workflow_scripts.settings.suites import SuiteConfig

Tables = dict[str, pa.Table]
"""Tables of a task or suite, by the role of their output."""


def evaluate_sts(job: Job) -> None:
    """Score one run on one suite of scored pairs and geometry (rule evaluate_sts)."""
    _evaluate(job, "sts")


def evaluate_suite(job: Job) -> None:
    """Score one run on one suite by the evaluator of its kind (rule evaluate_suite)."""
    _evaluate(job, job.wildcards["kind"])


def _evaluate(job: Job, kind: str) -> None:
    """Score a run on the uncached tasks of a suite, with each text encoded once, and write all scores.

    Args:
        job: Job with the inputs ``model`` and ``datasets``, the wildcards suite, run and seed, and the output
            ``scores``.
        kind: Kind of the suite.

    Raises:
        DataError: if a dataset has the wrong form, or no task could be evaluated.
    """
    evaluator: Evaluator = importlib.import_module(f"workflow_scripts.evaluation.{kind}")
    config = evaluator.Config.parse(job.settings["suite"], f"suites ({job.wildcards['suite']})")
    tables = {path.stem: _read(path, config) for path in job.inputs("datasets")}
    tasks = {
        name: _loaded(evaluator, name, tables[dataset], config) for name, dataset in config.tasks.items()
    }
    encoder = load_encoder(job.input("model").parent, config.readout)
    encoder.to(granted_device(job.operational["gpu"]))
    encoding = partial(encoder.encode, max_tokens=config.max_tokens)
    texts = SharedTexts(encoding, {name: task.columns for name, task in tasks.items()})
    failures = Failures(job)
    with TemporaryDirectory() as folder:
        runs = [_task_run(job, config, name, task, texts, Path(folder)) for name, task in tasks.items()]
        gaps = run_tasks(runs, job.cache, failures.add)
        parts = [
            _tables(job, [gaps[run.task]]) if run.task in gaps else _read_tables(run.files) for run in runs
        ]
    suite = {role: pa.concat_tables([part[role] for part in parts]) for role in parts[0]}
    scored = scored_tasks(suite["scores"])
    job.write(
        suite,
        labels=merged_labels(
            config.labels(scored, encoder.tokenizer.tokenize), failures.labels(suite["scores"])
        ),
    )


def _read(path: Path, config: SuiteConfig) -> pa.Table:
    """Return a dataset of the form of the suite's kind, or of any form if only a measure reads it."""
    return read_table(path, FORMS[config.form]) if path.stem in config.datasets else read_dataset_table(path)


def _loaded(evaluator: Evaluator, name: str, table: pa.Table, config: SuiteConfig) -> Task:
    """Return a task; one that cannot be loaded raises its error when it is scored."""
    if not len(table):
        return not_scored(name, "no source of the dataset is available")
    try:
        return evaluator.load(name, table, config)
    except Exception as error:  # all errors fail only this task
        return Task([], partial(_fail, error))


def _fail(error: Exception) -> list[Score]:
    raise error


def _tables(job: Job, scores: Iterable[Score], pairs: pa.Table = NO_PAIRS) -> Tables:
    """Return the tables of a task that are outputs of the rule."""
    names = {name: job.wildcards[name] for name in ("suite", "run", "seed")}
    tables = {"scores": score_table(scores, **names), "pairs": pairs}
    return {role: table for role, table in tables.items() if role in job.outputs}


class SharedTexts:
    """The texts of several tasks, each encoded once, when the first of its tasks is evaluated.

    Texts are encoded in units: the texts of exactly the same set of tasks. The batches of a text then depend only on
    the suite, so its vector is bit-identical whichever tasks are cached.

    Args:
        encode: Function from texts to vectors of shape (N, D), in order, not normalised.
        columns: Columns of texts by task, in the order of evaluation.
    """

    def __init__(
        self,
        encode: Callable[[Sequence[str]], Vectors],
        columns: Mapping[str, Sequence[Sequence[str]]],
    ) -> None:
        self._encode = encode
        self._columns = columns
        tasks: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for task, task_columns in columns.items():
            for text in chain.from_iterable(task_columns):
                tasks[text][task] = None
        self._units: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for text, shared in tasks.items():
            self._units[tuple(shared)].append(text)
        self._vectors: dict[tuple[str, ...], Vectors] = {}

    def vectors(self, task: str) -> list[Vectors]:
        """Return the vectors of each column of a task, shape (N, D).

        Raises:
            DataError: if a vector is not finite, or all are equal: the encoder is broken.
        """
        rows: dict[str, Vectors] = {}
        for shared, texts in self._units.items():
            if task in shared:
                if shared not in self._vectors:
                    self._vectors[shared] = self._encode(texts)
                rows |= zip(texts, self._vectors[shared], strict=True)
        if rows:
            _check(np.stack(list(rows.values())))
        return [np.stack([rows[text] for text in column]) for column in self._columns[task]]


_ROUNDING = 1e-5
"""Maximum relative difference of equal embeddings."""


def _check(vectors_UD: Vectors) -> None:
    if broken := int((~np.isfinite(vectors_UD)).any(axis=1).sum()):
        raise DataError(f"encoder: {broken} embeddings are not finite. Retrain it.")
    # Equal embeddings of two batches may differ by rounding errors.
    spread, size = np.ptp(vectors_UD, axis=0).max(), np.abs(vectors_UD).max()
    if len(vectors_UD) > 1 and spread <= _ROUNDING * size:
        raise DataError(f"encoder: all {len(vectors_UD)} sentences have the same embedding. Retrain it.")


# One task


def _task_run(
    job: Job, config: SuiteConfig, name: str, task: Task, texts: SharedTexts, folder: Path
) -> TaskRun:
    """Return the evaluation of a task, whose tables are Parquet files below ``folder``."""
    files = {role: folder / f"{name}.{role}" for role in job.outputs}
    return TaskRun(
        name, _task_key(job, config, name), files, partial(_compute, job, name, task, texts, files)
    )


def _compute(job: Job, name: str, task: Task, texts: SharedTexts, files: Mapping[str, Path]) -> None:
    """Score a task, and write its tables."""
    vectors = texts.vectors(name)
    for role, table in _tables(job, task.score(*vectors), task.pairs(*vectors)).items():
        pq.write_table(table, files[role])


def _read_tables(files: Mapping[str, Path]) -> Tables:
    return {role: pq.read_table(path) for role, path in files.items()}


def _task_key(job: Job, config: SuiteConfig, task: str) -> str:
    """Return the key of a task: that of the job without datasets and settings of other tasks."""
    start, dataset = job.start, config.tasks[task]
    datasets = {path.as_posix(): identity(path) for path in job.inputs("datasets") if path.stem == dataset}
    return job_key(
        start.rule,
        wildcards=start.wildcards,
        settings={**start.settings, "suite": config.for_task(task).model_dump(mode="json")},
        inputs=start.identities | {"datasets": datasets},
        code_hashes=start.meaning,
        packages=start.packages,
    )
