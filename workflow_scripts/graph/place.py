"""Where the pipeline lies and where it works, which may be two folders.

``--directory``, a call from elsewhere and a workflow that uses this one as a module all leave the clone where it is and
put results into another working directory. Jobs find the clone's code by PYTHONPATH, and look for no module in the
working directory (PYTHONSAFEPATH), where a file may have the name of one of Python's. The clone's resources are linked
into the working directory, so that a file has one name, and a record one content, wherever a study is made.
"""

import hashlib
import json
import os
import sys
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.provenance.closure import ROOT

RESOURCES = "resources"


def clone_folder(workflow: Any) -> str:
    """The folder of the Snakefile that is being read, seen from the working directory.

    Ends the process with a line if it is not a folder on this machine: jobs import the Python package in it.
    """
    folder: str = workflow.current_basedir.get_path_or_uri(secret_free=True)
    if not Path(folder).is_dir():
        sys.exit(
            f"ConfigError: {folder}: jobs import the Python package next to the Snakefile. "
            "Clone the repository and point `snakefile:` at the clone."
        )
    return os.path.relpath(folder)


def open_place(clone: Path) -> None:
    """Make code and resources of the clone reachable from the working directory."""
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ |= {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONSAFEPATH": "1"}
    here = Path(RESOURCES)
    if (clone / RESOURCES).resolve() == here.resolve():
        return
    here.mkdir(exist_ok=True)
    for folder in (clone / RESOURCES).iterdir():
        link = here / folder.name
        if folder.is_dir() and (not link.exists() or _leads_to_another_clone(link, folder)):
            link.unlink(missing_ok=True)
            link.symlink_to(folder.resolve())


def _leads_to_another_clone(link: Path, folder: Path) -> bool:
    """Whether a link was made for another clone; a link of the user's own leads elsewhere."""
    if not link.is_symlink() or link.samefile(folder):
        return False
    resources = link.resolve().parent
    return resources.name == RESOURCES and (resources.parent / "Snakefile").is_file()


def is_in_job() -> bool:
    """Whether Snakemake was started by Snakemake, to run a job on its own or on another machine."""
    return "--mode" in sys.argv


def call_words() -> list[str]:
    """The command line behind ``snakemake``, of a call by a person; none where another program reads the Snakefile."""
    program = Path(sys.argv[0])
    by_name = "snakemake" in (program.name, program.parent.name)
    return sys.argv[1:] if by_name and not is_in_job() else []


STUDIES = Path(".snakemake/studies")
"""Below the working directory: the configuration with which each study was run last."""
HASHES = Path(".snakemake/hashes.json")
"""Size, date, inode and sha256 of files outside the repository; it is computed again if one of the others differs."""
UNREADABLE = "unreadable"
_SETTLED_SECONDS = 2.0
"""A file that was written this recently may be written again under the same date."""


class Call(NamedTuple):
    """Files and values that a call of snakemake adds to the repository's configuration."""

    configfiles: list[str]
    config: dict[str, Any]
    """Of --config."""


def note_call(study: str, configfiles: Iterable[str | Path], config: Mapping[str, Any]) -> None:
    """Note a study's configuration when a run starts that is not a dry run."""
    asked = {"configfiles": [*map(from_here, configfiles)], "config": dict(config)}
    write_note(STUDIES / f"{study}.json", json.dumps(asked, indent=1))


def from_here(file: str | Path) -> str:
    """The path of a file seen from the working directory, which may be copied or moved with what it holds."""
    path, here = Path(file).absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)


def last_call(study: str) -> Call | None:
    """The call of a study's last run in this folder; None if there was none."""
    note = read_note(STUDIES / f"{study}.json")
    return Call(**note) if note else None


def write_note(path: Path, text: str) -> None:
    """Write a note whole or not at all.

    ``artefacts.atomic`` would do it too, but takes PyArrow along, which a dry run can do without.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.tmp")
    temporary.write_text(text, "utf-8")
    temporary.replace(path)


def read_note(path: Path) -> dict[str, Any]:
    """The JSON of a note; nothing where it is missing or damaged."""
    with suppress(OSError, ValueError):
        note = json.loads(path.read_text("utf-8"))
        if isinstance(note, dict):
            return note
    return {}


def sha256_now(path: Path) -> str:
    """The SHA-256 of a file, from the notes if the file has not changed since; ``UNREADABLE`` if it cannot be read."""
    name, hashes = str(path.absolute()), _noted_hashes(HASHES.absolute())
    try:
        stat = path.stat()
        state = [stat.st_size, stat.st_mtime_ns, stat.st_ino]
        *noted, sha256 = hashes.get(name, [""])
        if noted == state:
            return str(sha256)
        with path.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return UNREADABLE
    if time.time() - stat.st_mtime > _SETTLED_SECONDS:
        hashes[name] = [*state, found]
        with suppress(OSError):  # then it is hashed again next time
            write_note(HASHES, json.dumps(hashes))
    return found


_noted_hashes = cache(read_note)
