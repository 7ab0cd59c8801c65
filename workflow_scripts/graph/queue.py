"""Whether a SLURM cluster would run the jobs of a study: asked once, for seconds, before anything is submitted.

The executor plugin (2.8.0) meets an unknown account or a missing command in a thread that nobody listens to, and
Snakemake then waits for ever. And a job that asks for more than its partition has stays in the queue for ever, or is
refused by sbatch, of which Snakemake (9.27) says nothing where the job is a group.
"""

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from getpass import getuser
from heapq import nlargest
from itertools import takewhile
from operator import itemgetter
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from workflow_scripts.errors import ConfigError, one_line_errors
from workflow_scripts.graph.findings import refuse
from workflow_scripts.graph.partitions import PARTITIONS, partition_findings

SECONDS = 10
"""That a command may take; a slurmctld or slurmdbd that is down costs minutes otherwise."""
PLUGIN_CALLS = ("sbatch", "squeue", "scancel", "sinfo", "scontrol", "sacct", "sacctmgr")
"""Commands without which the executor plugin hangs or fails; Debian and most sites install them together."""
LISTING = ("sinfo", "--noheader", "--format=%P|%l|%G|%c|%m|%a")
"""What ``nodes_in`` reads."""
QUEUED = ("squeue", "--noheader", "--format=%i|%T|%Z|%k")
"""What ``queued_here`` reads: number, state, working directory and comment of this user's jobs."""
_GUESS = ("No SLURM account given", "No account was given", "Unable to guess SLURM account")
"""How the plugin speaks of its guess of an account, which never succeeds: it hands a pipe to sacct as an argument."""
_RESOURCES = "set-resources of slurm/config.yaml"
_WAIT = "Wait until slurmctld is up; its administrators know"
_NO_ANSWER = 124
"""Exit code of a command that was given up, as that of ``timeout``."""
_SHOWN = 3
"""Jobs that a line names; of more, their number."""
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
    group: str = ""
    """Name of the group that is queued as one job; empty for a job that is queued alone, and for a part of a group."""
    parts: tuple["Request", ...] = ()
    """What the jobs of a group ask for that run side by side."""


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
    groups: Mapping[str, str] = {}
    """Rule to the group that its jobs are queued in."""
    components: Mapping[str, int] = {}
    """Group to the number of jobs that are queued as one; 1 where it is left out."""


Target = tuple[str, frozenset[str]]
"""A job as Snakemake names it to another process: rule, and wildcards such as ``seed=1``."""


class Queued(NamedTuple):
    """What is in the queue for this working directory."""

    number: str
    state: str
    """Such as PENDING or RUNNING."""
    name: str
    """What the plugin notes: rule_NAME_wildcards_..., or rule_GROUP_RULES of a group."""
    targets: frozenset[Target]
    """The jobs that it runs; empty where SLURM does not give them away."""
    attempt: int
    """1 for the first try."""


Asked = Callable[..., tuple[int, str]]
"""Runs a command; its exit code and what it printed."""


