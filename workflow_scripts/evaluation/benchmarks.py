"""The tasks of mteb's benchmarks, from mteb's registry. Needs no network, and imports no PyTorch."""

from collections.abc import Collection, Sequence
from copy import copy
from statistics import fmean

import mteb
from mteb.abstasks import AbsTask

from workflow_scripts.errors import ConfigError, advice, refuse, unknown
from workflow_scripts.settings.suites import MtebSelection as Selection


def select(chosen: Selection, place: str) -> list[AbsTask]:
    """The selected tasks of a benchmark, with its splits and subsets, in its order.

    Args:
        chosen: Names a benchmark, and the selected part.
        place: Block of the configuration, for messages.

    Raises:
        ConfigError: with a line for each name that this version of mteb does not know, or if no task is left.
    """
    tasks = _tasks_of(chosen, place)
    known: dict[str, set[str]] = {
        "task_types": {task.metadata.type for task in tasks},
        "tasks": {task.metadata.name for task in tasks},
        "languages": {language for task in tasks for language in task.languages},
    }
    wanted: dict[str, Collection[str]] = {key: getattr(chosen, key) or names for key, names in known.items()}
    refuse(
        line
        for key, names in wanted.items()
        for name in names
        for line in unknown(name, known[key], f"{place}.{key}")
    )
    kept = [
        task
        for task in (_restricted(task, chosen.languages) for task in tasks)
        if task.metadata.type in wanted["task_types"]
        and task.metadata.name in wanted["tasks"]
        and task.hf_subsets
    ]
    if not kept:
        problem = f"no task of {chosen.benchmark} is of these types, names and languages at once"
        raise ConfigError(f"{place}: {problem}. Remove some of them.")
    return kept


def part_label(chosen: Selection, tasks: Collection[AbsTask]) -> str | None:
    """The label of a partial benchmark; None for a complete one."""
    if not (chosen.task_types or chosen.tasks or chosen.languages):
        return None
    alone = f" and texts in {', '.join(chosen.languages)} alone" if chosen.languages else ""
    return f"{len(tasks)} of its {len(_tasks_of(chosen, ''))} tasks{alone} stand in for {chosen.benchmark}"


def published(models: Sequence[str], parts: Collection[tuple[str, str, str]]) -> dict[tuple[str, str], float]:
    """Published main scores by model and task, each the mean over the given splits and subsets.

    Args:
        models: Their names in mteb.
        parts: Triples of task, split and subset.

    Returns:
        Published results in mteb's cache on this machine (MTEB_CACHE); empty if there are none.
    """
    cache, scores = mteb.ResultCache(), dict[tuple[str, str], float]()
    tasks = sorted({task for task, _, _ in parts})
    if not (tasks and cache.has_remote):
        return {}
    known = cache.load_results(models=models, tasks=tasks, require_model_meta=False).join_revisions()
    for model in known.model_results:
        for result in model.task_results:
            values = {
                (result.task_name, split, subset["hf_subset"]): float(subset["main_score"])
                for split, subsets in result.scores.items()
                for subset in subsets
            }
            own = [part for part in parts if part[0] == result.task_name]
            if values.keys() >= {*own}:
                scores[model.model_name, result.task_name] = fmean(values[part] for part in own)
    return scores


def _tasks_of(chosen: Selection, place: str) -> list[AbsTask]:
    name = str(chosen.benchmark)
    try:
        return list(mteb.get_benchmark(name).tasks)
    except KeyError as error:
        known = advice(name, [benchmark.name for benchmark in mteb.get_benchmarks()])
        problem = f"{place}.benchmark: mteb {mteb.__version__} has no benchmark {name}"
        raise ConfigError(f"{problem}. {known}") from error


def _restricted(task: AbsTask, languages: Collection[str] | None) -> AbsTask:
    """A task restricted to subsets with texts in these languages only: for English, en but not en-de."""
    if not languages:
        return task
    filtered = copy(task)  # mteb's registry shares the task
    filtered.hf_subsets = [
        subset
        for subset in task.hf_subsets
        if {script.partition("-")[0] for script in task.metadata.hf_subsets_to_langscripts[subset]}
        <= {*languages}
    ]
    return filtered
