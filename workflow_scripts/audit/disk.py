"""List the files of the studies under audit, and read each of them once."""

import os
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import track

from workflow_scripts.audit.lookup import artefact_of, name_of, record_at
from workflow_scripts.columns.training import DROPPED, DROPPED_FILE
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import (
    CHECKSUMMED_SUFFIXES,
    RECORD_FILE,
    is_timestamp,
    read_checksum,
    sealed_identity,
    verify_checksum,
)
from workflow_scripts.provenance.kept import FOLDER as KEPT
from workflow_scripts.provenance.record import Record, sha256_of
from workflow_scripts.training.manifests import MANIFEST

_CHECKPOINTS = "checkpoints"
_THREADS = 2  # one computes hashes while the other waits for the disk


@dataclass
class Inventory:
    """The files of the studies under audit, named as in records."""

    sizes: dict[str, int] = field(default_factory=dict)
    strays: dict[str, str] = field(default_factory=dict)
    """What no job leaves that ends well, and what it is."""
    checkpoints: list[str] = field(default_factory=list)
    """Folders of one complete checkpoint of a training each."""
    tasks: list[str] = field(default_factory=list)
    """Tables of finished tasks of evaluations (``evaluation.task_by_task``), from which a later job goes on."""

    @cached_property
    def models(self) -> set[str]:
        """Model folders: those with a record, even a damaged one."""
        return {Path(name).parent.as_posix() for name in self.sizes if Path(name).name == RECORD_FILE}

    @cached_property
    def dropped(self) -> dict[str, str]:
        """Weights that a study does not keep (``keep_models``), by file, and the hash that each had."""
        found: dict[str, str] = {}
        for name in self.sizes:
            if Path(name).name == DROPPED_FILE:
                with suppress(pa.ArrowInvalid, OSError):  # damaged, which is a finding of its own
                    rows = pq.read_table(name, schema=DROPPED).to_pylist()
                    found |= {row["file"]: row["sha256"] for row in rows}
        return found


def collect(studies: Iterable[Path]) -> Inventory:
    """List the files below ``studies``; links are followed, what jobs go on from is listed apart."""
    inventory = Inventory()
    seen: set[str] = set()
    for study in studies:
        _collect(inventory, study, seen)
    return inventory


def _collect(inventory: Inventory, folder: Path, seen: set[str]) -> None:
    real = os.path.realpath(folder)
    if real in seen:  # a link to a folder that was listed already
        return
    seen.add(real)
    for path in sorted(folder.iterdir()):
        name = name_of(path)
        if path.name.startswith(".") and path.name.endswith((".tmp", ".old")):  # as `artefacts` names them
            inventory.strays[name] = "left behind by a job that was killed, or being written"
        elif path.is_dir() and path.name == KEPT:
            continue  # links to what is here or was
        elif path.is_dir() and (path.name == _CHECKPOINTS or path.suffix == f".{_CHECKPOINTS}"):
            # A checkpoint without a manifest was being written when its training was killed, which passes over it.
            inventory.checkpoints += [name_of(file.parent) for file in sorted(path.glob(f"step*/{MANIFEST}"))]
            inventory.tasks += [name_of(table) for table in sorted(path.glob("*.parquet"))]
        elif path.is_dir():
            _collect(inventory, path, seen)
        elif not path.is_file():
            inventory.strays[name] = "neither a file nor a folder; perhaps a broken link"
        elif not is_timestamp(path):
            inventory.sizes[name] = path.stat().st_size


class Inspection(NamedTuple):
    """What reading a file once has shown."""

    checksum: str | None = None
    identity: str = ""
    """What a job that reads the file would write into its record; empty where nothing was hashed."""
    record: Record | None = None
    damaged: bool = False


def is_sealed(path: Path) -> bool:
    """Whether an artefact of this name carries a checksum, unless a model's record lists it."""
    return path.suffix in CHECKSUMMED_SUFFIXES or path.name == RECORD_FILE


def inspect(path: Path, *, part_of_model: bool = False, hashing: bool = True) -> Inspection:
    """Read a file once.

    Args:
        path: The file.
        part_of_model: Whether a model folder's record lists its hash, which is then checked instead of a checksum.
        hashing: Whether to look for damage, or to believe what is stored.
    """
    checksum = read_checksum(path) if is_sealed(path) and not part_of_model else None
    if checksum is None:
        return Inspection(identity=sha256_of(path) if hashing else "")
    try:
        if hashing:
            verify_checksum(path)
    except DataError:
        return Inspection(checksum, damaged=True)
    known = Inspection(checksum, str(sealed_identity(path)))
    with suppress(DataError):  # intact, but written by another version of this pipeline
        return known._replace(record=record_at(path))
    return known


def inspect_all(inventory: Inventory, *, show_progress: bool = False) -> dict[str, Inspection]:
    """Read every file of ``inventory`` once; ``show_progress`` draws a bar on standard error."""

    def inspect_one(name: str) -> Inspection:
        part = artefact_of(name, inventory.models.__contains__) != name
        return inspect(Path(name), part_of_model=part)

    names = sorted(inventory.sizes, key=lambda name: (-inventory.sizes[name], name))  # the largest first
    screen, hidden = Console(stderr=True), not show_progress
    with ThreadPoolExecutor(_THREADS) as pool:
        found = pool.map(inspect_one, names)
        seen = track(found, "hashing", len(names), console=screen, transient=True, disable=hidden)
        return dict(zip(names, seen, strict=True))
