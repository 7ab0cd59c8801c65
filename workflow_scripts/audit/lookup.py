"""Find artefacts and their records by path. A model folder goes by the name of its record, as in other records."""

import os
import re
from collections.abc import Callable, Iterator
from itertools import accumulate
from pathlib import Path
from typing import Any

from workflow_scripts.errors import DataError, how_to_make
from workflow_scripts.provenance.artefacts import OUTSIDE, RECORD_FILE, read_record
from workflow_scripts.provenance.key import job_key
from workflow_scripts.provenance.origin import Origin
from workflow_scripts.provenance.record import Input, Record

_RULE = re.compile(r"[a-z][a-z0-9_]*")
_CONTROL = re.compile(r"\\u00(0|1|7f|8|9)")  # control characters, as JSON escapes them; a line feed is \n


def is_outside(path: str) -> bool:
    """Whether a path in a record names a source outside the pipeline, rather than a file below the root."""
    return path.startswith(OUTSIDE)


def read_inside(record: Record) -> Iterator[Input]:
    """The inputs of a record that are files of the pipeline."""
    return (given for given in record.inputs.values() if not is_outside(given.path))


def name_of(path: str | Path) -> str:
    """``path`` as records write it: relative to the folder where snakemake ran, links not followed."""
    return Path(os.path.relpath(path)).as_posix()


def _has_record(folder: str) -> bool:
    return Path(folder, RECORD_FILE).is_file()


def artefact_of(name: str, is_model: Callable[[str], bool] = _has_record) -> str:
    """The file whose record tells of ``name``: that of the model folder which it is or is part of, or itself."""
    folders = accumulate(name.split("/"), "{}/{}".format)
    return next((f"{folder}/{RECORD_FILE}" for folder in folders if is_model(folder)), name)


def check_place(place: Path) -> None:
    """Check, before anything is made, that what is made can be put at ``place``.

    Raises:
        DataError: if a file stands where a folder is needed.
    """
    blocked = next(
        (above for above in place.absolute().parents if above.exists() and not above.is_dir()), None
    )
    if blocked is not None:
        raise DataError(f"{place}: {blocked} is a file, not a folder. Name another place.")


def check_file_place(place: Path) -> None:
    """Check the same of a file.

    Raises:
        DataError: if it is a folder, or a file stands where a folder is needed.
    """
    if place.is_dir():
        raise DataError(f"{place}: a folder. Name a file.")
    check_place(place)


def record_at(path: Path) -> Record | None:
    """The record stored in an artefact; None for a file without one.

    Raises:
        DataError: if the file is missing, its record cannot be read, or its record is not one that this pipeline
            writes: a checksum proves that a file is intact, not who wrote it.
    """
    try:
        record = read_record(path)
    except FileNotFoundError as error:
        raise DataError(f"{path}: no such file. {how_to_make(path)}") from error
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as error:
        raise DataError(f"{path}: damaged; its record cannot be read. Delete the file and rerun.") from error
    if record is not None and (fault := _fault(record)):
        raise DataError(
            f"{path}: its record holds {fault}, so it is no record of this pipeline. Delete the file and rerun."
        )
    return record


def _fault(record: Record) -> str | None:
    """What makes a record unsafe to use: paths that lead out of the folder, control characters."""
    read = [given.path for given in read_inside(record)]
    for name in (*read, *record.outputs, *record.meaning, *record.files):
        if Path(name).is_absolute() or ".." in Path(name).parts:
            return f"the path {name!r}"
    if not _RULE.fullmatch(record.rule):
        return f"the rule {record.rule!r}"
    return "control characters" if _CONTROL.search(record.to_json()) else None


def key_of(record: Record) -> str:
    """The key of the job that a record tells of, computed again; another one stands in a record that was altered."""
    return job_key(
        record.rule,
        wildcards=record.wildcards,
        settings=record.settings,
        inputs={role: one.sha256 for role, one in record.inputs.items() if not is_outside(one.path)},
        meaning=record.meaning,
        packages=record.packages,
    )


def artefact_record(path: Path) -> Record:
    """The record of an artefact.

    Raises:
        DataError: as ``record_at``, and if the file has no record.
    """
    record = record_at(path)
    if record is None:
        raise DataError(
            f"{path}: not an artefact, since it has no record. Name a file or model folder below results/."
        )
    return record


def flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings with dotted keys; lists are kept as values."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if isinstance(value, dict) and value:
            found |= flat(value, f"{prefix}{key}.")
        else:
            found[f"{prefix}{key}"] = value
    return found


def made_by(record: Record) -> str:
    """The job that wrote a record: its rule and wildcards."""
    return f"{record.rule}({', '.join(f'{key}={value}' for key, value in record.wildcards.items())})"


def made_on(origin: Origin) -> str:
    """The machine on which an artefact was made."""
    parts = [origin.processor, origin.capability, f"{origin.threads} threads", origin.gpu]
    return ", ".join([*filter(None, parts), f"Python {origin.python}"])
