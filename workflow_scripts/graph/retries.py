"""Why earlier tries of a job ended, as far as SLURM says it in their logs: a new one may ask for more."""

import re
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.graph.slices import Wildcards

LOGS = Path("logs/slurm")
"""Where the profile has SLURM write: a folder for each rule and one below it for each job's wildcards, or a folder for
each group, whose logs name the jobs in it."""
_OUT_OF_MEMORY = re.compile(
    rb"exceeded memory limit|oom[-_ ]?kill|out[- ]of[- ]memory handler", re.IGNORECASE
)
_TAIL_BYTES = 64 << 10


def killed_for_memory(wildcards: Wildcards, attempt: int) -> int:
    """How many of the tries before this one SLURM ended for their memory; none that another executor has run.

    Args:
        wildcards: Of the job.
        attempt: Of the job, from 1.
    """
    if attempt == 1:
        return 0
    named = f"wildcards: {', '.join(f'{name}={value}' for name, value in wildcards.items())}\n"
    logs = [log for log in LOGS.glob("group_*/**/*.log") if named in log.read_text(errors="replace")]
    logs += LOGS.glob(f"rule_*/{folder_of(wildcards)}/*.log")
    latest = sorted(logs, key=lambda log: log.stat().st_mtime)[1 - attempt :]
    return sum(_OUT_OF_MEMORY.search(_tail(log)) is not None for log in latest)


def folder_of(wildcards: Iterable[str]) -> str:
    """The folder of a job's logs below that of its rule, by the values of its wildcards."""
    return "_".join(wildcards).replace("/", "_")


def _tail(log: Path) -> bytes:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return file.read()