def ask(*command: str, seconds: float = SECONDS) -> tuple[int, str]:
    """Run a command for some seconds; one that does not answer ends with code 124."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return _NO_ANSWER, f"no answer within {seconds} s"
    except OSError as error:
        return 127, str(error)
    return done.returncode, (done.stdout if done.returncode == 0 else _last_line(done.stderr or done.stdout))


def _last_line(text: str) -> str:
    """The last line, without the full stop of the sentence that it becomes a part of."""
    return (text.strip().splitlines() or [""])[-1].rstrip(" .")


def settings_of(arguments: Sequence[str]) -> Settings | None:
    """What a command line of snakemake and its profiles say to the executor plugin; None where it is another's.

    None, too, where a relative path of a profile is not seen from here, since --directory leads elsewhere.
    """
    from snakemake.cli import parse_args  # slow to import

    with contextlib.redirect_stderr(io.StringIO()):  # it names the profiles that it reads
        try:
            _parser, given = parse_args([*arguments])
        except SystemExit:
            return None
    if given.executor != "slurm":
        return None
    file = given.slurm_partition_config or os.environ.get("SNAKEMAKE_SLURM_PARTITIONS")
    return Settings(
        Path(file) if file else None,
        given.slurm_status_command,
        given.slurm_init_seconds_before_status_checks,
        given.groups or {},
        given.group_components or {},
    )


def check_partition_file() -> None:
    """Check the partition file of this call of snakemake, before the plugin reads it.

    Ends the process with a line for each mistake.
    """
    program = Path(sys.argv[0])
    if "snakemake" not in (program.name, program.parent.name) or "--mode" in sys.argv:  # a job's own call
        return
    settings = settings_of(sys.argv[1:])
    if settings and settings.partition_file:
        with one_line_errors():
            refuse(partition_findings(settings.partition_file))


def check_queue(workflow: Any) -> None:
    """Check the queue for the jobs that are to run, if they go to one, and have the plugin say what matters.

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
    file = settings.partition_config
    said = Settings(file, settings.status_command, settings.init_seconds_before_status_checks)
    targets = {target_of(job.rule.name, job.wildcards_dict) for job in jobs}
    with one_line_errors():
        refuse(queue_findings(_requests(jobs), said, targets))
    executor = workflow.scheduler.get_executor(jobs[0])
    say_why_groups_fail(executor)
    executor.logger.addFilter(lambda record: not record.getMessage().startswith(_GUESS))


def say_why_groups_fail(executor: Any) -> None:
    """Have an executor print its reason, such as sbatch's refusal, also where Snakemake drops it: for groups."""
    print_job_error = executor.print_job_error

    def print_reason(job_info: Any, msg: str | None = None, **more: Any) -> None:
        if msg and job_info.job.is_group():
            reason = msg.partition("    sbatch call:")[0].strip()
            executor.logger.error(f"group {job_info.job.groupid} failed: {reason}")
        print_job_error(job_info, msg, **more)

    executor.print_job_error = print_reason


def target_of(rule: str, wildcards: Mapping[str, str]) -> Target:
    """A job as a command in the queue names it."""
    return rule, frozenset(f"{name}={value}" for name, value in wildcards.items())


def queued_here(ask: Asked = ask) -> list[Queued]:
    """Jobs of this user that Snakemake has put into the queue from this working directory, and that have not ended.

    Raises:
        ConfigError: if the queue does not answer.
    """
    code, listed = ask(*QUEUED, f"--user={os.getuid()}")
    if code:
        raise ConfigError(f"SLURM: squeue: {listed or f'exit code {code}'}. {_WAIT}.")
    lines = (line.split("|", 3) for line in listed.splitlines() if line.count("|") > 2)
    here = Path.cwd().resolve()
    ours = [line for line in lines if line[3].startswith("rule_") and Path(line[2]).resolve() == here]
    return [_queued(number, state, name, ask) for number, state, _folder, name in ours]


def _queued(number: str, state: str, name: str, ask: Asked) -> Queued:
    """A job with what its command says of it; that of an array is the first task's."""
    code, script = ask("scontrol", "write", "batch_script", number, "-")
    if code == _NO_ANSWER:
        raise ConfigError(f"SLURM: scontrol: {script}. {_WAIT}.")
    after = re.search(r"--target-jobs (.*)", script) if code == 0 and "_" not in number else None
    try:
        words = shlex.split(after[1]) if after else []
    except ValueError:  # quotes of somebody else's command
        words = []
    named = takewhile(lambda word: not word.startswith("--"), words)
    attempt = re.search(r" --attempt (\d+)", script)
    targets = (word.partition(":") for word in named)
    return Queued(
        number,
        state,
        name,
        frozenset((rule, frozenset(filter(None, values.split(",")))) for rule, _, values in targets),
        int(attempt[1]) if attempt else 1,
    )


