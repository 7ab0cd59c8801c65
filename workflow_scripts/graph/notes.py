"""Notes that the graph keeps below ``.snakemake`` for the next process: they can be made again at any time."""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

STUDIES = Path(".snakemake/studies")
"""Below the working directory: the configuration with which each study was run last."""
HASHES = Path(".snakemake/hashes.json")
"""Hashes of files outside the repository, each computed once: one of the same size, date and inode has the same."""
UNREADABLE = "unreadable"
_SETTLED_SECONDS = 2.0
"""A file that was written so lately may be written again under the same date."""


class Asked(NamedTuple):
    """The configuration of a call of snakemake, beside the files of the Snakefile."""

    configfiles: list[str]
    config: dict[str, Any]
    """Of --config."""


def note_asked(study: str, configfiles: Iterable[str | Path], config: Mapping[str, Any]) -> None:
    """Leave word of a study's configuration, at the start of a run that is not a dry one."""
    asked = {"configfiles": [*map(from_here, configfiles)], "config": dict(config)}
    write_note(STUDIES / f"{study}.json", json.dumps(asked, indent=1))


def from_here(file: str | Path) -> str:
    """The path of a file seen from the working directory, which may be copied or moved with what it holds."""
    path, here = Path(file).absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def asked_last(study: str) -> Asked | None:
    """What the last run of a study in this folder was asked with; None if there was none."""
    note = STUDIES / f"{study}.json"
    return Asked(**json.loads(note.read_text("utf-8"))) if note.is_file() else None


def write_note(path: Path, text: str) -> None:
    """Write a note whole or not at all.

    ``artefacts.atomic`` would do it too, but takes PyArrow along, which a dry run can do without.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)


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
        notes = json.loads(HASHES.read_text("utf-8"))
        if isinstance(notes, dict):
            return notes
    return {}


def _note(name: str, entry: list[int | str]) -> None:
    """Add a file to the notes; where they cannot be written, it is hashed again next time."""
    with suppress(OSError):
        write_note(HASHES, json.dumps({**_noted(), name: entry}))
