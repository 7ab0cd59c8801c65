"""Ask SLURM whether it would accept a study's jobs, by one ``sbatch --test-only`` for each distinct request.

Nothing is submitted. docs/cluster_details.md says what such a test cannot see.
"""

import contextlib
import io
import shlex
import subprocess
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from heapq import nlargest
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.config import Settings
from workflow_scripts.graph.configuration import read_yaml
from workflow_scripts.verbs.plan import PlannedJob

SECONDS = 10
"""Longest wait for an answer of SLURM's controller."""
_LOCAL = {"downloads", "api_calls"}
"""Resources of jobs that need a network and run where Snakemake runs."""
_SUMMED = ("_cores", "mem_mb", "gpu")
_OPTIONS = {
    "slurm_account": "--account",
    "slurm_partition": "--partition",
    "runtime": "--time",
    "mem_mb": "--mem",
    "_cores": "--cpus-per-task",
    "gpu": "--gpus",
    "gres": "--gres",
    "nodes": "--nodes",
    "constraint": "--constraint",
    "qos": "--qos",
}
_REMEDY = "Change what it asks for in set-resources of slurm/config.yaml, or its partition in slurm/partitions.yaml."


class _Partitions(Settings):
    """The file in which a site names its partitions."""

    partitions: dict[str, dict[str, Any]]


class Site(NamedTuple):
    """The settings of a profile that decide what a queue is asked for."""

    groups: Mapping[str, str]
    """Rule to the group that its jobs are queued in."""
    components: Mapping[str, int]
    """Group to the number of jobs that are queued as one."""
    partitions: list[str]


def site_of(profile: str) -> Site | None:
    """Read a profile as Snakemake does; None if its executor is not SLURM.

    Raises:
        ConfigError: if the file of partitions cannot be read.
    """
    from snakemake.cli import parse_args  # slow to import

    with contextlib.redirect_stderr(io.StringIO()):  # it names the profiles that it reads
        _parser, given = parse_args(["--profile", profile])
    if given.executor != "slurm":
        return None
    file = given.slurm_partition_config
    partitions = _Partitions.parse(read_yaml(Path(file)), str(file)).partitions if file else {}
    return Site(given.groups or {}, given.group_components or {}, [*partitions])


def requests_of(jobs: Iterable[PlannedJob], site: Site) -> dict[tuple[str, ...], set[str]]:
    """The distinct options of sbatch, and the rules and groups that need each.

    A group asks for the sum of its largest jobs, which may meet.
    """
    found: dict[tuple[str, ...], set[str]] = defaultdict(set)
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for job in jobs:
        if group := site.groups.get(job.rule):
            grouped[group].append(job.queued)
        elif not _LOCAL & job.queued.keys():
            found[_options(job.queued, site)].add(f"rule {job.rule}")
    for group, members in grouped.items():
        largest = {
            name: sum(nlargest(site.components.get(group, 1), (one.get(name, 0) for one in members)))
            for name in _SUMMED
        }
        longest = max(one.get("runtime", 0) for one in members)
        found[_options({**members[0], **largest, "runtime": longest}, site)].add(f"group {group}")
    return dict(found)


def _options(asked: Mapping[str, Any], site: Site) -> tuple[str, ...]:
    """Options for one request; without a partition of its own, any of the site's may take it."""
    named = {"slurm_partition": ",".join(site.partitions), **asked}
    if model := asked.get("gpu_model"):
        named["gpu"] = f"{model}:{asked.get('gpu', 1)}"
    words = [f"{option}={named[name]}" for name, option in _OPTIONS.items() if named.get(name)]
    return (*words, *shlex.split(asked.get("slurm_extra", "")))


def answers(requests: Mapping[tuple[str, ...], Iterable[str]]) -> Iterator[tuple[bool, str]]:
    """For each request, whether sbatch accepts it, and its words; none after SLURM has failed to answer."""
    for options, places in requests.items():
        command = ["sbatch", "--test-only", *options, "--wrap=true"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
        except FileNotFoundError:
            yield False, "SLURM: no sbatch on the PATH. Run this on a login node, or without --profile slurm."
            return
        except subprocess.TimeoutExpired:
            yield False, f"SLURM: sbatch did not answer within {SECONDS} s. Wait until slurmctld is up."
            return
        said = " ".join((done.stderr or done.stdout).split()).removeprefix("sbatch: ").rstrip(".")
        line = f"{', '.join(sorted(places))}: sbatch {shlex.join(options)}: {said}"
        yield (False, f"{line}. {_REMEDY}") if done.returncode else (True, line)
