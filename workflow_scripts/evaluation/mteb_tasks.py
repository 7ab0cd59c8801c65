"""Evaluation through mteb: any of its tasks, on a saved model folder, resumable task by task.

Finished tasks are kept as mteb's own JSON below a cache folder, subset by subset, and are not run again.
What is kept is found by the model's name and revision, and mteb gives every local model the same ones, so
that one model would be answered with another's scores. Here the name is the run's, and the revision is a hash
of every file of the folder and of the length at which texts are cut. The cache folder has a part per version
of mteb, and a task whose data has another revision is run anew.

mteb's JSON holds times and dates; the scores returned here do not.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from pathlib import Path
from typing import Any, Literal

import mteb
from mteb import ResultCache, TaskResult
from mteb.abstasks import AbsTask
from mteb.models import ModelMeta, SentenceTransformerEncoderWrapper
from pydantic import Field
from sentence_transformers import SentenceTransformer

from workflow_scripts.artefacts import RECORD_FILE
from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.scores import Score, gap
from workflow_scripts.provenance import sha256_of


class Lists(Slice):
    """Content of config/mteb.yaml."""

    lists: dict[str, dict[str, str]] = Field(
        description="Name of a list to task name in a paper to name in mteb."
    )
    not_in_this_mteb: dict[str, str] = Field(description="What a paper ran and the lists lack, and why.")


class Config(Slice):
    """One evaluation through mteb."""

    lists: list[str] = Field(min_length=1, description="Lists of config/mteb.yaml.")
    max_tokens: int = Field(gt=2, description="Longer texts are cut; [CLS] and [SEP] count.")
    batch_size: int = Field(gt=0, description="Texts per forward pass.")
    device: Literal["cpu", "cuda", "auto"]
    metrics: list[str] = Field(description="Kept beside main_score where a task has them, such as map_at_10.")
    missing_data: Literal["gap", "stop"] = Field(description="What a task without its data set means.")


def task_names(lists: Lists, chosen: Sequence[str]) -> list[str]:
    """Names in mteb of the tasks of the ``chosen`` lists, each once.

    Raises:
        ConfigError: if a list does not exist.
    """
    for name in chosen:
        if name not in lists.lists:
            raise ConfigError(
                f"mteb.lists: no list {name} in config/mteb.yaml; it has {', '.join(lists.lists)}."
            )
    return list(dict.fromkeys(task for name in chosen for task in lists.lists[name].values()))


def find_tasks(names: Iterable[str]) -> list[AbsTask]:
    """Look tasks up by mteb's names; needs no network.

    Raises:
        ConfigError: if this version of mteb has no task of that name.
    """
    tasks = []
    for name in names:
        try:
            tasks.append(mteb.get_task(name))
        except KeyError as error:
            found = f"mteb {mteb.__version__} has no task {name}"
            raise ConfigError(
                f"config/mteb.yaml: {found}. Correct the name, or say why under not_in_this_mteb."
            ) from error
    return tasks


def evaluate(
    folder: Path, tasks: Sequence[AbsTask], config: Config, *, run: str, cache_folder: Path
) -> list[Score]:
    """Run an encoder on tasks, skipping what is in the cache.

    Args:
        folder: A model folder that SentenceTransformer loads.
        tasks: Tasks of mteb, or classes of one's own with the same base.
        config: Lengths, batches, and what to keep.
        run: Name of the run, for mteb's files.
        cache_folder: Where mteb's JSON is kept between jobs; no rule's output.

    Returns:
        Per task the ``mean`` of main scores over splits and subsets, and for every split and subset
        (aggregation ``test:en``) the main score and the chosen metrics. ``n`` is mteb's count of samples,
        0 where it has none.

    Raises:
        DataError: if a data set cannot be had and ``missing_data`` is ``stop``.
    """
    encoder = _load(folder, config, run)
    cache = ResultCache(cache_folder / f"mteb-{mteb.__version__}")
    scores: list[Score] = []
    for task in tasks:
        result = _finished(task, encoder.mteb_model_meta, cache)
        if result is None:
            if reason := _load_data(task):
                if config.missing_data == "stop":
                    raise DataError(
                        f"mteb {task.metadata.name}: {reason}. Fetch it, or set mteb.missing_data to gap."
                    )
                scores.append(gap(task.metadata.name, reason))
                continue
            _run(task, encoder, cache, config.batch_size)
            result = _finished(task, encoder.mteb_model_meta, cache)
            assert result is not None
        scores += _scores(task, result, config.metrics)
    return scores


def revision(folder: Path, max_tokens: int) -> str:
    """Identity of what a model folder computes: a hash of its files (not of their record) and the cut."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != RECORD_FILE)
    content = {path.relative_to(folder).as_posix(): sha256_of(path) for path in files}
    text = json.dumps([content, max_tokens], sort_keys=True)
    return f"sha256-{hashlib.sha256(text.encode()).hexdigest()}"


