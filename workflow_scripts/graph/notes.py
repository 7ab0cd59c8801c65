"""Notes below .snakemake in the working directory: calls of earlier runs, and hashes of external files.

Notes can be deleted at any time: they save work or record the calls of a study, and change no result.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.graph.clone import from_here

STUDIES = Path(".snakemake/studies")
"""Folder below the working directory: the configuration of each study's last run."""
_MADE = Path(".snakemake/made")
"""Folder below the working directory: the calls of each study, and for each file the number of its call."""
HASHES = Path(".snakemake/hashes.json")
"""Size, date, inode and sha256 of external files; the sha256 is recomputed if one of the others differs."""
_SETTLED_SECONDS = 2.0
"""Minimum age of a file whose date is trusted, since a younger one may change under the same date."""


class Call(NamedTuple):
    """Files and values that a call of snakemake adds to the repository's configuration."""

    configfiles: list[str]
    config: dict[str, Any]
    """Values given by --config."""

    def options(self) -> tuple[str, ...]:
        """Return snakemake's options for this configuration."""
        given = [f"{key}={json.dumps(value)}" for key, value in self.config.items()]
        options = {"--configfile": self.configfiles, "--config": given}
        return tuple(word for name, values in options.items() if values for word in (name, *values))


def note_call(
    study: str, configfiles: Iterable[str | Path], config: Mapping[str, Any], files: Iterable[str] = ()
) -> None:
    """Record a study's configuration, and the files to make, when a run other than a dry run starts."""
    asked = {"configfiles": [*map(from_here, configfiles)], "config": dict(config)}
    write_note(STUDIES / f"{study}.json", json.dumps(asked, indent=1))
    note = read_note(_MADE / f"{study}.json")
    calls = note.get("calls", [])
    if asked not in calls:
        calls = [*calls, asked]
    call_numbers = note.get("made", {}) | dict.fromkeys(files, calls.index(asked))
    write_note(_MADE / f"{study}.json", json.dumps({"calls": calls, "made": call_numbers}))


def last_call(study: str) -> Call | None:
    """Return the call of a study's last run in this folder; None without one."""
    note = read_note(STUDIES / f"{study}.json")
    return Call(**note) if note else None


def call_for(study: str, file: str) -> Call | None:
    """Return the call that made a file here or, if unknown, the study's last call; None without one."""
    note = read_note(_MADE / f"{study}.json")
    number = note.get("made", {}).get(file)
    return last_call(study) if number is None else Call(**note["calls"][number])


def options_for(file: str) -> tuple[str, ...] | None:
    """Return snakemake's options for a file of a study, such as results/<study>/report.html; None if unknown."""
    _, study, *_ = (*Path(file).parts, "", "")
    call = call_for(study, file)
    return call.options() if call else None


def write_note(path: Path, text: str) -> None:
    """Write a note atomically.

    ``artefacts.atomic`` would also import PyArrow, which a dry run does not need.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)


def read_note(path: Path) -> dict[str, Any]:
    """Return the JSON of a note; empty if it is missing or damaged."""
    with suppress(OSError, ValueError):
        note = json.loads(path.read_text("utf-8"))
        if isinstance(note, dict):
            return note
    return {}


def sha256_now(path: Path) -> str:
    """Return the SHA-256 of a file, from the notes if the file is unchanged."""
    name, hashes, stat = str(path.absolute()), _noted_hashes(HASHES.absolute()), path.stat()
    state = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
    *noted, sha256 = hashes.get(name, [""])
    if noted != state:
        with path.open("rb") as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
        if time.time() - stat.st_mtime > _SETTLED_SECONDS:
            hashes[name] = [*state, sha256]
            with suppress(OSError):  # on a full or read-only disk, files are hashed each time
                write_note(HASHES, json.dumps(hashes))
    return str(sha256)


_noted_hashes = cache(read_note)
