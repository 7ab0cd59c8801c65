"""Whether a SLURM cluster would take the jobs of a study: asked once, for seconds, before anything is submitted.

The executor plugin (2.8.0) meets an unknown account or a missing command in a thread that nobody listens to, and
Snakemake then waits for ever; what sbatch refuses comes one job at a time, and for a group Snakemake (9.27) does not
print it. So each distinct request is shown to ``sbatch --test-only``, with the options that the plugin would give it.

sbatch accepts a time limit above the partition's, unless a site sets EnforcePartLimits, and the queue would hold the
job for ever. So limits are compared here, and with them what sbatch does not check: whether the plugin knows the
account, whether it will learn that jobs have ended, whether they are in the queue already.
"""

import contextlib
import io
import logging
import os
import re
import shlex
import shutil
import subprocess
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from getpass import getuser
from heapq import nlargest
from itertools import pairwise, takewhile
from math import inf
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from snakemake.common.tbdstring import TBDString
from snakemake_executor_plugin_slurm.partitions import get_best_partition, read_partition_file
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import parse_time_to_minutes, set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from workflow_scripts.errors import ConfigError, one_line_errors, refuse
from workflow_scripts.graph.place import words_of_call

PARTITIONS = "slurm/partitions.yaml"
"""Where a site names its partitions."""
RESOURCES = "set-resources of slurm/config.yaml"
_SHAPE = "Write partitions: {}, or below partitions: lines such as gpu: {max_gpu: 4, max_runtime: 1-00:00:00}"
_UNREADABLE = (WorkflowError, AttributeError, LookupError, TypeError, ValueError)
"""What the plugin raises of a partition file, most of it in a traceback."""


class Request(NamedTuple):
    """What a job asks of the queue."""

    place: str
    """Such as ``rule train_encoder``, or ``group evaluations`` of jobs that are queued as one."""
    resources: Mapping[str, Any]
    """As Snakemake names them, as far as they are known before it runs."""


class Settings(NamedTuple):
    """What the profile says of the queue."""

    plugin: Any
    """The executor plugin's own settings."""
    groups: Mapping[str, str] = {}
    """Rule to the group that its jobs are queued in."""
    components: Mapping[str, int] = {}
    """Group to the number of jobs that are queued as one; 1 where it is left out."""


def settings_of(arguments: Sequence[str]) -> Settings | None:
    """What a command line of snakemake and its profiles say to the executor plugin; None where it is another's.

    None, too, where a relative path of a profile is not seen from here, since --directory leads elsewhere.
    """
    from snakemake.cli import parse_args  # slow to import

    with contextlib.redirect_stderr(io.StringIO()):  # it names the profiles that it reads
        try:
            _parser, given = parse_args([*arguments])
            if given.executor != "slurm":
                return None
            plugin = ExecutorPluginRegistry().get_plugin("slurm").get_settings(given)
        except (SystemExit, WorkflowError):
            return None
    return Settings(plugin, given.groups or {}, given.group_components or {})


def partitions_in(plugin: Any) -> Sequence[Any]:
    """The partitions among which the plugin chooses, as it reads the site's file.

    Raises:
        ConfigError: if it cannot.
    """
    file = plugin.partition_config or os.environ.get("SNAKEMAKE_SLURM_PARTITIONS")
    if not file:
        return []
    try:
        partitions = read_partition_file(Path(file))
        for one in partitions:
            one.score_job_fit(_as_job({"gpu": 1, "mem_mb": 1, "runtime": 1}))  # limits of a wrong type
    except _UNREADABLE as error:
        raise ConfigError(f"{file}: {_in_one_line(error)}. {_SHAPE}.") from None
    return list(partitions)


