"""A planned study as tables of plain values: by rule, by experiment, storage, requests, and their assumptions."""

from collections import defaultdict
from collections.abc import Iterable
from typing import Any

from workflow_scripts.graph.inert import inert_settings
from workflow_scripts.graph.runs import paper_of
from workflow_scripts.graph.study import Study
from workflow_scripts.planning.estimates import Amount, Calls, Estimator, by, total
from workflow_scripts.planning.graph import Graph, Job
from workflow_scripts.planning.rates import BASES, Rate, Rates

Row = dict[str, Any]


def summary(graph: Graph, estimator: Estimator, rates: Rates) -> dict[str, list[Row]]:
    """All tables; an unknown number is None."""
    return {
        "rules": by_rule(graph.jobs, estimator),
        "experiments": by_experiment(graph, estimator),
        "storage": storage(graph.jobs, estimator),
        "requests": requests(graph.jobs, estimator),
        "rests_on": rests_on(rates),
    }


def about_runs(graph: Graph, study: Study) -> dict[str, list[Row]]:
    """What the settings of the planned runs say: which are the same, and which change nothing."""
    return {"merged": merged(graph, study), "no_effect": no_effect(graph, study)}


def merged(graph: Graph, study: Study) -> list[Row]:
    """Planned runs whose files serve other runs too, and the trainings that this saves."""
    others: dict[str, list[str]] = defaultdict(list)
    for alias, run in study.aliases(study.runs).items():
        others[run].append(alias)
    return [
        {"run": run, "stands_for": names, "trainings_saved": _saved(study, run, names)}
        for run, names in others.items()
        if run in _planned_runs(graph)
    ]


def _saved(study: Study, run: str, others: Iterable[str]) -> int:
    seeds = [study.runs[name].seeds for name in (run, *others)]
    return sum(map(len, seeds)) - len(set().union(*seeds)) if run in study.trained else 0


def no_effect(graph: Graph, study: Study) -> list[Row]:
    """Settings of planned runs that have no effect given the others, and why."""
    runs: dict[tuple[str, str], list[str]] = defaultdict(list)
    planned = _planned_runs(graph)
    for run in study.runs:
        if study.canonical(run) in planned:
            for finding in inert_settings(study.method(run)):
                runs[finding].append(run)
    return [
        {"setting": setting, "because": because, "runs": found} for (setting, because), found in runs.items()
    ]


def _planned_runs(graph: Graph) -> set[str]:
    return {job.wildcards["run"] for job in graph.jobs if "run" in job.wildcards}


def by_rule(jobs: Iterable[Job], estimator: Estimator) -> list[Row]:
    """Jobs, GPU hours and the time limits of the rules, the most frequent rule first."""
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[job.rule].append(job)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"rule": rule} | _work(found, estimator) for rule, found in ordered]


def by_experiment(graph: Graph, estimator: Estimator) -> list[Row]:
    """What each paper and each of its experiments would take on its own; the last row counts every job once."""
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
        "trainings": sum(job.trainings for job in jobs),
        "gpu_hours": known(hours),
        "gpu_jobs_unknown": hours.unknown,
        "gpu_hours_limit": sum(map(estimator.gpu_limit, jobs)),
        "cpu_job_hours_limit": sum(job.minutes / 60 for job in jobs if not job.gpus),
        "basis": sorted(hours.bases),
    }


def storage(jobs: Iterable[Job], estimator: Estimator) -> list[Row]:
    """Gigabytes by rule, the largest first; the last row is the sum of the known ones."""
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
    """Requests, dollars, days and space by service, whose rate and daily budget all jobs share."""
    found: dict[str, list[Calls]] = defaultdict(list)
    for job in jobs:
        if calls := estimator.calls(job):
            found[calls.service].append(calls)
    return [
        {
            "service": service,
            "jobs": len(calls),
            "requests_least": _added(one.least for one in calls),
            "requests_most": _added(one.most for one in calls),
            "usd_least": _added(one.least_usd for one in calls),
            "usd_most": _added(one.most_usd for one in calls),
            "days": _added(one.days for one in calls),
            "ledger_gigabytes": _added(one.gigabytes for one in calls),
        }
        for service, calls in sorted(found.items())
    ]


def _added(numbers: Iterable[float | None]) -> float | None:
    """The sum; None if one of the numbers is unknown."""
    listed = list(numbers)
    return None if None in listed else sum(number for number in listed if number is not None)


def known(amount: Amount) -> float | None:
    """The sum of the known contributions; None if there are only unknown ones."""
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
