"""What each kind of suite writes into its files of scores and times: tasks, and their aggregations and metrics.

A column of a grid names all three, and a name that nobody writes would be noticed after all trainings. The
evaluators cannot be asked while the graph is built, since they import torch; a test holds these lists against what
each of them writes.
"""

from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from workflow_scripts.graph.findings import advice

Cells = frozenset[tuple[str, str]]
"""Aggregations, which may end in ``*``, with the metrics that each has."""


def _cells(aggregations: Iterable[str], metrics: Iterable[str]) -> Cells:
    return frozenset(product(aggregations, metrics))


STS = _cells(("all", "wmean", "mean", "subset:*"), ("spearman", "pearson"))
POSITIVES = _cells(("",), ("alignment", "uniformity"))
SAMPLE = _cells(("",), ("isoscore", "mean_modulus", "mean_cosine"))
CLUSTERING = _cells(("mean", "sd"), ("accuracy", "nmi", "v_measure"))
SEARCH = _cells(("flat", "ivf"), ("mrr@10", "recall@1", "recall@10", "index_bytes"))
TRANSFER = _cells(("",), ("accuracy", "dev_accuracy", "f1"))  # f1 of two classes of pairs alone
GRADED = _cells(("",), ("spearman", "pearson", "dev_pearson"))
COST = _cells(("", "base"), ("parameters", "gmac_linear", "gmac_total")) | {("", "added_parameters_percent")}
ATTENTION = _cells(("mean", "layer:*"), ("cls_energy",))
ANYTHING = _cells(("*",), ("*",))
"""Of a kind of suite that is not listed here, such as one that was just added."""
SEARCH_TIMES = _cells(("flat", "ivf"), ("retrieval_ms",))
LATENCIES = (
    "latency_ms",
    "sentences_per_second",
    "base_latency_ms",
    "latency_ratio",
    "added_latency_percent",
)


def written(kind: str, suite: Mapping[str, Any], mteb_lists: Mapping[str, Any]) -> dict[str, Cells]:
    """Tasks of a suite, and what its score files hold of each.

    Args:
        kind: Of the suite, such as ``sts``.
        suite: Its block in ``suites``.
        mteb_lists: Lists of mteb's tasks, by name.
    """
    match kind:
        case "geometry":
            return dict.fromkeys(suite["positives"], POSITIVES) | dict.fromkeys(suite["samples"], SAMPLE)
        case "transfer":
            return {task: GRADED if task in suite["graded"] else TRANSFER for task in suite["datasets"]}
        case "cost":
            return {"cost": COST}
        case "attention":
            return {suite["energy"]["dataset"]: ATTENTION}
        case "mteb":
            parts = _cells(("*:*",), ("main_score", *suite["metrics"]))  # split and subset
            tasks = [task for name in suite["lists"] for task in mteb_lists[name].values()]
            means = dict.fromkeys(suite["lists"], _cells(("mean",), suite["metrics"]))
            return dict.fromkeys(tasks, parts | {("mean", "main_score")}) | means
        case _:
            cells = {"sts": STS, "clustering": CLUSTERING, "search": SEARCH}.get(kind, ANYTHING)
            return dict.fromkeys(suite.get("datasets", ()), cells)


def timed(kind: str, suite: Mapping[str, Any]) -> dict[str, Cells]:
    """Tasks of a suite whose time is measured, and what its files of times hold of each."""
    if kind == "cost":
        return {"cost": _cells((f"batch:{size}" for size in suite["batch_sizes"]), LATENCIES)}
    return dict.fromkeys(suite["datasets"], SEARCH_TIMES) if kind == "search" else {}


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
