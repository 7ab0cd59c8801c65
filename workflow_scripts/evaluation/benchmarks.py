"""The tasks of mteb's benchmarks, as mteb's registry names them. Takes no network, and imports no PyTorch."""

from collections.abc import Collection, Sequence
from copy import copy
from statistics import fmean

import mteb
from mteb.abstasks import AbsTask

from workflow_scripts.errors import ConfigError, advice, refuse, unknown
from workflow_scripts.settings.suites import MtebSelection as Selection


def select(chosen: Selection, place: str) -> list[AbsTask]:
    """The tasks of a benchmark, with the splits and subsets that it evaluates, in its order.

    Args:
        chosen: Names a benchmark, and the part of it that is asked for.
        place: Where the configuration says so.

    Raises:
        ConfigError: with a line for each name that is not known to this version of mteb, or that nothing is left.
    """
    tasks = _tasks_of(chosen, place)
    known: dict[str, set[str]] = {
        "task_types": {task.metadata.type for task in tasks},
        "tasks": {task.metadata.name for task in tasks},
        "languages": {language for task in tasks for language in task.languages},
    }
    asked: dict[str, Collection[str]] = {key: getattr(chosen, key) or names for key, names in known.items()}
    refuse(
        line
        for key, names in asked.items()
        for name in names
        for line in unknown(name, known[key], f"{place}.{key}")
    )
    kept = [
        task
        for task in (_in(chosen.languages, task) for task in tasks)
        if task.metadata.type in asked["task_types"]
        and task.metadata.name in asked["tasks"]
        and task.hf_subsets
    ]
    if not kept:
        found = f"no task of {chosen.benchmark} is of these types, names and languages at once"
        raise ConfigError(f"{place}: {found}. Name fewer.")
    return kept


def part_label(chosen: Selection, tasks: Collection[AbsTask]) -> str | None:
    """The substitution to print where less than a whole benchmark was asked for."""
    if not (chosen.task_types or chosen.tasks or chosen.languages):
        return None
    alone = f" and texts in {', '.join(chosen.languages)} alone" if chosen.languages else ""
    return f"{len(tasks)} of its {len(_tasks_of(chosen, ''))} tasks{alone} stand in for {chosen.benchmark}"


def published(models: Sequence[str], parts: Collection[tuple[str, str, str]]) -> dict[tuple[str, str], float]:
    """Main scores by model and task, each the mean over the splits and subsets that ours is taken over.

    Args:
        models: Their names in mteb.
        parts: Tasks, each with a split and a subset.

    Returns:
        What mteb's cache has of its published results (MTEB_CACHE); nothing where they are not on this machine.
    """
    cache, found = mteb.ResultCache(), dict[tuple[str, str], float]()
    tasks = sorted({task for task, _, _ in parts})
    if not (tasks and cache.has_remote):
        return {}
    known = cache.load_results(models=models, tasks=tasks, require_model_meta=False).join_revisions()
    for model in known.model_results:
        for result in model.task_results:
            values = {
                (result.task_name, split, score["hf_subset"]): float(score["main_score"])
                for split, scores in result.scores.items()
                for score in scores
            }
            asked = [part for part in parts if part[0] == result.task_name]
            if values.keys() >= {*asked}:
                found[model.model_name, result.task_name] = fmean(values[part] for part in asked)
    return found


def _tasks_of(chosen: Selection, place: str) -> list[AbsTask]:
    name = str(chosen.benchmark)
    try:
        return list(mteb.get_benchmark(name).tasks)
    except KeyError as error:
        found = f"{place}.benchmark: mteb {mteb.__version__} has no benchmark {name}"
        raise ConfigError(f"{found}. {advice(name, [one.name for one in mteb.get_benchmarks()])}") from error


def _in(languages: Collection[str] | None, task: AbsTask) -> AbsTask:
    """A task cut to the subsets whose texts are all in these languages: for English, en but not en-de."""
    if not languages:
        return task
    filtered = copy(task)  # mteb's registry holds the task itself
    filtered.hf_subsets = [
        subset
        for subset in task.hf_subsets
        if {script.partition("-")[0] for script in task.metadata.hf_subsets_to_langscripts[subset]}
        <= {*languages}
    ]
    return filtered
