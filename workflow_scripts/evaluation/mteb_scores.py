"""Evaluation of a saved model folder by tasks of mteb, resumable after each task.

The results of a finished task, mteb's own JSON, are cached under a key of model, settings, code and packages. mteb's
version, one of these packages, fixes the revisions of all data. mteb does not distinguish local models and would reuse
another model's scores, so each job starts with an empty folder of results.

mteb's JSON contains times and dates; the scores returned here do not.
"""

import shutil
from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import product
from math import isfinite
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any

import mteb
from mteb import ResultCache, TaskResult
from mteb.abstasks import AbsTask
from mteb.models import SentenceTransformerEncoderWrapper
from sentence_transformers import SentenceTransformer

from workflow_scripts.columns import TASKS
from workflow_scripts.errors import MissingError, UnreachableError
from workflow_scripts.evaluation.base import Failures, Score, gap, score_table, scored_tasks
from workflow_scripts.evaluation.finished_tasks import TaskRun, run_tasks
from workflow_scripts.evaluation.mteb_data import find_tasks, leaves, load_data
from workflow_scripts.models.devices import granted_device
from workflow_scripts.provenance.artefacts import RECORD_FILE, identity
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.key import job_key
from workflow_scripts.settings.suites import Mteb as Config

Lists = Mapping[str, Mapping[str, str]]
"""Lists of tasks by name; each maps a paper's names of tasks to mteb's."""


def task_names(lists: Lists, chosen: Sequence[str]) -> list[str]:
    """Return mteb's distinct names of the tasks in the ``chosen`` lists."""
    return list(dict.fromkeys(task for name in chosen for task in lists[name].values()))


_SHARED_SETTINGS = {"max_tokens", "batch_size"}
"""Settings that affect the results of all tasks."""


def _key(job: Job, config: Config, task: str) -> str:
    """Return a hash of everything that determines the results of a task."""
    return job_key(
        job.rule,
        wildcards=job.wildcards | {"task": task},
        settings=config.model_dump(include=_SHARED_SETTINGS),
        inputs={"model": job.start.input("model").sha256},
        code_hashes=job.start.meaning,
        packages=job.start.packages,
    )


class Evaluation:
    """The evaluation of an encoder by tasks of mteb, which writes its own JSON.

    Args:
        folder: A model folder that SentenceTransformer can load.
        config: Lengths, batches, and the metrics to store.
        results_folder: Folder of mteb's JSON, which is emptied first.
        missing: Tasks with unavailable data, and the reasons; the data of all others are on this machine.
        named: ``name`` and ``revision`` of the model in mteb's files, instead of those of its folder.
        device: Device of the encoder.
    """

    def __init__(
        self,
        folder: Path,
        config: Config,
        results_folder: Path,
        missing: Mapping[str, str],
        *,
        named: Mapping[str, str] = MappingProxyType({}),
        device: str = "cpu",
    ) -> None:
        self._config, self._missing = config, missing
        self._encoder = _load(folder, config.max_tokens, device)
        meta = self._encoder.mteb_model_meta.model_copy(update=named)
        self._encoder.mteb_model_meta = self._meta = meta
        shutil.rmtree(results_folder, ignore_errors=True)
        self._results = ResultCache(results_folder)

    def run(self, task: AbsTask, key: str) -> TaskRun:
        """Return the evaluation of one task with the key ``key``."""
        names = [task.metadata.name, *(part.metadata.name for part in leaves(task))]
        paths = [self._results.get_task_result_path(name, self._meta) for name in names]
        files = {path.name: path for path in (*paths, paths[0].with_name("model_meta.json"))}
        return TaskRun(names[0], key, files, partial(self._compute, task))

    def _compute(self, task: AbsTask) -> None:
        """Load the data of a task, and score the encoder with mteb.

        Raises:
            MissingError: if the data are unavailable.
            UnreachableError: if the data are no longer on this machine.
        """
        parts = leaves(task)
        for part in parts:
            if reason := self._missing.get(part.metadata.name):
                raise MissingError(reason)
        for part in parts:
            if reason := load_data(part, offline=True):
                fetch = "Download it again (snakemake --forcerun fetch_tasks)."
                raise UnreachableError(f"mteb {task.metadata.name}: {reason}. {fetch}")
        silent: dict[str, Any] = {"show_progress_bar": False}
        options = silent | {"encode_kwargs": silent | {"batch_size": self._config.batch_size}}
        mteb.evaluate(self._encoder, task, cache=self._results, co2_tracker=False, **options)
        for part in parts:
            part.unload_data()

    def scores(self, task: AbsTask) -> list[Score]:
        """Return the scores of a finished task.

        These are the ``mean`` of main scores over splits and subsets, and for each split and subset (aggregation
        ``test:en``) the main score and the chosen metrics. ``n`` is mteb's number of samples, or 0 if unknown.
        """
        result = self._results.load_task_result(task.metadata.name, self._meta)  # rounded by mteb
        assert result is not None
        return _scores(task, result, self._config.metrics)


