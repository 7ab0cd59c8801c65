"""What every command of the audit needs: paths as records write them, records, and a place to print."""

import json
import os
import re
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workflow_scripts.artefacts import RECORD_FILE, read_record, read_seal
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import Record

_OUTSIDE = ("package:", "hub:", "local:", "translator:", "llm:")
_RULE = re.compile(r"[a-z][a-z0-9_]*")
_CONTROL = re.compile(r"\\u00(0|1|7f|8|9)")  # as JSON spells what a terminal would obey; line feeds are \n
_WIDTH_OF_A_FILE = 240  # paths stay on one line where nobody looks at a terminal's edge


def is_outside(path: str) -> bool:
    """Whether a record names a source outside the pipeline, which no file below the root stands for."""
    return path.startswith(_OUTSIDE)


def name_of(path: str | Path, root: Path) -> str:
    """``path`` as records write it: relative to ``root``, without following links.

    Args:
        path: Absolute, or relative to the working directory.
        root: Folder where snakemake ran.
    """
    return Path(os.path.relpath(path, root)).as_posix()


@cache  # records name the same few paths over and over
def recorded_name(path: str, root: Path) -> str:
    """The one spelling of a path that a record holds."""
    return name_of(root / path, root)


def artefact_at(name: str, root: Path) -> str:
    """The artefact that a file belongs to: its model folder where it is part of one, else the file."""
    for folder in (Path(name), *Path(name).parents):
        if folder != Path() and (root / folder / RECORD_FILE).is_file():
            return folder.as_posix()
    return name


def seal_at(path: Path) -> str | None:
    """The seal that an artefact carries, not checked; None for any other file."""
    return read_seal(path / RECORD_FILE if path.is_dir() else path)


def record_at(path: Path) -> Record | None:
    """The record that an artefact carries; None for a file that carries none.

    Raises:
        DataError: if the file is missing, so damaged that its record cannot be read, or its record is none that
            this pipeline writes: a seal proves that a file is whole, not who wrote it.
    """
    try:
        record = read_record(path)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file. Run the rule that makes it: snakemake {path}.") from error
    except (ValueError, KeyError, OSError) as error:
        raise DataError(f"{path}: its record cannot be read; damaged. Delete it and rerun.") from error
    if record is not None and (fault := _fault(record)):
        raise DataError(f"{path}: its record holds {fault}; no record of this pipeline. Delete it and rerun.")
    return record


def _fault(record: Record) -> str | None:
    """What a record holds that could lead a reader astray: names that leave the folder, control characters."""
    inside = [given.path for given in record.inputs.values() if not is_outside(given.path)]
    for name in (*inside, *record.outputs, *record.code, *record.files):
        if Path(name).is_absolute() or ".." in Path(name).parts:
            return f"the path {name!r}"
    if not _RULE.fullmatch(record.rule):
        return f"the rule {record.rule!r}"
    return "control characters" if _CONTROL.search(record.to_json()) else None


def artefact_record(path: Path) -> Record:
    """The record of an artefact.

    Raises:
        DataError: as ``record_at``, and if the file carries no record.
    """
    record = record_at(path)
    if record is None:
        raise DataError(
            f"{path}: carries no record; not an artefact. Name a file or model folder below results/."
        )
    return record


def flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings under dotted keys; lists are values."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def made_by(record: Record) -> str:
    """The job that a record is of: rule and wildcards."""
    return f"{record.rule}({', '.join(f'{key}={value}' for key, value in record.wildcards.items())})"


def table(*columns: str, numbers: Iterable[str] = ()) -> Table:
    """An empty table whose long paths fold; columns in ``numbers`` stand to the right."""
    made = Table(show_edge=False, pad_edge=False)
    for column in columns:
        made.add_column(column, overflow="fold", justify="right" if column in set(numbers) else "left")
    return made


def console() -> Console:
    """Standard output; wide where it is no terminal."""
    return Console(
        width=None if sys.stdout.isatty() else _WIDTH_OF_A_FILE, highlight=False, markup=False, emoji=False
    )


def print_json(data: object) -> None:
    """Write ``data`` to standard output."""
    sys.stdout.write(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
