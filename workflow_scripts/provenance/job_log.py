"""The last lines of a job's log: the files that it read and wrote, their rows, and its time."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_SHOWN = 3
"""Largest number of files of a role that are listed one by one; of more, only the number and all rows are shown."""


def summary(
    name: str, inputs: Mapping[str, Path], outputs: Mapping[str, Path], *, seconds: float, began_at: float
) -> list[str]:
    """Lines about the files and the time of a finished job; no lines for a failed one, whose error comes last.

    Args:
        name: Name of the job.
        inputs: Files read, by role.
        outputs: Files written, by role; the job has failed if one is missing or older than the job.
        seconds: Time that the job took.
        began_at: Start of the job, in seconds since the epoch.
    """
    if not all(path.exists() and path.stat().st_mtime >= int(began_at) for path in outputs.values()):
        return []
    lines = [f"{name}: read {_files(inputs)}"] if inputs else []
    return [*lines, f"{name}: wrote {_files(outputs)} in {seconds:.1f} s"]


def _files(files: Mapping[str, Path]) -> str:
    """Files by role, in one line."""
    roles: dict[str, list[Path]] = defaultdict(list)
    for name, path in files.items():
        roles[name.partition("/")[0]].append(path)
    return "; ".join(_role(role, paths) for role, paths in roles.items())


def _role(role: str, paths: list[Path]) -> str:
    if len(paths) > _SHOWN:
        return f"{role} {len(paths)} files{_rows(paths)}"
    return ", ".join(f"{role} {path}{_rows([path])}" for path in paths)


def _rows(paths: Iterable[Path]) -> str:
    """Number of rows of tables, in parentheses; empty for other files."""
    try:
        counts = [pq.read_metadata(path).num_rows for path in paths if path.suffix == ".parquet"]
    except (OSError, pa.ArrowInvalid):  # missing or damaged; the job itself reports that
        return ""
    return f" ({sum(counts):,} rows)" if counts else ""
