"""Artefacts and their records: of one file, or all that lie below some folders, and which was made from which.

A model folder goes by the name of its record, as in other records.
"""

import os
import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cached_property
from itertools import accumulate
from pathlib import Path
from typing import NamedTuple, Protocol

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.progress import track

from workflow_scripts.columns.training import DROPPED, DROPPED_FILE
from workflow_scripts.errors import DataError, how_to_make
from workflow_scripts.provenance.artefacts import (
    CHECKSUMMED_SUFFIXES,
    OUTSIDE,
    RECORD_FILE,
    is_timestamp,
    read_record,
    seal_of,
    verify_checksum,
)
from workflow_scripts.provenance.record import Input, Record, sha256_of
from workflow_scripts.training.manifests import MANIFEST

_RULE = re.compile(r"[a-z][a-z0-9_]*")
_CONTROL = re.compile(r"\\u00(0|1|7f|8|9)")  # control characters, as JSON escapes them; a line feed is \n
_RESULTS = Path("results")
_CHECKPOINTS = "checkpoints"
LOCK_SUFFIX = ".lock.json"
_THREADS = 2  # one computes hashes while the other waits for the disk

# One file


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
    if record is not None and not _is_safe(record):
        found = "its record holds paths that lead out of this folder, or control characters"
        raise DataError(f"{path}: {found}, as no record of this pipeline does. Delete the file and rerun.")
    return record


def _is_safe(record: Record) -> bool:
    read = (given.path for given in read_inside(record))
    names = map(Path, (*read, *record.outputs, *record.meaning, *record.files))
    inside = not any(name.is_absolute() or ".." in name.parts for name in names)
    return bool(inside and _RULE.fullmatch(record.rule) and not _CONTROL.search(record.to_json()))


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


def key_of(record: Record) -> str:
    """The key of the job that a record tells of, computed again; another one stands in a record that was altered."""
    inside = {role: one.sha256 for role, one in record.inputs.items() if not is_outside(one.path)}
    return record.key_with(inside)


class Made(Protocol):
    """A record, or a job that is planned."""

    @property
    def rule(self) -> str:
        """Name of the rule."""

    @property
    def wildcards(self) -> Mapping[str, str]:
        """Values of its wildcards."""


def made_by(made: Made) -> str:
    """The job behind a record or a plan: its rule and wildcards."""
    return f"{made.rule}({', '.join(f'{key}={value}' for key, value in made.wildcards.items())})"


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
    seal = seal_of(path) if is_sealed(path) and not part_of_model else None
    if seal is None:
        return Inspection(identity=sha256_of(path) if hashing else "")
    try:
        if hashing:
            verify_checksum(path)
    except DataError:
        return Inspection(seal.checksum, damaged=True)
    known = Inspection(seal.checksum, seal.identity)
    with suppress(DataError):  # intact, but written by another version of this pipeline
        return known._replace(record=record_at(path))
    return known


# All files of some folders


def study_folder(named: str) -> Path:
    """The folder of a study that is named by it, as results/demo, or by the study's name alone."""
    folder = Path(named)
    return _RESULTS / folder if not folder.exists() and (_RESULTS / folder).is_dir() else folder


def _here() -> list[Path]:
    """Folders of studies, below which results lie."""
    return sorted(_RESULTS.glob("[!.]*/"))  # one that begins with a dot is the cache


def studies_of(named: Iterable[Path]) -> list[Path]:
    """The folders to audit: those that are named, or each below ``results``.

    Raises:
        DataError: if there is none, since nothing to check does not mean that nothing is wrong.
    """
    studies = list(named) or _here()
    for folder in studies or [_RESULTS]:
        if not folder.is_dir() or not studies:
            advice = (
                f"Name one of {', '.join(map(str, here))}, or make it" if (here := _here()) else "Make it"
            )
            raise DataError(f"{folder}: no such study. {advice}: snakemake --configfile CONFIG.")
    return studies


