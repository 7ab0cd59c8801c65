"""The tasks of a suite one by one: a finished task is cached at once, and a failed task blanks only its own cells.

Each task has a key of its own, that of its job without the other tasks. A job that was killed goes on behind the tasks
that it has finished, a suite whose list of tasks has changed takes over those that it still has, and a failed task is
tried again by the next job of the same place.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.base import Evaluator, Score, Task, Vectors, not_scored, score_table
from workflow_scripts.evaluation.failures import Failures
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.key import job_key
from workflow_scripts.settings.suites import SuiteConfig

Tables = dict[str, pa.Table]
"""The tables of a task or suite, by the role of the output that they go to."""


def evaluate_suite(job: Job, evaluator: Evaluator) -> None:
    """Score a run on those tasks of a suite that are not cached, each text encoded once, and write all.

    Args:
        job: With the inputs ``model`` and ``datasets``, the wildcards suite, run and seed, and the output ``scores``.
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
    failures, parts = Failures(job), []
    for name, task in tasks.items():
        key = _key_of_task(job, config, name)
        made = _cached(key, job.outputs)
        if made is None:
            try:
                vectors = texts.of(name)
                made = _tables(job, _at_widths(task, vectors, config.widths), task.pairs(*vectors))
            except Exception as error:  # every task has reasons of its own to fail; Ctrl-C is none
                made = _tables(job, [failures.add(name, error)], SIMILARITIES.empty_table())
            else:
                _cache(key, made)
        parts.append(made)
        texts.forget(name)
    whole = {role: pa.concat_tables([part[role] for part in parts]) for role in parts[0]}
    job.write(whole, labels=[*config.labels(tokenizer.tokenize), *failures.settle(whole["scores"])])


def _read(path: Path, config: SuiteConfig) -> pa.Table:
    """A dataset: of the form of the suite's kind, or, where only a measure reads it, of any form."""
    return read_table(path, FORMS[config.form]) if path.stem in config.datasets else read_dataset_table(path)


def _loaded(evaluator: Evaluator, name: str, table: pa.Table, config: SuiteConfig) -> Task:
    """A task; one that cannot be loaded fails in its turn."""
    if not len(table):
        return not_scored(name, "no source of the dataset is available")
    try:
        return evaluator.load(name, table, config)
    except Exception as error:  # again any reason
        return Task([], partial(_fail, error))


def _at_widths(task: Task, vectors: Sequence[Vectors], widths: Sequence[int]) -> Iterator[Score]:
    """A task's scores; then those of its vectors cut to each width, whose aggregations end in @ and the width.

    Raises:
        DataError: if a width is more than the vectors have.
    """
    yield from task.score(*vectors)
    for width in widths:
        if vectors and width > vectors[0].shape[1]:
            raise DataError(f"widths: {width} of vectors of {vectors[0].shape[1]} entries. Lower it.")
        for score in task.score(*(one[:, :width] for one in vectors)):
            yield score._replace(aggregation=f"{score.aggregation}@{width}")


def _fail(error: Exception) -> list[Score]:
    raise error


def _tables(job: Job, scores: Iterable[Score], pairs: pa.Table) -> Tables:
    """The tables of a task that the rule writes."""
    names = {name: job.wildcards[name] for name in ("suite", "run", "seed")}
    made = {"scores": score_table(scores, **names), "pairs": pairs}
    return {role: table for role, table in made.items() if role in job.outputs}


class SharedTexts:
    """The texts of several tasks, each of which is encoded once, when the first of its tasks asks for it.

    Texts are encoded in units, those of one task alone and those that several have in common, so that a vector is the
    same to the bit whichever of the tasks are left to do: what else is in its batches depends on the suite alone.

    Args:
        encode: Texts to vectors of shape (N, D), in order; not normalised.
        columns: Task to its columns of texts, in the order in which tasks will be evaluated.
    """

    def __init__(
        self,
        encode: Callable[[Sequence[str]], Vectors],
        columns: Mapping[str, Sequence[Sequence[str]]],
    ) -> None:
        self._encode = encode
        self._columns = columns
        tasks: defaultdict[str, dict[str, None]] = defaultdict(dict)
        for task, own in columns.items():
            for column in own:
                for text in column:
                    tasks[text][task] = None
        self._units: defaultdict[tuple[str, ...], list[str]] = defaultdict(list)
        for text, shared in tasks.items():
            self._units[tuple(shared)].append(text)
        self._vectors: dict[tuple[str, ...], Vectors] = {}

    def of(self, task: str) -> list[Vectors]:
        """The vectors of each column of a task, shape (N, D).

        Raises:
            DataError: if one is not finite or all are equal: the encoder is broken, and its scores would be
                meaningless.
        """
        units = [shared for shared in self._units if task in shared]
        if not units:
            return []
        for shared in units:
            if shared not in self._vectors:
                self._vectors[shared] = self._encode(self._units[shared])
        vectors = np.concatenate([self._vectors[shared] for shared in units])
        _check(vectors)
        texts = (text for shared in units for text in self._units[shared])
        row = {text: number for number, text in enumerate(texts)}
        return [vectors[[row[text] for text in column]] for column in self._columns[task]]

    def forget(self, task: str) -> None:
        """Let go of the vectors that no task after ``task`` asks for."""
        self._vectors = {shared: vectors for shared, vectors in self._vectors.items() if shared[-1] != task}


def _check(vectors_UD: Vectors) -> None:
    if broken := int((~np.isfinite(vectors_UD)).any(axis=1).sum()):
        raise DataError(f"encoder: {broken} embeddings are not finite. Retrain it.")
    if len(vectors_UD) > 1 and not vectors_UD.std(axis=0).any():
        raise DataError(f"encoder: all {len(vectors_UD)} sentences have the same embedding. Retrain it.")


# Finished tasks


def _key_of_task(job: Job, config: SuiteConfig, task: str) -> str:
    """The key of the job without datasets and settings of other tasks: the hash of what decides the task."""
    start, of = job.start, config.tasks[task]
    others = {f"datasets/{path.as_posix()}" for path in job.many("datasets") if path.stem != of}
    return job_key(
        start.rule,
        wildcards=start.wildcards,
        settings={**start.settings, "suite": config.of_task(task).model_dump(mode="json")},
        inputs={role: given.sha256 for role, given in start.inputs.items() if role not in others},
        meaning=start.meaning,
        packages=start.packages,
    )


def _cached(key: str, roles: Iterable[str]) -> Tables | None:
    """The tables of a task that was finished before."""
    with TemporaryDirectory() as folder:
        paths = {role: Path(folder, role) for role in roles}
        return (
            {role: pq.read_table(path) for role, path in paths.items()} if cache.restore(key, paths) else None
        )


def _cache(key: str, tables: Tables) -> None:
    with TemporaryDirectory() as folder:
        paths = {role: Path(folder, role) for role in tables}
        for role, path in paths.items():
            pq.write_table(tables[role], path)
        cache.put(key, paths)
