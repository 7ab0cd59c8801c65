"""Estimate what a study would take, without running it: jobs, GPU hours, disk and requests; and what it would read.

Jobs come from Snakemake's own plan, as if no file existed yet. GPU hours, storage and prices are the product of these
jobs and the numbers in config/rates.yaml, which says whether each was measured, published or assumed; what nobody knows
is unknown, and counted as such. Memory and hours are the most that a job of the row asks a queue for. Without a target,
everything that the configuration asks for is planned; targets are those of snakemake: a paper (jtcse), a table
(results/paper/tables/jtcse_table1.parquet), the scores behind a cell.

  python -m workflow_scripts plan jtcse
"""

import argparse
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.audit.printing import Answer, Row, Rows
from workflow_scripts.graph.runs import paper_of
from workflow_scripts.planning.estimates import Calls, Estimator, by
from workflow_scripts.planning.graph import SHARED, Graph, Job, add_targets, planned
from workflow_scripts.planning.rates import read_rates
from workflow_scripts.provenance.closure import ROOT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what plan takes."""
    add_targets(parser)
    parser.add_argument(
        "--rates", type=Path, default=ROOT / "config/rates.yaml", help="numbers to multiply by"
    )


def answer(args: argparse.Namespace) -> Answer:
    """Estimates by rule, by experiment and by service."""
    rates = read_rates(args.rates)
    graph = planned(args.targets, args.configfile)
    estimator = Estimator(graph, rates, ROOT)
    total = row_of(graph.jobs, estimator)
    said = f"{total['jobs']} jobs, {total['trainings']} of them trainings; numbers rest on {args.rates}"
    parts: list[Rows | str] = [
        Rows("by rule", by_rule(graph.jobs, estimator)),
        Rows("by experiment", by_part(graph, estimator)),
        "Each row alone: shared jobs count in several, and the last row counts each once.",
        Rows("requests", requests(graph.jobs, estimator)),
        Rows("read from", read_from(graph.jobs)),
    ]
    return Answer(said, parts=parts, data={"all": total})


def row_of(jobs: list[Job], estimator: Estimator) -> Row:
    """What some jobs would take together; an unknown number is None."""
    hours, gigabytes = (by(jobs, amount) for amount in (estimator.gpu_hours, estimator.gigabytes))
    return {
        "jobs": len(jobs),
        "trainings": sum(job.rule == "train_encoder" for job in jobs),
        "GPU h": hours.value,
        "unknown": hours.unknown,
        "disk, GB": gigabytes.value,
        "unknown GB": gigabytes.unknown,
        "memory, GB": max((float(job.queued.get("mem_mb", 0)) for job in jobs), default=0) / 1000,
        "h at most": max((job.minutes for job in jobs), default=0) / 60,
    }


def by_rule(jobs: Iterable[Job], estimator: Estimator) -> list[Row]:
    """A row for each rule, the most frequent first."""
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[job.rule].append(job)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"rule": rule, **row_of(found, estimator)} for rule, found in ordered]


def by_part(graph: Graph, estimator: Estimator) -> list[Row]:
    """What each paper and each of its experiments would take on its own, and everything together."""
    parts = graph.parts()
    papers: dict[str, list[str]] = defaultdict(list)
    for part in parts:
        papers[paper_of(part)].append(part)
    rows = []
    for paper, names in papers.items():
        together = {id(job): job for name in names for job in parts[name]}
        shown = "the page, and what no experiment needs" if paper == SHARED else paper
        rows.append({"of": shown, **row_of(list(together.values()), estimator)})
        rows += [{"of": f"  {name}", **row_of(parts[name], estimator)} for name in names if names != [paper]]
    return [*rows, {"of": "all", **row_of(graph.jobs, estimator)}]


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
            "least": added(one.least for one in calls),
            "most": added(one.most for one in calls),
            "USD, least": added(one.least_usd for one in calls),
            "USD, most": added(one.most_usd for one in calls),
            "days, at its limits": added(one.days for one in calls),
            "ledger, GB": added(one.gigabytes for one in calls),
        }
        for service, calls in sorted(found.items())
    ]


def read_from(jobs: Iterable[Job]) -> list[Row]:
    """What every dataset and encoder would be read from now: files, or repositories at commits."""
    read = [job for job in jobs if job.rule in ("fetch_encoder", "read_dataset", "read_word_vectors")]
    rows = [{"of": " ".join(job.wildcards.values()), "read from": _places(job)} for job in read]
    return sorted(rows, key=lambda row: row["of"])


def _places(job: Job) -> str:
    """Names of a job's source, without hashes; of an encoder's files, their folder."""
    files = re.sub(r" sha256:\w+", "", job.settings["source"]).split("; ")
    if len(files) > 1 and job.rule == "fetch_encoder":
        files = [str(Path(files[0]).parent)]
    return ", ".join(files).replace("local:", f"{os.environ.get('SEMBLANCE_DATA')}/")


def added(numbers: Iterable[float | None]) -> float | None:
    """The sum; None if one of the numbers is unknown."""
    listed = list(numbers)
    return None if None in listed else sum(number for number in listed if number is not None)
