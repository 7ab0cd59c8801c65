"""Notes that the graph keeps below ``.snakemake`` for the next process: they can be made again at any time."""

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

STUDIES = Path(".snakemake/studies")
"""Below the working directory: the configuration with which each study was run last."""


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