def list_means(scores: Sequence[Score], lists: Lists, config: Config) -> list[Score]:
    """Return the mean of each chosen metric over the tasks of each list; a task's value is the mean over its parts.

    Args:
        scores: Scores of all tasks of the lists.
        lists: Lists by name.
        config: Settings with lists and metrics.

    Returns:
        A score for each list, with the list's name as task, and each metric that one of its tasks has; a gap if another
        task lacks the metric, or a part of a task has no finite value.
    """
    parts: dict[tuple[str, str], list[Score]] = defaultdict(list)
    for score in scores:
        if ":" in score.aggregation:
            parts[score.task, score.metric].append(score)
    means: list[Score] = []
    for name, metric in product(lists, config.metrics):
        by_task = {task: parts[task, metric] for task in dict.fromkeys(lists[name].values())}
        finite = {
            task: [part.value for part in values if part.value is not None]
            for task, values in by_task.items()
        }
        if lacking := [
            task for task, values in by_task.items() if not values or len(finite[task]) < len(values)
        ]:
            reason = f"no {metric} of {', '.join(lacking)}"
            means += [gap(name, reason)] if any(by_task.values()) else []
            continue
        value = fmean(map(fmean, finite.values()))
        means.append(Score(name, "mean", metric, value, sum(part.n for v in by_task.values() for part in v)))
    return means


def _load(folder: Path, max_tokens: int, device: str) -> SentenceTransformerEncoderWrapper:
    """Return the model of a folder, loaded by sentence-transformers; only code of this project's folders is run."""
    ours = (folder / RECORD_FILE).exists()
    if ours:  # its code is a copy of this project's; ``identity`` checks it against the record
        identity(folder)
    model = SentenceTransformer(str(folder), device=device, trust_remote_code=ours)
    model.max_seq_length = max_tokens
    return SentenceTransformerEncoderWrapper(model)


def _scores(task: AbsTask, result: TaskResult, metrics: Sequence[str]) -> list[Score]:
    name, note = result.task_name, f"mteb {result.mteb_version}, data {result.dataset_revision}"
    parts = {
        (split, subset["hf_subset"]): subset for split, subsets in result.scores.items() for subset in subsets
    }
    samples = {part: _samples(task, *part) for part in sorted(parts)}
    scores = [
        _score(name, ":".join(part), metric, parts[part][metric], n, note)
        for part, n in samples.items()
        for metric in dict.fromkeys(["main_score", *metrics])
        if metric in parts[part]
    ]
    return [_score(name, "mean", "main_score", result.get_score(), sum(samples.values()), note), *scores]


def _score(task: str, aggregation: str, metric: str, value: Any, n: int, note: str) -> Score:
    number = float(value)
    if isfinite(number):
        return Score(task, aggregation, metric, number, n, note)
    return Score(task, aggregation, metric, None, 0, f"{note}; not a finite number")


def _samples(task: AbsTask, split: str, subset: str) -> int:
    """Return mteb's number of samples in a split or subset."""
    statistics: Mapping[str, Any] = (task.metadata.descriptive_stats or {}).get(split, {})
    by_subset = statistics.get("hf_subset_descriptive_stats") or {}
    return int(by_subset.get(subset, statistics).get("num_samples", 0))


def evaluate_mteb(job: Job) -> None:
    """Score one run on lists of tasks of mteb (rule evaluate_mteb).

    mteb's ``ResultCache`` can read and submit finished results, under the name of run and seed.
    """
    config = Config.parse(job.settings["suite"], f"suites.mteb.{job.wildcards['suite']}")
    lists, failures = job.settings["lists"], Failures(job)
    job.record()  # checks the model, which mteb would not
    fetched = job.read("tasks", TASKS).to_pylist()
    evaluation = Evaluation(
        job.input("model").parent,
        config,
        job.outputs["scores"].with_suffix(".checkpoints"),
        {row["task"]: row["missing"] for row in fetched if row["missing"]},
        named={
            "name": f"semblance/{job.wildcards['run']}-seed{job.wildcards['seed']}",
            "revision": job.start.input("model").sha256[:40],
        },
        device=granted_device(job.operational["gpu"]).type,
    )
    tasks = {task.metadata.name: task for task in find_tasks(task_names(lists, config.lists))}
    runs = [evaluation.run(task, _key(job, config, name)) for name, task in tasks.items()]
    gaps = run_tasks(runs, job.cache, failures.add)
    scores = [
        score
        for name, task in tasks.items()
        for score in ([gaps[name]] if name in gaps else evaluation.scores(task))
    ]
    scores += list_means(scores, lists, config)
    table = score_table(scores, **job.wildcards)
    label = config.label if scored_tasks(table) else None
    job.write({"scores": table}, labels=[label, *failures.labels(table)])