def _load(folder: Path, config: Config, run: str) -> SentenceTransformerEncoderWrapper:
    model = SentenceTransformer(str(folder), device=None if config.device == "auto" else config.device)
    model.max_seq_length = config.max_tokens
    wrapper = SentenceTransformerEncoderWrapper(model)
    identity = {"name": f"local/{run}", "revision": revision(folder, config.max_tokens)}
    wrapper.mteb_model_meta = wrapper.mteb_model_meta.model_copy(update=identity)
    return wrapper


def _finished(task: AbsTask, meta: ModelMeta, cache: ResultCache) -> TaskResult | None:
    """The kept result, if it is whole and of the same data; a torn or stale file is removed."""
    path = cache.get_task_result_path(task.metadata.name, meta)
    if not path.exists():
        return None
    try:
        result = TaskResult.from_disk(path)
    except ValueError:  # a job was killed while mteb wrote it; JSON and pydantic errors are of this kind
        path.unlink()
        return None
    if result.dataset_revision != task.metadata.revision:
        path.unlink()
        return None
    return None if result.get_missing_evaluations(task) else result


def _load_data(task: AbsTask) -> str | None:
    """Load a task's data set; the reason in one line where it cannot be had."""
    try:
        task.load_data()
    except Exception as error:  # every data set has its own loader, and fails in its own way
        first_line = (str(error).splitlines() or [""])[0]
        return f"data set {task.metadata.dataset['path']}: {type(error).__name__}: {first_line}"
    return None


def _run(
    task: AbsTask, encoder: SentenceTransformerEncoderWrapper, cache: ResultCache, batch_size: int
) -> None:
    """Run a task into the cache; its scores are read from there, where mteb has rounded them."""
    mteb.evaluate(
        encoder,
        task,
        cache=cache,
        overwrite_strategy="only-missing",
        encode_kwargs={"batch_size": batch_size, "show_progress_bar": False},
        co2_tracker=False,
        show_progress_bar=False,
    )
    task.unload_data()


def _scores(task: AbsTask, result: TaskResult, metrics: Sequence[str]) -> list[Score]:
    name, note = result.task_name, f"mteb {result.mteb_version}, data {result.dataset_revision}"
    parts = [
        (split, subset["hf_subset"], subset)
        for split, subsets in sorted(result.scores.items())
        for subset in subsets
    ]
    scores = [
        _score(name, f"{split}:{subset}", metric, found[metric], _samples(task, split, subset), note)
        for split, subset, found in sorted(parts, key=lambda part: part[:2])
        for metric in dict.fromkeys(["main_score", *metrics])
        if metric in found
    ]
    n = sum(_samples(task, split, subset) for split, subset, _ in parts)
    return [_score(name, "mean", "main_score", result.get_score(), n, note), *scores]


def _score(task: str, aggregation: str, metric: str, value: Any, n: int, note: str) -> Score:
    number = float(value)
    if isfinite(number):
        return Score(task, aggregation, metric, number, n, note)
    return Score(task, aggregation, metric, None, 0, f"{note}; not a finite number")


def _samples(task: AbsTask, split: str, subset: str) -> int:
    """How many samples mteb says a split or subset has."""
    statistics: Mapping[str, Any] = (task.metadata.descriptive_stats or {}).get(split, {})
    by_subset = statistics.get("hf_subset_descriptive_stats") or {}
    return int(by_subset.get(subset, statistics).get("num_samples", 0))
