"""Finished trainings, found again by what they were made from, whichever study or clone made them.

The store is a folder that studies, and clones on one disk, share. A finished training leaves hard links to its outputs
there, under a key like its own (``provenance.key``) but for the paths of its inputs: a training reads what files hold,
and never where they are. A job of that key, of a study with another name, of another clone, or after any number of
changed settings, writes the same contents in its own place, with a record of its own, and trains nothing. Where they
were computed stays in that record (``origin``). Contents are hashed before they are served; a damaged entry is deleted,
and made again. What was not used for longest goes where the store would exceed its size.

Snakemake's own ``cache:`` holds one file of a job, or several that differ in their suffix, knows code by the text of a
rule, and would put in place a record that names another study's files.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import pyarrow.parquet as pq

from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import (
    claimed,
    identity,
    read_record,
    write_table,
    writing_model_folder,
)
from workflow_scripts.provenance.kept import link, link_or_copy
from workflow_scripts.provenance.record import Record

STORED = ("continue_mlm", "train_encoder")
"""Rules whose jobs are stored: those that take hours, and whose outputs do not say where they were made."""
FOLDER, GIGABYTES = "SEMBLANCE_STORE", "SEMBLANCE_STORE_GIGABYTES"
"""Variables that say where the store is and how large it may grow, which setting ``store`` sets."""
_GIGABYTE = 10**9
_SPEED = "speed.parquet"
"""The end of the name of a table of speeds, which carries no record."""


def entry_of(record: Record) -> Path | None:
    """The place of a job in the store; None without a store, and of a job that is not stored."""
    folder = os.environ.get(FOLDER)
    return Path(folder, *_place(record)) if folder and record.rule in STORED else None


def _place(record: Record) -> tuple[str, str]:
    read = [(role.partition("/")[0], given.sha256) for role, given in record.inputs.items()]
    key = record.key_with({f"{role}/{number}": sha256 for number, (role, sha256) in enumerate(read)})
    return key[:2], key


def put(record: Record, outputs: Sequence[Path]) -> None:
    """Store what a job has made, unless an equal one has done so; then make room.

    Args:
        record: The job's.
        outputs: Its files and model folders, of different names.
    """
    entry = entry_of(record)
    if entry is None:
        return
    with claimed(entry, Path.mkdir) as temporary:
        for path in outputs:
            link(path, temporary / path.name)
        with suppress(OSError):  # an equal job, of this or another study, was first
            temporary.rename(entry)
    _make_room(entry.parent.parent)


def _make_room(folder: Path) -> None:
    """Delete the entries that were not used for longest until the others fit."""
    left = float(os.environ[GIGABYTES]) * _GIGABYTE
    for entry in sorted(_entries(folder), key=lambda entry: entry.stat().st_mtime, reverse=True):
        left -= sum(file.stat().st_size for file in entry.rglob("*") if file.is_file())
        if left < 0:
            shutil.rmtree(entry, ignore_errors=True)


def _entries(folder: Path) -> list[Path]:
    return [entry for entry in folder.glob("??/*") if not entry.name.startswith(".")]


def holds(record: Record, outputs: Sequence[Path]) -> bool:
    """Whether all outputs of a job are stored, undamaged; an entry that is damaged is deleted, and that is said."""
    entry = entry_of(record)
    if entry is None or not entry.is_dir():
        return False
    if (fault := _fault(entry)) is None:
        return all((entry / path.name).exists() for path in outputs)
    print(f"{fault} The store's entry is deleted, and made again.")  # noqa: T201
    shutil.rmtree(entry, ignore_errors=True)
    return False


def put_back(record: Record, outputs: Sequence[Path]) -> None:
    """Write what is stored of a job in its own place, as made from its own inputs."""
    entry = entry_of(record)
    assert entry is not None, record.rule
    for path in outputs:
        stored = read_record(entry / path.name)
        if stored is None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            link_or_copy(str(entry / path.name), str(path))
            continue
        made = record.model_copy(update={"labels": stored.labels, "origin": stored.origin})
        if stored.files:
            with writing_model_folder(path, made) as folder:
                for name in stored.files:
                    (folder / name).parent.mkdir(parents=True, exist_ok=True)
                    link_or_copy(str(entry / path.name / name), str(folder / name))
        else:
            write_table(path, pq.read_table(entry / path.name).replace_schema_metadata(None), made)
    os.utime(entry)


def forget(record: Record) -> None:
    """Delete what is stored of a job."""
    if (entry := entry_of(record)) is not None:
        shutil.rmtree(entry, ignore_errors=True)


def faults(folder: Path) -> Iterator[tuple[Path, str]]:
    """Each damaged entry of a store, and what is wrong with it."""
    for entry in sorted(_entries(folder)):
        if fault := _fault(entry):
            yield entry, fault


def _fault(entry: Path) -> str | None:
    """What is wrong with an entry: contents that are not as written, or of another key; None if nothing is."""
    try:
        for path in entry.iterdir():
            if not path.name.endswith(_SPEED) and _place(_checked(path))[1] != entry.name:
                return f"{path}: another job's."
    except (DataError, OSError) as error:
        return str(error)
    return None


def _checked(path: Path) -> Record:
    """The record of an artefact that is as it was written."""
    identity(path)
    record = read_record(path)
    assert record is not None, path
    return record
