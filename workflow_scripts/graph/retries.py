"""Why earlier tries of a job ended, as far as SLURM says it in their logs: a new one may ask for more."""

import re
from collections.abc import Iterable
from pathlib import Path

LOGS = Path("logs/slurm")
"""Where the profile has SLURM write, a folder for each rule and below it one for each job's wildcards."""
_OUT_OF_MEMORY = re.compile(
    rb"exceeded memory limit|oom[-_ ]?kill|out[- ]of[- ]memory handler", re.IGNORECASE
)
_TAIL_BYTES = 64 << 10


def killed_for_memory(wildcards: Iterable[str], attempt: int) -> int:
    """How many of the tries before this one SLURM ended for their memory; none that another executor has run.

    Args:
        wildcards: Of the job.
        attempt: Of the job, from 1.
    """
    if attempt == 1:
        return 0
    folder = "_".join(wildcards).replace("/", "_")
    logs = [log for rule in LOGS.glob("rule_*") for log in (rule / folder).glob("*.log")]
    latest = sorted(logs, key=lambda log: log.stat().st_mtime)[1 - attempt :]
    return sum(_OUT_OF_MEMORY.search(_tail(log)) is not None for log in latest)


def _tail(log: Path) -> bytes:
    with log.open("rb") as file:
        file.seek(max(0, log.stat().st_size - _TAIL_BYTES))
        return file.read()