def again_findings(targets: Collection[Target], ask: Asked) -> Iterator[str]:
    """Jobs in the queue that make what is about to be queued again: those of a driver that was killed."""
    wanted = frozenset(targets)
    try:
        queued = queued_here(ask)
    except ConfigError as error:
        yield str(error)
        return
    found = [one for one in queued if not one.targets or one.targets & wanted]
    if found:
        shown = ", ".join(f"{one.number} {one.state.lower()} {one.name}" for one in found[:_SHOWN])
        more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        numbers = " ".join(one.number for one in found)
        advice = f"Wait until squeue --me shows them no more, or cancel them: scancel {numbers}"
        count = (
            "1 job of an earlier run is" if len(found) == 1 else f"{len(found)} jobs of an earlier run are"
        )
        yield f"queue: {count} still there: {shown}{more}. {advice}."


def _requests(jobs: Iterable[Any]) -> Iterator[Request]:
    """What Snakemake's jobs ask of the queue, those of a group as one."""
    from snakemake.resources import GroupResources

    seen = set()
    for job in jobs:
        group = job.dag.get_job_group(job)
        if group is None:
            yield request_of(job.rule.name, dict(job.resources.items()))
        elif id(group) not in seen:
            seen.add(id(group))
            # As GroupJob.resources, which would keep them, before files are there that they may depend on.
            asked = GroupResources.basic_layered(
                group.toposorted, group.global_resources, False, ["runtime"], ["runtime"]
            )
            parts = tuple(request_of(one.rule.name, dict(one.resources.items())) for one in group.jobs)
            yield request_of("", asked)._replace(group=group.groupid, parts=parts)