def requests_of(
    jobs: Iterable[tuple[str, str | None, Mapping[str, Any]]], components: Mapping[str, int]
) -> Iterator[Request]:
    """What jobs ask of the queue; of a group the most that it may ask, if its largest jobs meet in one.

    Args:
        jobs: Rule, group and resources; None or empty for the group of a job that is queued alone.
        components: Group to the number of jobs that are queued as one.
    """
    grouped: dict[str, list[Mapping[str, Any]]] = defaultdict(list)
    for rule, group, resources in jobs:
        known = {name: value for name, value in resources.items() if not isinstance(value, TBDString)}
        if group:
            grouped[group].append(known)
        else:
            yield Request(f"rule {rule}", known)
    for group, members in grouped.items():
        largest = {
            name: nlargest(components.get(group, 1), (one.get(name, 0) for one in members))
            for name in ("gpu", "mem_mb", "_cores", "runtime")
        }
        together = {name: sum(amounts) for name, amounts in largest.items()}
        yield Request(f"group {group}", {**members[0], **together, "runtime": largest["runtime"][0]})


def sbatch_options(request: Request, plugin: Any, partitions: Sequence[Any]) -> tuple[str, ...]:
    """What the plugin would hand to sbatch for a request, without a job's own names and its command.

    Args:
        request: What a job asks for.
        plugin: The plugin's settings.
        partitions: Among which it chooses.

    Raises:
        ConfigError: if it refuses what is asked for.
    """
    job, unheard = _as_job(request.resources), logging.Logger("choice of a partition", logging.CRITICAL)
    named = dict.fromkeys(("run_uuid", "slurm_logfile", "comment_str"), "a job's") | {"workdir": ""}
    try:
        validate_slurm_extra(job)
        partition = job.resources.get("slurm_partition") or get_best_partition(partitions, job, unheard)
        named["account"] = _option("-A", job.resources.get("slurm_account"))
        named["partition"] = _option("-p", partition)
        words = shlex.split(get_submit_command(job, named, plugin) + set_gres_string(job))
    except WorkflowError as error:
        raise ConfigError(f"{request.place}: {_in_one_line(error)}. Correct it in {RESOURCES}.") from None
    return tuple(words[words.index("--comment") + 2 :])


def _option(name: str, value: object) -> str:
    return f"{name} {shlex.quote(str(value))}" if value else ""


def _as_job(resources: Mapping[str, Any]) -> SimpleNamespace:
    """A job as the plugin's functions look at one."""
    named = SimpleNamespace(**resources, get=resources.get)
    return SimpleNamespace(name="", threads=resources.get("_cores", 1), resources=named)


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split()).rstrip(" .")


SECONDS = 10
"""The longest that a command may take; a slurmctld or slurmdbd that is down would cost minutes."""
PLUGIN_CALLS = ("sbatch", "squeue", "scancel", "sinfo", "scontrol", "sacct", "sacctmgr")
"""Commands without which the executor plugin hangs or fails; Debian and most sites install them together."""
_CORRECT = (
    f"Set what it asks for in {RESOURCES} (of a group: group-components), or its partition in {PARTITIONS}"
)
_WAIT = "Wait until slurmctld is up; its administrators know"
_NO_ANSWER = 124
"""Exit code of a command that did not answer in time, as ``timeout`` gives it."""
_SHOWN = 3
"""Jobs that a line names; of more, their number."""
_POLLS = 3
"""Number of polls for which the plugin wants a finished job to be remembered."""


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


Ask = Callable[..., tuple[int, str]]
"""Runs a command; its exit code and what it printed."""


def ask(*command: str, seconds: float = SECONDS) -> tuple[int, str]:
    """Run a command for some seconds; one that does not answer ends with code 124."""
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, errors="replace", timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return _NO_ANSWER, f"no answer within {seconds} s"
    if done.returncode == 0:
        return 0, done.stdout
    last = (done.stderr or done.stdout).strip().rpartition("\n")[2]
    return done.returncode, last.rstrip(" .")  # it becomes a part of a sentence


def check_partition_file() -> None:
    """Check the partition file of this call of snakemake, before the plugin reads it and ends in a traceback.

    Ends the process with a line for what is wrong.
    """
    words = words_of_call()
    if words and (settings := settings_of(words)):
        with one_line_errors():
            partitions_in(settings.plugin)


