"""Whether a SLURM cluster would run the jobs of a study: asked once, for seconds, before anything is submitted.

The executor plugin (2.8.0) meets an unknown account or a missing command in a thread that nobody listens to, and
Snakemake then waits for ever. And a job that asks for more than its partition has stays in the queue for ever.
"""

import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from getpass import getuser
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from workflow_scripts.errors import one_line_errors
from workflow_scripts.graph.findings import refuse

SECONDS = 10
"""That a command may take; a slurmctld or slurmdbd that is down costs minutes otherwise."""
PLUGIN_CALLS = ("sbatch", "squeue", "scancel", "sinfo", "scontrol", "sacct", "sacctmgr")
"""Commands without which the executor plugin hangs or fails; Debian and most sites install them together."""
PARTITIONS = "slurm/partitions.yaml"
"""Where a site names its partitions."""
LISTING = ("sinfo", "--noheader", "--format=%P|%l|%G|%c|%m|%a")
"""What ``nodes_in`` reads."""
_POLLS = 3
"""Times the seconds between polls that the plugin wants a finished job to be remembered."""


class Request(NamedTuple):
    """What a job asks of the queue."""

    rule: str
    gpus: int = 0
    minutes: int = 0
    memory_mb: int = 0
    cores: int = 1
    partition: str = ""
    """Empty where the partition file or the cluster's default decides."""
    account: str = ""


class Nodes(NamedTuple):
    """Nodes of one kind in one partition, as sinfo lists them."""

    partition: str
    default: bool
    minutes: float
    gpus: int
    cores: int
    memory_mb: int


class Settings(NamedTuple):
    """What the profile says to the plugin."""

    partition_file: Path | None
    status_command: str | None
    seconds_between_polls: int = 40


Asked = Callable[..., tuple[int, str]]
"""Runs a command; its exit code and what it printed."""


def ask(*command: str) -> tuple[int, str]:
    """Run a command for some seconds; one that does not answer ends with code 124."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return 124, f"no answer within {SECONDS} s"
    except OSError as error:
        return 127, str(error)
    return done.returncode, (done.stdout if done.returncode == 0 else _last_line(done.stderr or done.stdout))


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or [""])[-1]


def check_queue(workflow: Any) -> None:
    """Check the queue for the jobs that are to run, if they go to one.

    Ends the process with a line for each thing that would keep them from running.

    Args:
        workflow: Snakemake's, once it knows its jobs and its executor.
    """
    settings = workflow.executor_settings
    if type(settings).__module__ != "snakemake_executor_plugin_slurm":
        return
    jobs = [job for job in workflow.dag.needrun_jobs() if not job.is_local]
    if not jobs:
        return
    requests = [request_of(job.rule.name, dict(job.resources.items())) for job in jobs]
    file = settings.partition_config
    said = Settings(file, settings.status_command, settings.init_seconds_before_status_checks)
    with one_line_errors():
        refuse(queue_findings(requests, said))


def request_of(rule: str, resources: Mapping[str, Any]) -> Request:
    """A job's resources, as Snakemake names them, as far as they are known before it runs."""

    def number(name: str) -> int:
        value = resources.get(name, 0)
        return value if isinstance(value, int) else 0

    in_gres = re.search(r"gpu(?::\w+)?:(\d+)", str(resources.get("gres", "")))
    return Request(
        rule,
        gpus=number("gpu") or (int(in_gres[1]) if in_gres else 0),
        minutes=number("runtime"),
        memory_mb=number("mem_mb"),
        cores=number("_cores"),
        partition=str(resources.get("slurm_partition", "")),
        account=str(resources.get("slurm_account", "")),
    )