class Records:
    """The records below some folders, each by the file that holds it, and how they are connected."""

    def __init__(self, folders: Iterable[Path], *, hashing: bool = True, show_progress: bool = False) -> None:
        """List the files below ``folders`` and read each once; links are followed.

        Args:
            folders: Of results, such as a study.
            hashing: Whether to look for damage, or to believe what is stored.
            show_progress: Whether to draw a bar on standard error.
        """
        self.sizes: dict[str, int] = {}
        self.strays: dict[str, str] = {}
        """What no job leaves that ends well, and what it is."""
        self.checkpoints: list[str] = []
        """Folders of one complete checkpoint of a training each."""
        folders, seen = list(folders), set[str]()
        self.folders = [name_of(folder) for folder in folders]
        for folder in folders:
            self._list(folder, seen)
        self.inspections = self._inspected(hashing, show_progress)
        self.by_file = {name: one.record for name, one in sorted(self.inspections.items()) if one.record}
        """Artefact to record, for records in intact files."""

    def _list(self, folder: Path, seen: set[str]) -> None:
        real = os.path.realpath(folder)
        if real in seen:  # a link to a folder that was listed already
            return
        seen.add(real)
        for path in sorted(folder.iterdir()):
            name = name_of(path)
            if path.name.startswith(".") and path.suffix in (".tmp", ".old"):  # as `artefacts` names them
                self.strays[name] = "left behind by a job that was killed, or being written"
            elif path.is_dir() and (path.name == _CHECKPOINTS or path.suffix == f".{_CHECKPOINTS}"):
                # One without a manifest was being written when its training was killed, which passes over it.
                self.checkpoints += [name_of(file.parent) for file in sorted(path.glob(f"step*/{MANIFEST}"))]
            elif path.is_dir():
                self._list(path, seen)
            elif path.name.endswith(LOCK_SUFFIX):
                continue  # what `lock` writes, to be kept with the numbers
            elif not path.is_file():
                self.strays[name] = "neither a file nor a folder; perhaps a broken link"
            elif not is_timestamp(path):
                self.sizes[name] = path.stat().st_size

    def _inspected(self, hashing: bool, show_progress: bool) -> dict[str, Inspection]:
        models = {Path(name).parent.as_posix() for name in self.sizes if Path(name).name == RECORD_FILE}

        def inspected(name: str) -> Inspection:
            part = artefact_of(name, models.__contains__) != name
            return inspect(Path(name), part_of_model=part, hashing=hashing)

        names = sorted(self.sizes, key=lambda name: (-self.sizes[name], name))  # the largest first
        screen, hidden = Console(stderr=True), not show_progress
        with ThreadPoolExecutor(_THREADS) as pool:
            found = pool.map(inspected, names)
            seen = track(found, "hashing", len(names), console=screen, transient=True, disable=hidden)
            return dict(zip(names, seen, strict=True))

    @cached_property
    def listed(self) -> dict[str, list[str]]:
        """Artefact or other file, existing or missing, to the artefacts whose records list it."""
        found = defaultdict(list)
        for name, record in self.by_file.items():
            for path in {*(given.path for given in read_inside(record)), *record.outputs}:
                found[path].append(name)
        return dict(found)

    @cached_property
    def readers(self) -> dict[str, set[str]]:
        """File or source to the artefacts that were made from it directly."""
        found = defaultdict(set)
        for name, record in self.by_file.items():
            for given in record.inputs.values():
                found[given.path].add(name)
        return dict(found)

    @cached_property
    def _models(self) -> set[str]:
        """Model folders: those with a record, even a damaged one, and those that a record lists."""
        records = (name for name in {*self.sizes, *self.listed} if Path(name).name == RECORD_FILE)
        return {Path(name).parent.as_posix() for name in records}

    def artefact_of(self, path: str) -> str:
        """The artefact that ``path`` is or is part of, whether or not its record is there."""
        return artefact_of(path, self._models.__contains__)

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

    def behind(self, path: str) -> set[str]:
        """The artefact that ``path`` belongs to, and all that it was made from, directly or indirectly."""
        start = self.artefact_of(path)
        return {start} | _reached(
            start, lambda name: {one.path for one in read_inside(self.by_file[name])} & self.by_file.keys()
        )

    def made_from(self, path: str) -> set[str]:
        """Every artefact made from ``path``, a file or a source as records name it, directly or indirectly."""
        return _reached(self.artefact_of(path), lambda name: self.readers.get(name, set()))


def _reached(start: str, step: Callable[[str], set[str]]) -> set[str]:
    """All that is reached from ``start`` by any number of steps."""
    found: set[str] = set()
    pending = {start}
    while pending:
        pending = set().union(*map(step, pending)) - found
        found |= pending
    return found
