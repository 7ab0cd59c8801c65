"""Estimate what a study would take, without running it: jobs, GPU hours, disk and requests; and what it would read.

Jobs come from Snakemake's own plan, as if no file existed yet. GPU hours and storage are the product of these jobs and
the numbers in config/rates.yaml, which says whether each was measured, published or assumed; what nobody knows is
unknown, and counted as such. Memory and hours are the most that a job of the row asks a queue for. Without a target,
everything that the configuration asks for is planned; targets are those of snakemake: a paper (jtcse), a table
(results/paper/tables/jtcse_table1.parquet), the scores behind a cell. What requests cost follows from the prices and
rates of config/apis.yaml.

  python -m workflow_scripts plan jtcse
"""

import argparse
import os
import re
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.audit.printing import Answer, Row, Rows
from workflow_scripts.planning.estimates import Estimator, Requests, by
from workflow_scripts.planning.graph import Job, add_targets, planned
from workflow_scripts.planning.rates import read_rates
from workflow_scripts.provenance.closure import ROOT


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what plan takes."""
    add_targets(parser)


def answer(args: argparse.Namespace) -> Answer:
    """Estimates by rule and by service."""
    graph = planned(args.targets, args.configfile)
    estimator = Estimator(graph, read_rates(ROOT / "config/rates.yaml"))
    total = row_of(graph.jobs, estimator)
    said = f"{total['jobs']} jobs, {total['trainings']} of them trainings; numbers rest on config/rates.yaml"
    parts: list[Rows] = [
        Rows("by rule", [*by_rule(graph.jobs, estimator), {"rule": "all", **total}]),
        Rows("requests", requests(graph.jobs, estimator)),
        Rows("read from", read_from(graph.jobs)),
    ]
    return Answer(said, parts=parts)


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
        "h at most": max((job.queued.get("runtime", 0) for job in jobs), default=0) / 60,
    }


def by_rule(jobs: Iterable[Job], estimator: Estimator) -> list[Row]:
    """A row for each rule, the most frequent first."""
    groups: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        groups[job.rule].append(job)
    ordered = sorted(groups.items(), key=lambda item: (-len(item[1]), item[0]))
    return [{"rule": rule, **row_of(found, estimator)} for rule, found in ordered]


def requests(jobs: Iterable[Job], estimator: Estimator) -> list[Row]:
    """Requests by service, whose rate and daily budget all jobs share."""
    found: dict[str, list[Requests]] = defaultdict(list)
    for job in jobs:
        if one := estimator.requests(job):
            found[one.service].append(one)
    return [
        {
            "service": service,
            "jobs": len(each),
            "least": added(one.least for one in each),
            "most": added(one.most for one in each),
        }
        for service, each in sorted(found.items())
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
