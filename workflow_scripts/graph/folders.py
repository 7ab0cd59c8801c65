"""Checks of the folder of the cache."""

import os
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.errors import ErrorDetails
from workflow_scripts.provenance.key import is_key

MADE_BY_RULES = ("results", "logs", "benchmarks")
"""Folders below the working directory that contain a folder for each study."""
_DIGITS = 2
"""Digits of a key that name a folder of the cache."""


def cache_errors(named: str) -> Iterator[ErrorDetails]:
    """Yield an error if a folder cannot be the cache, whose oldest entries are deleted.

    Args:
        named: The setting ``cache``.
    """
    try:
        folder = Path(named).expanduser()
    except RuntimeError:
        yield ErrorDetails(
            "cache", f"no home folder of {Path(named).parts[0]} is known", "Write the complete path."
        )
        return
    here = folder.resolve()
    for name in MADE_BY_RULES:
        output = Path(name).resolve()
        if here == output or (
            output in here.parents and not here.relative_to(output).parts[0].startswith(".")
        ):
            yield ErrorDetails(
                "cache",
                f"{named} is a folder of studies",
                "Set it to a folder of its own, such as results/.cache.",
            )
            return
    if here.exists() and not here.is_dir():
        yield ErrorDetails("cache", f"{named} is not a folder", "Set it to a folder, such as results/.cache.")
    elif other := next(_others(here), None):
        yield ErrorDetails(
            "cache",
            f"{named} contains {other.relative_to(here)}, which is no entry of a cache",
            "Set it to a folder of its own, such as results/.cache.",
        )


def _others(folder: Path) -> Iterator[Path]:
    """Yield paths in a folder that are no entries, except hidden ones next to entries, which network disks create."""
    try:
        for path in sorted(folder.iterdir()):
            if not (len(path.name) == _DIGITS and is_key(path.name * 32) and path.is_dir()):
                yield path
                continue
            entries = (entry for entry in path.iterdir() if not entry.name.startswith("."))
            yield from (
                entry for entry in entries if not (is_key(entry.name) and entry.name.startswith(path.name))
            )
    except OSError:  # missing, or owned by another user
        return


def cache_warning(named: str) -> str:
    """Return a warning if this user cannot read and write the cache, else an empty text."""
    folder = Path(named).expanduser().absolute()
    existing = next(path for path in (folder, *folder.parents) if os.path.lexists(path))
    if os.access(existing, os.R_OK | os.W_OK | os.X_OK) and existing.is_dir():
        return ""
    return f"cache: {named} cannot be read and written by this user. Finished work will not be reused."
