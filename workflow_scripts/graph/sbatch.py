"""What the jobs of a study would ask sbatch for, said by the functions of the executor plugin (2.8.0)."""

import contextlib
import io
import logging
import os
import shlex
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from heapq import nlargest
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

from snakemake.common.tbdstring import TBDString
from snakemake_executor_plugin_slurm.partitions import get_best_partition, read_partition_file
from snakemake_executor_plugin_slurm.submit_string import get_submit_command
from snakemake_executor_plugin_slurm.utils import set_gres_string
from snakemake_executor_plugin_slurm.validation import validate_slurm_extra
from snakemake_interface_common.exceptions import WorkflowError
from snakemake_interface_executor_plugins.registry import ExecutorPluginRegistry

from workflow_scripts.errors import ConfigError

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
