"""Kinds of suites, and whether columns name what they write: tasks, and their aggregations and metrics.

A column of a grid names all three, and a name that nobody writes would be noticed after all trainings.
"""

import importlib
from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from workflow_scripts.config import names_in
from workflow_scripts.errors import advice
from workflow_scripts.settings.suites import Cells, Suite, SuiteConfig

SUITES = "workflow_scripts.settings.suites"


def suite_class(kind: str) -> type[Suite]:
    """The class of suites of one kind."""
    found: type[Suite] = importlib.import_module(f"{SUITES}.{kind}").Config
    return found


def kinds() -> dict[str, type[Suite]]:
    """Kinds of suites, with their classes."""
    return {kind: suite_class(kind) for kind in names_in(SUITES)}


def evaluators() -> list[str]:
    """Kinds of suites that score vectors (``evaluation.base``)."""
    return [kind for kind, found in kinds().items() if issubclass(found, SuiteConfig)]


def column_findings(
    column: Mapping[str, Any], scores: Mapping[str, Cells], times: Mapping[str, Cells], place: str
) -> Iterator[str]:
    """What a column asks of its suite that no file of scores holds, or of times if the column is measured."""
    suite, task, aggregation, metric = (column[key] for key in ("suite", "task", "aggregation", "metric"))
    measured = column.get("measured", False)
    tasks, others = (times, scores) if measured else (scores, times)
    if metric in {name for _, name in others.get(task, ())}:
        what = "no time" if measured else "a time"
        yield f"{place}.measured: {metric} of suite {suite} is {what}. Write measured: {str(not measured).lower()}."
        return
    if task not in tasks:
        yield f"{place}.task: {task} is no task of suite {suite}. {advice(task, sorted(tasks))}"
        return
    metrics = sorted({name for _, name in tasks[task]})
    if not any(fnmatchcase(metric, name) for name in metrics):
        yield f"{place}.metric: suite {suite} writes no {metric} of {task}. {advice(metric, metrics)}"
        return
    asked = sorted(pattern for pattern, name in tasks[task] if fnmatchcase(metric, name))
    if not any(fnmatchcase(aggregation, pattern) for pattern in asked):
        known = ", ".join(f'"{pattern}"' for pattern in asked)
        yield f'{place}.aggregation: suite {suite} has no "{aggregation}" of {metric}. Known: {known}.'
