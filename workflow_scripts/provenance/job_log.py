"""The last lines of a job's log: what it read and wrote, how many rows, and how long it took."""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Protocol

import pyarrow as pa
import pyarrow.parquet as pq

_SHOWN = 3
"""Files of one role that are named; of more, the number and their rows together."""


class HasFiles(Protocol):
    """A job, as far as its files go."""

    @property
    def rule(self) -> str:
        """Name of the rule."""

    @property
    def wildcards(self) -> Mapping[str, str]:
        """Its wildcards."""

    @property
    def inputs(self) -> Mapping[str, Path]:
        """Files read, by role."""

    @property
    def outputs(self) -> Mapping[str, Path]:
        """Files written, by role."""


def write_summary(job: HasFiles, began: float, began_at: float) -> None:
    """Print what a job did; of one that failed nothing, so that its error is the last line.

    Args:
        job: The job.
        began: Monotonic seconds at its start.
        began_at: Seconds since the epoch at its start, which tell files it wrote from older ones.
    """
    for line in summary(job, time.monotonic() - began, began_at):
        print(line, flush=True)  # noqa: T201


def named_in_logs(job: HasFiles) -> str:
    """Rule and wildcards, by which a line of a log says whose it is (``audit.jobs`` reads them)."""
    return " ".join([job.rule, *job.wildcards.values()])


def summary(job: HasFiles, seconds: float, began_at: float) -> list[str]:
    """Lines about a finished job's files: what was read, what was written, and the time; none about another's.

    Args:
        job: The job.
        seconds: That it took.
        began_at: Files that are older were not written by it.
    """
    written = {
        role: path
        for role, path in job.outputs.items()
        if path.exists() and path.stat().st_mtime >= int(began_at)
    }
    if set(written) < set(job.outputs):
        return []
    named = named_in_logs(job)
    lines = [f"{named}: read {_files(job.inputs)}"] if job.inputs else []
    return [*lines, f"{named}: wrote {_files(written)} in {seconds:.1f} s"]


def _files(files: Mapping[str, Path]) -> str:
    """Files by role, those of one role that has several together."""
    roles: dict[str, list[Path]] = {}
    for name, path in files.items():
        roles.setdefault(name.partition("/")[0], []).append(path)
    return "; ".join(_role(role, paths) for role, paths in roles.items())


def _role(role: str, paths: list[Path]) -> str:
    if len(paths) > _SHOWN:
        return f"{role} {len(paths)} files{_rows(paths)}"
    return ", ".join(f"{role} {path}{_rows([path])}" for path in paths)


def _rows(paths: Iterable[Path]) -> str:
    """Rows of tables, in brackets; nothing for other files."""
    try:
        counts = [pq.read_metadata(path).num_rows for path in paths if path.suffix == ".parquet"]
    except (OSError, pa.ArrowInvalid):  # missing or damaged, which the job itself reports
        return ""
    return f" ({sum(counts):,} rows)" if counts else ""
