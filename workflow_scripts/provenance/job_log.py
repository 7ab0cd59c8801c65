"""The last lines of a job's log: what it read and wrote, how many rows, and how long it took."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

_SHOWN = 3
"""Files of one role that are named; of more, the number and their rows together."""


def summary(
    name: str, inputs: Mapping[str, Path], outputs: Mapping[str, Path], *, seconds: float, began_at: float
) -> list[str]:
    """Lines about a finished job's files: what was read, what was written, and the time; none about one that failed.

    Args:
        name: Of the job.
        inputs: Files read, by role.
        outputs: Files written, by role; older ones were not written by it.
        seconds: That it took.
        began_at: Seconds since the epoch at its start.
    """
    if not all(path.exists() and path.stat().st_mtime >= int(began_at) for path in outputs.values()):
        return []  # so that its error is the last line
    lines = [f"{name}: read {_files(inputs)}"] if inputs else []
    return [*lines, f"{name}: wrote {_files(outputs)} in {seconds:.1f} s"]


def _files(files: Mapping[str, Path]) -> str:
    """Files by role, those of one role that has several together."""
    roles: dict[str, list[Path]] = defaultdict(list)
    for name, path in files.items():
        roles[name.partition("/")[0]].append(path)
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