def check_queue(workflow: Any) -> None:
    """Check the queue for the jobs that are to run, if they go to one.

    Ends the process with a line for each thing that would keep them from running.

    Args:
        workflow: Snakemake's, once it knows its jobs and its executor.
    """
    plugin = workflow.executor_settings
    jobs = [job for job in workflow.dag.needrun_jobs() if not job.is_local]
    if type(plugin).__module__ != "snakemake_executor_plugin_slurm" or not jobs:
        return
    named = ((job.rule.name, job.group, job.resources) for job in jobs)
    asked = requests_of(named, workflow.group_settings.group_components)
    targets = {target_of(job.rule.name, job.wildcards_dict) for job in jobs}
    with one_line_errors():
        refuse(queue_findings(asked, plugin, targets))
    say_why_groups_fail(workflow.scheduler.get_executor(jobs[0]))


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


def _answer(ask: Ask, *command: str, may_fail: bool = False) -> tuple[int, str]:
    """Exit code and answer of one of SLURM's commands.

    Raises:
        ConfigError: if there is no answer, or an error where it may not fail.
    """
    code, said = ask(*command)
    if code == _NO_ANSWER or (code and not may_fail):
        raise ConfigError(f"SLURM: {command[0]}: {said or f'exit code {code}'}. {_WAIT}.")
    return code, said


def queued_here(ask: Ask = ask) -> list[Queued]:
    """This user's jobs that Snakemake queued from this working directory and that have not ended.

    Raises:
        ConfigError: if the queue does not answer.
    """
    form = "--format=%i|%T|%Z|%k"  # number, state, working directory and comment
    _code, listed = _answer(ask, "squeue", "--noheader", form, f"--user={os.getuid()}")
    lines = (line.split("|", 3) for line in listed.splitlines() if line.count("|") > 2)
    here = Path.cwd().resolve()
    ours = [line for line in lines if line[3].startswith("rule_") and Path(line[2]).resolve() == here]
    return [_queued(number, state, name, ask) for number, state, _folder, name in ours]


def _queued(number: str, state: str, name: str, ask: Ask) -> Queued:
    """A job with what its command says; the command of an array would be its first task's."""
    code, script = _answer(ask, "scontrol", "write", "batch_script", number, "-", may_fail=True)
    after = re.search(r"--target-jobs (.*)", script) if code == 0 and "_" not in number else None
    words = shlex.split(after[1]) if after else []
    named = (word.partition(":") for word in takewhile(lambda word: not word.startswith("--"), words))
    targets = frozenset((rule, frozenset(filter(None, values.split(",")))) for rule, _, values in named)
    attempt = re.search(r" --attempt (\d+)", script)
    return Queued(number, state, name, targets, int(attempt[1]) if attempt else 1)


def again_findings(targets: Collection[Target], ask: Ask) -> Iterator[str]:
    """Jobs in the queue that make what is about to be queued again: those of a driver that was killed."""
    wanted = frozenset(targets)
    found = [one for one in queued_here(ask) if not one.targets or one.targets & wanted]
    if found:
        shown = ", ".join(f"{one.number} {one.state.lower()} {one.name}" for one in found[:_SHOWN])
        more = f", and {len(found) - _SHOWN} more" if len(found) > _SHOWN else ""
        advice = "Wait until squeue --me shows them no more, or cancel them"
        numbers = " ".join(one.number for one in found)
        yield f"queue: still there from an earlier run: {shown}{more}. {advice}: scancel {numbers}."


