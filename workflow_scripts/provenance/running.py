"""Files of a running job: its log, the lock with its process, and rows by which it is followed.

They are no artefacts, and affect no result (``provenance.closure.UNKEYED``).
"""

import atexit
import fcntl
import os
import re
import socket
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.errors import DataError

_HOLDER = re.compile(r"process (\d+) on (\S+) since (\S+)")


class Holder(NamedTuple):
    """The process of a job that is running or was killed."""

    process: int
    host: str
    since: datetime


def holder_of(lock: Path) -> Holder | None:
    """Return the process in a lock; None if the job has ended."""
    if not lock.stat().st_size:  # as most locks, which need not be opened
        return None
    named = _HOLDER.fullmatch(lock.read_text("utf-8", "replace"))
    return Holder(int(named[1]), named[2], datetime.fromisoformat(named[3])) if named else None


def own_log() -> Path | None:
    """Return the log of this process, which is its standard output; None for a process without a log."""
    log = Path("/proc/self/fd/1").resolve()
    return log if log.suffix == ".log" and log.exists() else None


def beside(log: Path) -> tuple[Path, Path]:
    """Return the file of rows and the folder of TensorBoard's events that a training writes next to its log."""
    return log.with_suffix(".csv"), log.with_suffix("")


def acquire_lock() -> None:
    """Hold a lock next to the job's log until this process ends; until then, the file contains the process.

    A job continues after Snakemake was killed, and the next run would start it a second time. ``watch`` reads the
    files (``holder_of``).

    Raises:
        DataError: if another process holds the lock.
    """
    log = own_log()
    if log is None or os.environ.get("RANK", "0") != "0":
        return
    lock = os.open(f"{log}.lock", os.O_RDWR | os.O_CREAT, 0o644)  # stays open until the process ends
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.pread(lock, 200, 0).decode(errors="replace") or "about to end"
        raise DataError(
            f"{log}.lock: this job is already running, {holder}, because a run was killed or started twice. "
            "Wait for that process or end it, and run snakemake again."
        ) from error
    except OSError:  # the file system has no locks
        pass
    since = datetime.now(UTC).isoformat(timespec="seconds")
    process = f"process {os.getpid()} on {socket.gethostname()} since {since}".encode()
    os.pwrite(lock, process, 0)  # before truncating: a concurrent reader must always find a process
    os.truncate(lock, len(process))
    atexit.register(os.truncate, lock, 0)
