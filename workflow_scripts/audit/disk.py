"""What lies in the studies under audit: every file listed, and read once."""

import os
from collections import defaultdict
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from workflow_scripts.artefacts import (
    RECORD_FILE,
    RECORD_KEY,
    SEALED_SUFFIXES,
    check_seal,
    is_timestamp,
    read_seal,
)
from workflow_scripts.audit.reading import name_of, record_at
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import Record, sha256_of

Damage = Literal["changed", "truncated"]

_CHECKPOINTS = "checkpoints"
_THREADS = 2  # one hashes while the other waits for the disk
_TAIL_BYTES = 4 << 20
_LAST = {
    ".parquet": (b"PAR1",),
    ".svg": (b"-->", b"</svg>"),
    ".html": (b"-->", b"</html>"),
    ".json": (b"\n}",),
}
"""How a whole file of each kind ends."""


@dataclass
class Tree:
    """The files of the studies under audit, by the name that records give them."""

    root: Path
    sizes: dict[str, int] = field(default_factory=dict)
    leftovers: list[str] = field(default_factory=list)
    oddities: list[str] = field(default_factory=list)
    checkpoint_files: int = 0
    checkpoint_bytes: int = 0
    _model_of: dict[str, str | None] = field(default_factory=dict)
    """Folder to the model folder that it is or lies in; thousands of files share a folder."""

    @cached_property
    def models(self) -> set[str]:
        """Model folders: those with a record, however damaged."""
        return {Path(name).parent.as_posix() for name in self.sizes if Path(name).name == RECORD_FILE}

    @cached_property
    def parts(self) -> dict[str, list[str]]:
        """Model folder to its files, the record's among them."""
        found = defaultdict(list)
        for name in self.sizes:
            model = self.model_of(name)
            if model is not None:
                found[model].append(name)
        return dict(found)

    def model_of(self, name: str) -> str | None:
        """The model folder that a file is part of."""
        folder, _, _ = name.rpartition("/")
        if folder and folder not in self._model_of:
            self._model_of[folder] = folder if folder in self.models else self.model_of(folder)
        return self._model_of.get(folder)


def collect(root: Path, studies: Iterable[Path]) -> Tree:
    """List the files below ``studies``; links are followed, unfinished training is only counted."""
    tree = Tree(root)
    seen: set[str] = set()
    for study in studies:
        _collect(tree, study, seen)
    return tree


def _collect(tree: Tree, folder: Path, seen: set[str]) -> None:
    real = os.path.realpath(folder)
    if real in seen:  # a link to a folder above it
        return
    seen.add(real)
    for path in sorted(folder.iterdir()):
        name = name_of(path, tree.root)
        if _is_leftover(path.name):
            tree.leftovers.append(name)
        elif path.is_dir() and (path.name == _CHECKPOINTS or path.suffix == f".{_CHECKPOINTS}"):
            sizes = [file.stat().st_size for file in path.rglob("*") if file.is_file()]
            tree.checkpoint_files += len(sizes)
            tree.checkpoint_bytes += sum(sizes)
        elif path.is_dir():
            _collect(tree, path, seen)
        elif not path.is_file():
            tree.oddities.append(name)
        elif not is_timestamp(path):
            tree.sizes[name] = path.stat().st_size


def _is_leftover(name: str) -> bool:
    """Whether it is one of the temporary names that ``artefacts`` writes under."""
    return name.startswith(".") and name.endswith((".tmp", ".old"))


class Look(NamedTuple):
    """What one reading of a file showed."""

    seal: str | None = None
    sha256: str | None = None
    """Of a file without a seal, or part of a model folder."""
    record: Record | None = None
    damage: Damage | None = None

    @property
    def identity(self) -> str:
        """What a job that reads the file would record."""
        return str(self.seal or self.sha256)


def look_at(path: Path, *, part_of_model: bool) -> Look:
    """Read a file once.

    Args:
        path: The file.
        part_of_model: Whether a model folder's record lists its hash; it is then not judged by its seal.
    """
    sealed = path.suffix in SEALED_SUFFIXES or path.name == RECORD_FILE
    if part_of_model:
        return Look(seal=read_seal(path) if sealed else None, sha256=sha256_of(path))
    try:
        seal = check_seal(path)
    except DataError:
        return _without_whole_seal(path, sealed)
    with suppress(DataError):  # whole, but written by another version of this pipeline
        return Look(seal=seal, record=record_at(path))
    return Look(seal=seal)


def _without_whole_seal(path: Path, sealed: bool) -> Look:
    seal = read_seal(path)
    if seal is not None or (sealed and (path.name == RECORD_FILE or _was_ours(path))):
        return Look(seal=seal, damage=_damage(path))
    return Look(sha256=sha256_of(path))


def glance_at(path: Path) -> Look:
    """The seal and record that a file says it has; nothing is hashed."""
    if path.suffix not in SEALED_SUFFIXES and path.name != RECORD_FILE:
        return Look()
    seal = read_seal(path)
    with suppress(DataError):
        return Look(seal=seal, record=record_at(path))
    return Look(seal=seal)


def _end(path: Path, length: int) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - length))
        return file.read()


def _damage(path: Path) -> Damage:
    return "changed" if _end(path, 64).rstrip().endswith(_LAST.get(path.suffix, (b"",))) else "truncated"


def _was_ours(path: Path) -> bool:
    """Whether a table or page without a seal is a damaged artefact: it holds a record, or is cut short."""
    return RECORD_KEY.encode() in _end(path, _TAIL_BYTES) or _damage(path) == "truncated"


def look_at_all(tree: Tree, advance: Callable[[int], None]) -> dict[str, Look]:
    """Read every file of ``tree`` once; ``advance`` is told the bytes of each."""

    def look(name: str) -> Look:
        part = Path(name).name != RECORD_FILE and tree.model_of(name) is not None
        found = look_at(tree.root / name, part_of_model=part)
        advance(tree.sizes[name])
        return found

    largest_first = sorted(tree.sizes, key=lambda name: (-tree.sizes[name], name))
    with ThreadPoolExecutor(_THREADS) as pool:
        return dict(zip(largest_first, pool.map(look, largest_first), strict=True))