def as_groups(requests: Iterable[tuple[str, Request]], components: Mapping[str, int]) -> Iterator[Request]:
    """What jobs ask of the queue if the largest of each group meet in one: the most that it may ask.

    Args:
        requests: Each with the name of its group, which is empty for a job that is queued alone.
        components: Group to the number of jobs that are queued as one.
    """
    grouped: dict[tuple[str, str, str], list[Request]] = defaultdict(list)
    for group, one in requests:
        if group:
            grouped[group, one.partition, one.account].append(one)
        else:
            yield one
    for (group, partition, account), members in grouped.items():
        number = components.get(group, 1)
        yield Request(
            "",
            gpus=sum(nlargest(number, (one.gpus for one in members))),
            minutes=max(one.minutes for one in members),
            memory_mb=sum(nlargest(number, (one.memory_mb for one in members))),
            cores=sum(nlargest(number, (one.cores for one in members))),
            partition=partition,
            account=account,
            group=group,
            parts=tuple(nlargest(number, members, key=lambda one: one.memory_mb)),
        )


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
    targets: Collection[Target] = (),
    ask: Asked = ask,
    which: Callable[[str], object] = shutil.which,
) -> Iterator[str]:
    """What would keep jobs from running, a line each; nothing more is asked where SLURM itself is missing.

    Args:
        requests: Of all jobs that go to the queue.
        settings: The profile's.
        targets: The jobs, of which none may be in the queue already.
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
        yield f"SLURM: sinfo: {listed or f'exit code {code}'}. {_WAIT}."
        return
    if settings.partition_file and (wrong := list(partition_findings(settings.partition_file))):
        yield from wrong
        return
    nodes = list(nodes_in(listed))
    distinct = list(dict.fromkeys(requests))
    yield from _account_findings(sorted({one.account for one in distinct if one.account}), ask)
    yield from _status_findings(settings, ask)
    yield from _partition_findings(distinct, nodes, settings.partition_file)
    if targets:
        yield from again_findings(targets, ask)


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
        place = f"group {asked.group}, partition {name}" if asked.group else f"rule {rule}, partition {name}"
        if not here:
            continue
        if asked.parts:
            yield from _group_findings(place, asked, here)
            continue
        if asked.gpus > (most := max(one.gpus for one in here)):
            other = f"; see {', '.join(with_gpus)}" if with_gpus and not most else ""
            found = f"asks for {asked.gpus} GPU{'s' if asked.gpus > 1 else ''} on a node, which has {most or 'none'}"
            yield f"{place}: {found}{other}. Name a partition with GPUs in {PARTITIONS}."
        if asked.minutes > (longest := max(one.minutes for one in here)):
            found = f"asks for {asked.minutes / 60:.3g} h, and the limit is {longest / 60:.3g} h"
            yield f"{place}: {found}. Set its runtime in {_RESOURCES}; it goes on in a new try."
        if asked.memory_mb > (largest := max(one.memory_mb for one in here)):
            found = f"asks for {asked.memory_mb / 1000:,.0f} GB, and the largest node has {largest / 1000:,.0f} GB"
            advice = f"Name another partition in {PARTITIONS}, or set its mem in {_RESOURCES}"
            yield f"{place}: {found}. {advice}."
        if asked.cores > (cores := max(one.cores for one in here)):
            found = f"asks for {asked.cores} cores, and the largest node has {cores}"
            yield f"{place}: {found}. Lower group-components or cpu_threads."


def _group_findings(place: str, asked: Request, here: Sequence[Nodes]) -> Iterator[str]:
    """What a group asks for, which is what its jobs side by side ask for together, and no node has."""
    memory_mb, cores, gpus = (
        max(getattr(one, field) for one in here) for field in ("memory_mb", "cores", "gpus")
    )
    side_by_side = f"{len(asked.parts)} jobs side by side ask for"
    fitting = min(
        memory_mb // max(1, *(one.memory_mb for one in asked.parts)),
        cores // max(1, *(one.cores for one in asked.parts)),
    )
    rules = ", ".join(sorted({one.rule for one in asked.parts}))
    advice = (
        f"Set {asked.group}: {fitting} below group-components in slurm/config.yaml"
        if fitting
        else f"One alone does not fit: name another partition in {PARTITIONS}, or set mem of {rules} in {_RESOURCES}"
    )
    if asked.memory_mb > memory_mb:
        found = (
            f"{asked.memory_mb / 1000:,.0f} GB together, and the largest node has {memory_mb / 1000:,.0f} GB"
        )
        yield f"{place}: {side_by_side} {found}. {advice}."
    if asked.cores > cores:
        yield f"{place}: {side_by_side} {asked.cores} cores together, and the largest node has {cores}. {advice}."
    if asked.gpus > gpus:
        found = f"{asked.gpus} GPUs together, and a node has {gpus or 'none'}"
        yield f"{place}: {side_by_side} {found}. Take {rules} out of groups in slurm/config.yaml."
    if asked.minutes > (longest := max(one.minutes for one in here)):
        found = f"asks for {asked.minutes / 60:.3g} h, and the limit is {longest / 60:.3g} h"
        yield f"{place}: {found}. Set the runtime of {rules} in {_RESOURCES}."


def _largest(chosen: Iterable[tuple[Request, str]]) -> dict[tuple[str, str], Request]:
    """The most of each kind that a rule or group asks of a partition, in one request."""
    found: dict[tuple[str, str], Request] = {}
    for asked, name in chosen:
        place = asked.rule or f"group {asked.group}", name
        so_far = found.get(place, Request(asked.rule))
        most = {
            field: max(getattr(so_far, field), getattr(asked, field))
            for field in ("gpus", "minutes", "memory_mb", "cores")
        }
        parts = max(
            so_far.parts, asked.parts, key=lambda parts: (len(parts), sum(one.memory_mb for one in parts))
        )
        found[place] = asked._replace(parts=parts, **most)
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
    best = max(scored, key=itemgetter(0), default=None)  # the first of those that fit alike
    default = next((one.partition for one in nodes if one.default), "")
    return str(best[1]) if best else default


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


def knows_partitions(file: Path | None, nodes: Sequence[Nodes]) -> bool:
    """Whether the partition file names some of the cluster's partitions, with their GPUs and no limit above theirs."""
    if file is None or any(partition_findings(file)):
        return False
    named = [
        (one.limits, [node for node in nodes if node.partition == one.name]) for one in _partitions_in(file)
    ]
    return bool(named) and all(
        here
        and limits.max_gpu == max(one.gpus for one in here)
        and (limits.max_runtime == float("inf") or limits.max_runtime <= max(one.minutes for one in here))
        for limits, here in named
    )
