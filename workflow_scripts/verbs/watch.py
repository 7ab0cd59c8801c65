"""Follow the running jobs of studies: step, loss, best development score, speed, and time left of trainings.

In a terminal, the table is renewed every five seconds until Ctrl-C; with --once or --json, or in a pipe, it is printed
once. It is read from files next to the jobs' logs, so it works on any machine with this folder, such as the login node
of a cluster.

A job of this machine is running while its process exists, and has died if the process is gone before its end. A job of
another machine counts as running while it writes: a training for ten times the interval between its rows, and at least
two minutes; other jobs for an hour. Then it is silent, and after a day it is no longer listed.

Exit code 1 if a job has died or is silent.

  python -m workflow_scripts watch results/demo --once
"""

import csv
import socket
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.errors import DataError, advice
from workflow_scripts.graph.notes import STUDIES
from workflow_scripts.provenance.running import Holder, beside, holder_of
from workflow_scripts.verbs.printing import Answer, PrintedTable, Row, argument
from workflow_scripts.verbs.records import study_folder

_LOGS = Path("logs")
_QUIET_SECONDS = 3600.0
"""Time without writes after which a job of another machine that writes no rows counts as silent."""
_FEWEST_SECONDS, _GAPS = 120.0, 10
"""For a job that writes rows: the minimum of this time, and the multiple of its maximum interval between rows."""
_FORGOTTEN_SECONDS = 86400.0
"""Time without writes after which a job that has died or is silent is no longer listed."""
_RECENT = 1000
"""Number of last rows for the speed: enough to contain an evaluation."""

ARGUMENTS = (
    argument(
        "studies", nargs="*", type=study_folder, metavar="FOLDER", help="results of a study; default: all"
    ),
    argument("--once", action="store_true", help="print the table once"),
)


class Progress(NamedTuple):
    """State of a training, by its rows."""

    step: int
    steps: int
    loss: float
    best_dev_score: float | None
    per_second: float | None
    """Steps per second over the last rows, including evaluations."""
    gap_seconds: float
    """Maximum time between two writes of rows."""


def answer(studies: list[Path], once: bool) -> Answer:
    """Return a row for each job that is running, has died or is silent."""
    begun = {_LOGS / note.stem for note in STUDIES.glob("*.json")}  # they may not have a job yet
    known = {*_LOGS.glob("*/")} | begun
    folders = [_LOGS / study.name for study in studies] or sorted(known)
    for folder in folders or [_LOGS]:
        if folder not in known:
            similar = f"{advice(folder.name, sorted(path.name for path in known))} " if known else ""
            raise DataError(
                f"{folder}: no such folder. {similar}Run watch in the folder where snakemake runs, for one of "
                "its studies."
            )
    rows = list(running(folders, socket.gethostname(), time.time()))
    states = Counter(str(row["state"]) for row in rows)
    listed = [f"{states[state]} {state}" for state in ("running", "silent", "died") if states[state]]
    return Answer(
        f"jobs: {', '.join(listed) or 'none running'}",
        states.keys() <= {"running"},
        [PrintedTable("jobs", rows, [*map(_shown, rows)])],
        renewed=None if once else lambda: answer(studies, once),
    )


def running(folders: Iterable[Path], here: str, now: float) -> Iterator[Row]:
    """Yield a row for each job of studies that is running, has died or is silent.

    Args:
        folders: Folders of the studies' logs.
        here: Name of this machine.
        now: Present time in seconds since 1970.
    """
    for folder in folders:
        for lock in sorted(folder.rglob("*.log.lock")):
            with suppress(OSError):  # a file was deleted meanwhile
                if row := _row_of(folder, lock, here, now):
                    yield row


def _row_of(folder: Path, lock: Path, here: str, now: float) -> Row | None:
    """Return the row of a job, by its lock; None if it has ended, or died long ago."""
    holder = holder_of(lock)
    if holder is None:
        return None
    log = lock.with_suffix("")
    table, _ = beside(log)
    signs = [path.stat().st_mtime for path in (lock, log, table) if path.exists()]
    # Older rows are of an earlier run of the job.
    is_own = table.exists() and table.stat().st_mtime >= holder.since.timestamp()
    progress = read_progress(table) if is_own else None
    quiet = now - max(signs)
    state = _state(holder, here, quiet, progress)
    is_shown = state == "running" or quiet < _FORGOTTEN_SECONDS
    return _row(folder, log, holder.host, state, progress) if is_shown else None


def read_progress(table: Path) -> Progress | None:
    """Return the state of a training, by its rows (``training.following.COLUMNS``); None before the first."""
    text = table.read_text("utf-8", "replace")
    rows = list(csv.DictReader(text[: text.rfind("\n") + 1].splitlines()))
    if not rows:
        return None
    last = rows[-1]
    scores = [float(row["dev_score"]) for row in rows if row["dev_score"]]
    timed = [(row["time"], 1 / float(row["steps_per_second"])) for row in rows[-_RECENT:] if row["time"]]
    gaps = defaultdict[str, float](float)
    for written, seconds in timed:
        gaps[written] += seconds
    total = sum(gaps.values())
    return Progress(
        step=int(last["step"]),
        steps=int(last["steps"]),
        loss=float(last["loss"]),
        best_dev_score=max(scores, default=None),
        per_second=len(timed) / total if total else None,
        gap_seconds=max(gaps.values(), default=0),
    )


def _state(holder: Holder, here: str, quiet: float, progress: Progress | None) -> str:
    """Return whether a job is running, has died, or is silent."""
    if holder.host == here:
        return "running" if _is_job(holder.process) else "died"
    limit = max(_FEWEST_SECONDS, _GAPS * progress.gap_seconds) if progress else _QUIET_SECONDS
    return "running" if quiet < limit else "silent"


def _is_job(process: int) -> bool:
    """Return whether a process of this machine is a job; the id of an ended job may belong to another process."""
    command = Path(f"/proc/{process}/cmdline")
    return command.exists() and b"workflow_scripts.jobs" in command.read_bytes()


def _shown(row: Row) -> Row:
    """Return a row as it is printed."""
    left = row["minutes_left"]
    return {
        "job": f"{row['study']}/{row['rule']}/{row['job']}",  # as in the path of its log
        "host": row["host"],
        "state": row["state"],
        "step": "" if row["step"] is None else f"{row['step']:,} of {row['steps']:,}",
        "share": "" if row["share"] is None else f"{row['share']:.0%}",
        "loss": row["loss"],
        "best dev": row["best_dev_score"],
        "steps/s": row["steps_per_second"],
        "time left": "" if left is None else str(timedelta(seconds=round(60 * left))),
    }


def _row(folder: Path, log: Path, host: str, state: str, progress: Progress | None) -> Mapping[str, object]:
    """Return the row of a job."""
    rule, *job = log.relative_to(folder).with_suffix("").parts
    step, steps, loss, best, per_second, _ = progress or (None,) * len(Progress._fields)
    left = (steps - step) / per_second if steps and step and per_second and state == "running" else None
    return {
        "study": folder.name,
        "rule": rule,
        "job": "/".join(job),
        "host": host,
        "state": state,
        "step": step,
        "steps": steps,
        "share": step / steps if steps and step else None,
        "loss": loss,
        "best_dev_score": best,
        "steps_per_second": per_second,
        "minutes_left": None if left is None else left / 60,
    }