def queue_findings(
    requests: Iterable[Request],
    settings: Settings,
    ask: Asked = ask,
    which: Callable[[str], object] = shutil.which,
) -> Iterator[str]:
    """What would keep jobs from running, a line each; nothing more is asked where SLURM itself is missing.

    Args:
        requests: Of all jobs that go to the queue.
        settings: The profile's.
        ask: Runs a command.
        which: Finds a command.
    """
    if missing := [name for name in PLUGIN_CALLS if not which(name)]:
        advice = (
            "Run it on a login node of the cluster (some want: module load slurm), or without --profile slurm"
        )
        yield f"SLURM: no {', '.join(missing)} on the PATH. {advice}."
        return
    code, listed = ask(*LISTING)
    if code:
        yield f"SLURM: sinfo: {listed or f'exit code {code}'}. Wait until slurmctld is up; its administrators know."
        return
    nodes = list(nodes_in(listed))
    distinct = list(dict.fromkeys(requests))
    yield from _account_findings(sorted({one.account for one in distinct if one.account}), ask)
    yield from _status_findings(settings, ask)
    yield from _partition_findings(distinct, nodes, settings.partition_file)


def nodes_in(listed: str) -> Iterator[Nodes]:
    """Read what sinfo lists: partition (the default one with an asterisk), limit, GRES, cores, MB, up or down."""
    for line in listed.splitlines():
        partition, limit, gres, cores, memory, state = (part.strip() for part in line.split("|"))
        if state == "up":
            gpus = sum(int(count) for count in re.findall(r"gpu(?::[^:,(]+)?:(\d+)", gres))
            name, default = partition.rstrip("*"), partition.endswith("*")
            yield Nodes(
                name, default, minutes_of(limit), gpus, int(cores.rstrip("+")), int(memory.rstrip("+"))
            )


def minutes_of(limit: str) -> float:
    """Minutes of a limit such as 30:00, 8:00:00, 1-00:00:00 or infinite."""
    if limit in ("infinite", "UNLIMITED", "n/a"):
        return float("inf")
    days, _, clock = limit.rpartition("-")
    hours, minutes, seconds = [0, 0, 0, *map(int, clock.split(":"))][-3:]
    return int(days or 0) * 24 * 60 + hours * 60 + minutes + seconds / 60


def _account_findings(accounts: Sequence[str], ask: Asked) -> Iterator[str]:
    """Accounts that accounting does not know; the plugin asks for this user's, too."""
    if not accounts:
        return
    code, listed = ask("sacctmgr", "-n", "-s", "list", "user", getuser(), "format=account%256")
    known = sorted({name.strip().lower() for name in listed.splitlines() if name.strip()})
    for account in accounts:
        if code:
            found = f"slurm_account: {account} cannot be checked, sacctmgr: {listed or f'exit code {code}'}"
            yield f"{found}. Take slurm_account out of slurm/config.yaml where there is no accounting."
        elif known and account.lower() not in known:
            has = f"{getuser()} has {', '.join(known)}"
            yield f"slurm_account: accounting knows no account {account}; {has}. Name one in slurm/config.yaml."


def _status_findings(settings: Settings, ask: Asked) -> Iterator[str]:
    """Whether the plugin will learn that jobs have ended; if not, it waits for ever."""
    place = "slurm-status-command in slurm/config.yaml"
    if settings.status_command == "sacct":
        code, said = ask("sacct", "--noheader", "--starttime=now")
        if code:
            yield f"{place}: sacct: {said or f'exit code {code}'}. Write squeue, which needs no accounting."
        return
    _code, said = ask("scontrol", "show", "config")
    age = re.search(r"MinJobAge\s*=\s*(\d+)", said)
    if age and int(age[1]) < _POLLS * settings.seconds_between_polls:
        found = f"squeue forgets an ended job after {age[1]} s (MinJobAge), too soon to be seen"
        yield f"{place}: {found}. Write sacct, or lower slurm-init-seconds-before-status-checks."


