"""Hashes of files outside the repository, each computed once: one of the same size, date and inode has the same."""

import hashlib
import json
import time
from contextlib import suppress
from pathlib import Path

from workflow_scripts.graph.notes import write_note

NOTES = Path(".snakemake/hashes.json")
"""Below the working directory: it can be made again at any time, so that it is no result."""
UNREADABLE = "unreadable"
_SETTLED_SECONDS = 2.0
"""A file that was written so lately may be written again under the same date."""


def sha256_now(path: Path) -> str:
    """The sha256 of a file, from the notes if it is as it was noted; a word in its place if it cannot be read."""
    name = str(path.absolute())
    try:
        stat = path.stat()
        state = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        *noted, sha256 = _noted().get(name, [""])
        if noted == state:
            return str(sha256)
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return UNREADABLE
    if time.time() - stat.st_mtime > _SETTLED_SECONDS:
        _note(name, [*state, found])
    return found


def _noted() -> dict[str, list[int | str]]:
    """File to its size, date, inode and sha256; nothing where the notes are missing or damaged."""
    with suppress(OSError, ValueError):
        notes = json.loads(NOTES.read_text("utf-8"))
        if isinstance(notes, dict):
            return notes
    return {}


def _note(name: str, entry: list[int | str]) -> None:
    """Add a file to the notes; where they cannot be written, it is hashed again next time."""
    with suppress(OSError):
        write_note(NOTES, json.dumps({**_noted(), name: entry}))
