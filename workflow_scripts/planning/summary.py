"""A planned study as tables of plain values: by rule, by experiment, storage, requests, and what they rest on."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from workflow_scripts.dag import paper_of
from workflow_scripts.planning.estimates import Amount, Calls, Estimator, by, total
from workflow_scripts.planning.graph import Graph, Job
from workflow_scripts.planning.rates import BASES, Rate, Rates

Row = dict[str, Any]


def summary(graph: Graph, estimator: Estimator, rates: Rates) -> dict[str, list[Row]]:
    """All tables. A number that nobody knows is None."""
    return {
        "rules": by_rule(graph.jobs, estimator),
        "experiments": by_experiment(graph, estimator),
        "storage": storage(graph.jobs, estimator),
        "requests": requests(graph.jobs, estimator),
        "rests_on": rests_on(rates),
    }


def by_rule(jobs: Iterable[Job], estimator: Estimator) -> list[Row]:
    """Jobs, GPU hours and the rules' own limits, the most frequent rule first."""
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[job.rule].append(job)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"rule": rule} | _work(found, estimator) for rule, found in ordered]


def by_experiment(graph: Graph, estimator: Estimator) -> list[Row]:
    """What each paper and each of its experiments would take alone; the last row counts every job once."""
    parts = graph.parts()
    papers: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        papers[paper_of(part)].append(part)
    rows: list[Row] = []
    for paper, names in papers.items():
        together = {id(job): job for name in names for job in parts[name]}
        rows.append({"paper": paper, "experiment": None} | _work(list(together.values()), estimator))
        if names != [paper]:
            for name in names:
                rows.append({"paper": paper, "experiment": name} | _work(parts[name], estimator))
    return [*rows, {"paper": None, "experiment": None} | _work(graph.jobs, estimator)]


def _work(jobs: list[Job], estimator: Estimator) -> Row:
    hours = by(jobs, estimator.gpu_hours)
    return {
        "jobs": len(jobs),
        "trainings": sum(job.rule == "train_encoder" for job in jobs),
        "gpu_hours": known(hours),
        "gpu_jobs_unknown": hours.unknown,
        "gpu_hours_limit": sum(map(estimator.gpu_limit, jobs)),
        "cpu_job_hours_limit": sum(job.minutes / 60 for job in jobs if not job.gpus),
        "basis": sorted(hours.bases),
    }


def storage(jobs: Iterable[Job], estimator: Estimator) -> list[Row]:
    """Gigabytes by rule, the largest first; the last row is the sum of what is known."""
    amounts: dict[str, Amount] = defaultdict(Amount)
    for job in jobs:
        amounts[job.rule] += estimator.gigabytes(job)
    ordered = sorted(amounts.items(), key=lambda item: -item[1].value)
    every = total(amounts.values())
    return [
        {
            "rule": rule,
            "jobs": one.jobs,
            "gigabytes": known(one),
            "jobs_unknown": one.unknown,
            "basis": sorted(one.bases),
        }
        for rule, one in [*ordered, ("all", every)]
    ]


def requests(jobs: Iterable[Job], estimator: Estimator) -> list[Row]:
    """Requests and dollars by service; hours are those of one job after the other."""
    found: dict[str, list[Calls]] = defaultdict(list)
    for job in jobs:
        if calls := estimator.calls(job):
            found[calls.service].append(calls)
    return [
        {
            "service": service,
            "jobs": len(calls),
            "requests_least": sum(one.least for one in calls),
            "requests_most": sum(one.most for one in calls),
            "usd_least": _added(one.least_usd for one in calls),
            "usd_most": _added(one.most_usd for one in calls),
            "hours_one_by_one": _added(one.hours for one in calls),
        }
        for service, calls in sorted(found.items())
    ]


def _added(numbers: Iterable[float | None]) -> float | None:
    """The sum; None if one of them is not known."""
    listed = list(numbers)
    return None if None in listed else sum(number for number in listed if number is not None)


def known(amount: Amount) -> float | None:
    """The sum of what is known; None where jobs have a share and nobody knows any."""
    return None if amount.unknown and not amount.jobs else amount.value


def rests_on(rates: Rates) -> list[Row]:
    """Every number of config/rates.yaml with its origin, assumptions first."""
    rows: list[Row] = []
    for name, value in rates:
        entries = value.items() if isinstance(value, dict) else [(None, value)]
        for key, rate in entries:
            if isinstance(rate, Rate):
                shown = f"{name}.{key}" if key else name
                rows.append(
                    {"number": shown, "value": rate.value, "basis": rate.basis, "source": rate.source}
                )
    return sorted(rows, key=lambda row: (BASES.index(row["basis"]), row["number"]))