def _partition_findings(
    requests: Iterable[Request], nodes: Sequence[Nodes], file: Path | None
) -> Iterator[str]:
    """Partitions that are not there, and requests that none of their nodes can meet."""
    names = list(dict.fromkeys(one.partition for one in nodes))
    with_gpus = sorted({one.partition for one in nodes if one.gpus})
    partitions = _partitions_in(file)
    chosen = [(one, name) for one in requests if (name := _partition_for(one, nodes, partitions))]
    for name in dict.fromkeys(name for _one, name in chosen):
        if name not in names:
            yield f"partition {name}: the cluster has {', '.join(names)}. Name one of them in {PARTITIONS}."
    for (rule, name), asked in _largest(chosen).items():
        here = [one for one in nodes if one.partition == name]
        place = f"rule {rule}, partition {name}"
        if not here:
            continue
        if asked.gpus > (most := max(one.gpus for one in here)):
            other = f"; see {', '.join(with_gpus)}" if with_gpus and not most else ""
            found = f"asks for {asked.gpus} GPU{'s' if asked.gpus > 1 else ''} on a node, which has {most or 'none'}"
            yield f"{place}: {found}{other}. Name a partition with GPUs in {PARTITIONS}."
        if asked.minutes > (longest := max(one.minutes for one in here)):
            found = f"asks for {asked.minutes / 60:.3g} h, and the limit is {longest / 60:.3g} h"
            yield f"{place}: {found}. Set its runtime in set-resources of slurm/config.yaml; it goes on in a new try."
        if asked.memory_mb > (largest := max(one.memory_mb for one in here)):
            found = f"asks for {asked.memory_mb / 1000:,.0f} GB, and the largest node has {largest / 1000:,.0f} GB"
            yield f"{place}: {found}. Name another partition in {PARTITIONS}, or set its mem in set-resources."
        if asked.cores > (cores := max(one.cores for one in here)):
            found = f"asks for {asked.cores} cores, and the largest node has {cores}"
            yield f"{place}: {found}. Lower group-components or cpu_threads."


def _largest(chosen: Iterable[tuple[Request, str]]) -> dict[tuple[str, str], Request]:
    """The most of each kind that a rule asks of a partition, in one request."""
    found: dict[tuple[str, str], Request] = {}
    for asked, name in chosen:
        so_far = found.get((asked.rule, name), Request(asked.rule))
        most = {
            field: max(getattr(so_far, field), getattr(asked, field))
            for field in ("gpus", "minutes", "memory_mb", "cores")
        }
        found[asked.rule, name] = asked._replace(**most)
    return found


def _partitions_in(file: Path | None) -> list[Any]:
    """The plugin's own reading of its partition file."""
    if file is None:
        return []
    from snakemake_executor_plugin_slurm.partitions import read_partition_file

    return list(read_partition_file(file))


def _partition_for(request: Request, nodes: Sequence[Nodes], partitions: Sequence[Any]) -> str:
    """The partition that the plugin will choose: the job's own, the best of the file, or the cluster's default."""
    if request.partition:
        return request.partition
    wanted = {"gpu": request.gpus, "runtime": request.minutes, "mem_mb": request.memory_mb}
    job = SimpleNamespace(threads=request.cores, resources=wanted)
    scored = [(score, one.name) for one in partitions if (score := one.score_job_fit(job)) is not None]
    default = next((one.partition for one in nodes if one.default), "")
    return str(max(scored)[1]) if scored else default


def proposal(nodes: Sequence[Nodes]) -> str:
    """Lines for the partition file, from what the cluster has."""
    lines = []
    for name in dict.fromkeys(one.partition for one in nodes):
        here = [one for one in nodes if one.partition == name]
        minutes, gpus = max(one.minutes for one in here), max(one.gpus for one in here)
        limits = [f"max_runtime: {minutes:.0f}"] if minutes < float("inf") else []
        limits += [f"max_gpu: {gpus}"] if gpus else []
        lines.append(f"  {name}: {{{', '.join(limits)}}}")
    return "\n".join(lines)
