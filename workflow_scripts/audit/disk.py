"""List the files of the studies under audit, and read each of them once."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.audit.lookup import HERE, identity_at, name_of, record_at, recorded_name
from workflow_scripts.columns.training import DROPPED, DROPPED_FILE
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import (
    CHECKSUMMED_SUFFIXES,
    RECORD_FILE,
    RECORD_KEY,
    is_timestamp,
    read_checksum,
    verify_checksum,
)
from workflow_scripts.provenance.kept import FOLDER as KEPT
from workflow_scripts.provenance.record import Record, sha256_of

Damage = Literal["changed", "truncated"]

_CHECKPOINTS = "checkpoints"
_THREADS = 2  # one computes hashes while the other waits for the disk
_TAIL_BYTES = 4 << 20
_LAST = {
    ".parquet": (b"PAR1",),
    ".svg": (b"-->", b"</svg>"),
    ".html": (b"-->", b"</html>"),
    ".json": (b"\n}",),
}
"""How a complete file of each kind ends."""


@dataclass
class Inventory:
    """The files of the studies under audit, named as in records."""

    root: Path
    sizes: dict[str, int] = field(default_factory=dict)
    leftovers: list[str] = field(default_factory=list)
    anomalies: list[str] = field(default_factory=list)
    checkpoints: list[str] = field(default_factory=list)
    """Folders of one checkpoint of a training each, complete or not."""
    tasks: list[str] = field(default_factory=list)
    """Tables of finished tasks of evaluations (``evaluation.task_by_task``), from which a later job goes on."""
    checkpoint_files: int = 0
    checkpoint_bytes: int = 0
    _model_of: dict[str, str | None] = field(default_factory=dict)
    """Folder to the model folder that it is or is part of; a cache, since a folder may hold thousands of files."""

    @cached_property
    def models(self) -> set[str]:
        """Model folders: those with a record, even a damaged one."""
        return {Path(name).parent.as_posix() for name in self.sizes if Path(name).name == RECORD_FILE}

    @cached_property
    def parts(self) -> dict[str, list[str]]:
        """Model folder to its files, including its record."""
        found = defaultdict(list)
        for name in self.sizes:
            model = self.model_of(name)
            if model is not None:
                found[model].append(name)
        return dict(found)

    @cached_property
    def dropped(self) -> dict[str, str]:
        """Weights that a study does not keep (``keep_models``), by file, and the hash that each had."""
        found: dict[str, str] = {}
        for name in self.sizes:
            if Path(name).name == DROPPED_FILE:
                with suppress(pa.ArrowInvalid, OSError):  # damaged, which is a finding of its own
                    rows = pq.read_table(self.root / name, schema=DROPPED).to_pylist()
                    found |= {recorded_name(row["file"], self.root): row["sha256"] for row in rows}
        return found

    def model_of(self, name: str) -> str | None:
        """The model folder that a file is part of, if any."""
        folder, _, _ = name.rpartition("/")
        if folder and folder not in self._model_of:
            self._model_of[folder] = folder if folder in self.models else self.model_of(folder)
        return self._model_of.get(folder)


def collect(studies: Iterable[Path], root: Path = HERE) -> Inventory:
    """List the files below ``studies``; links are followed, what jobs go on from is listed apart."""
    inventory = Inventory(root)
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
        name = name_of(path, inventory.root)
        if _is_leftover(path.name):
            inventory.leftovers.append(name)
        elif path.is_dir() and path.name == KEPT:
            continue  # links to what is here or was
        elif path.is_dir() and (path.name == _CHECKPOINTS or path.suffix == f".{_CHECKPOINTS}"):
            _collect_checkpoints(inventory, path)
        elif path.is_dir():
            _collect(inventory, path, seen)
        elif not path.is_file():
            inventory.anomalies.append(name)
        elif not is_timestamp(path):
            inventory.sizes[name] = path.stat().st_size


def _collect_checkpoints(inventory: Inventory, folder: Path) -> None:
    tasks = sorted(folder.glob("*.parquet"))
    sizes = [file.stat().st_size for file in folder.rglob("*") if file.is_file() and file not in tasks]
    inventory.tasks += [name_of(table, inventory.root) for table in tasks]
    inventory.checkpoint_files += len(sizes)
    inventory.checkpoint_bytes += sum(sizes)
    inventory.checkpoints += [name_of(place, inventory.root) for place in sorted(folder.glob("step*/"))]


def _is_leftover(name: str) -> bool:
    """Whether this is one of the temporary names under which ``artefacts`` writes files."""
    return name.startswith(".") and name.endswith((".tmp", ".old"))


class Inspection(NamedTuple):
    """What reading a file once has shown."""

    checksum: str | None = None
    sha256: str | None = None
    """Hash of a file that has no checksum or is part of a model folder."""
    sealed: str | None = None
    """The identity that an artefact carries."""
    record: Record | None = None
    damage: Damage | None = None

    @property
    def identity(self) -> str:
        """What a job that reads the file would write into its record."""
        return str(self.sealed or self.sha256)


def inspect(path: Path, *, part_of_model: bool) -> Inspection:
    """Read a file once.

    Args:
        path: The file.
        part_of_model: Whether a model folder's record lists its hash, which is then checked instead of a checksum.
    """
    checksummed = path.suffix in CHECKSUMMED_SUFFIXES or path.name == RECORD_FILE
    if part_of_model:
        return Inspection(checksum=read_checksum(path) if checksummed else None, sha256=sha256_of(path))
    try:
        checksum = verify_checksum(path)
    except DataError:
        return _without_valid_checksum(path, checksummed)
    known = Inspection(checksum=checksum, sealed=identity_at(path))
    with suppress(DataError):  # intact, but written by another version of this pipeline
        return known._replace(record=record_at(path))
    return known


def _without_valid_checksum(path: Path, checksummed: bool) -> Inspection:
    checksum = read_checksum(path)
    if checksum is not None or (checksummed and (path.name == RECORD_FILE or _was_ours(path))):
        return Inspection(checksum=checksum, damage=_damage(path))
    return Inspection(sha256=sha256_of(path))


def inspect_unhashed(path: Path) -> Inspection:
    """The checksum and record stored in a file; nothing is hashed."""
    if path.suffix not in CHECKSUMMED_SUFFIXES and path.name != RECORD_FILE:
        return Inspection()
    known = Inspection(checksum=read_checksum(path), sealed=identity_at(path))
    with suppress(DataError):
        return known._replace(record=record_at(path))
    return known


def _end(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - length))
        return file.read()


def _damage(path: Path) -> Damage:
    return "changed" if _end(path, 64).rstrip().endswith(_LAST.get(path.suffix, (b"",))) else "truncated"


def _was_ours(path: Path) -> bool:
    """Whether a table or page without a checksum is a damaged artefact: it holds a record, or is truncated."""
    return RECORD_KEY.encode() in _end(path, _TAIL_BYTES) or _damage(path) == "truncated"


def inspect_all(inventory: Inventory, advance: Callable[[int], None]) -> dict[str, Inspection]:
    """Read every file of ``inventory`` once; ``advance`` is called with the size of each in bytes."""

    def inspect_one(name: str) -> Inspection:
        part = Path(name).name != RECORD_FILE and inventory.model_of(name) is not None
        found = inspect(inventory.root / name, part_of_model=part)
        advance(inventory.sizes[name])
        return found

    largest_first = sorted(inventory.sizes, key=lambda name: (-inventory.sizes[name], name))
    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip(largest_first, pool.map(inspect_one, largest_first), strict=True))