def queue_findings(
    requests: Iterable[Request],
    plugin: Any,
    targets: Collection[Target] = (),
    ask: Ask = ask,
    which: Callable[[str], object] = shutil.which,
) -> Iterator[str]:
    """What would keep jobs from running, a line each; no more is asked where SLURM or an account is missing.

    Args:
        requests: Of all jobs that go to the queue.
        plugin: The plugin's settings.
        targets: The jobs, of which none may be in the queue already.
        ask: Runs a command.
        which: Finds a command.
    """
    if missing := [name for name in PLUGIN_CALLS if not which(name)]:
        advice = "Run it on a login node (some want: module load slurm), or without --profile slurm"
        yield f"SLURM: no {', '.join(missing)} on the PATH. {advice}."
        return
    listed = list(requests)
    accounts = {str(one.resources["slurm_account"]) for one in listed if one.resources.get("slurm_account")}
    try:
        limits = _limits_of(_answer(ask, "scontrol", "--all", "--oneliner", "show", "partition")[1])
        unknown = list(_account_findings(sorted(accounts), ask))
        yield from unknown
        yield from _status_findings(plugin, ask)
        if not unknown:
            yield from _request_findings(listed, plugin, limits, ask)
        if targets:
            yield from again_findings(targets, ask)
    except ConfigError as error:
        yield str(error)


def _limits_of(listed: str) -> dict[str, float]:
    """Minutes that a job may take, by partition; those of the default one also without a name."""
    found = dict[str, float]()
    for name, default, limit in re.findall(r"PartitionName=(\S+).* Default=(\S+).* MaxTime=(\S+)", listed):
        found[name] = inf if limit == "UNLIMITED" else parse_time_to_minutes(limit)
        if default == "YES":
            found[""] = found[name]
    return found


def _account_findings(accounts: Sequence[str], ask: Ask) -> Iterator[str]:
    """Accounts that accounting does not know, which sbatch refuses at some sites and the plugin everywhere."""
    if not accounts:
        return
    code, listed = ask("sacctmgr", "-n", "-s", "list", "user", getuser(), "format=account%256")
    known = sorted(set(listed.lower().split()))
    has = f"sacctmgr: {listed or code}" if code else f"{getuser()} has {', '.join(known)}"
    for account in accounts:
        if code or (known and account.lower() not in known):
            advice = "Name another in slurm/config.yaml, or none where there is no accounting"
            yield f"slurm_account: accounting knows no account {account}; {has}. {advice}."


def _status_findings(plugin: Any, ask: Ask) -> Iterator[str]:
    """Whether the plugin will learn that jobs have ended; if not, it waits for ever."""
    place = "slurm-status-command in slurm/config.yaml"
    if plugin.status_command == "sacct":
        code, said = ask("sacct", "--noheader", "--starttime=now")
        if code:
            yield f"{place}: sacct: {said or f'exit code {code}'}. Write squeue, which needs no accounting."
        return
    age = re.search(r"MinJobAge\s*=\s*(\d+)", _answer(ask, "scontrol", "show", "config")[1])
    if age and int(age[1]) < _POLLS * plugin.init_seconds_before_status_checks:
        found = f"squeue forgets an ended job after {age[1]} s (MinJobAge), too soon to be seen"
        yield f"{place}: {found}. Write sacct, or lower slurm-init-seconds-before-status-checks."


def _request_findings(
    requests: Iterable[Request], plugin: Any, limits: Mapping[str, float], ask: Ask
) -> Iterator[str]:
    """Requests that sbatch refuses, or that would wait for ever; each distinct one is asked for once."""
    partitions = partitions_in(plugin)
    places: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for one in requests:
        places[sbatch_options(one, plugin, partitions)].add(one.place)
    for options, who in places.items():
        code, said = _answer(ask, "sbatch", "--test-only", *options, "--wrap", "true", may_fail=True)
        place, asked = ", ".join(sorted(who)), dict(pairwise(options))
        hours, longest = int(asked.get("-t", 0)) / 60, limits.get(asked.get("-p", ""), inf) / 60
        if code:
            reason = said.removeprefix("sbatch: error: ").removeprefix("allocation failure: ")
            has = f"the cluster has partitions {', '.join(filter(None, limits))}"
            yield f"{place}: sbatch refuses {shlex.join(options)}: {reason}; {has}. {_CORRECT}."
        elif hours > longest:
            found = f"asks for {hours:.3g} h, and the limit of its partition is {longest:.3g} h"
            yield f"{place}: {found}. Set its runtime in {RESOURCES}; a stopped job goes on in its next try."
