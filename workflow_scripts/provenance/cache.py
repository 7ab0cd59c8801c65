"""The cache of finished work: outputs of jobs and of tasks of suites, each under its key.

An entry is a folder, ``<cache>/<two digits>/<key>``, with the files by name and ``entry.json``, a list of their hashes.
Entries and outputs share their bytes by hard links; on another disk, and on some network disks, they are copies.
Editing an output in place also edits its hard link. Read-only files are no remedy, because Snakemake does not remake a
read-only output. Therefore files are hashed before they are used; a damaged entry is deleted, and its work is repeated.

Any number of jobs, studies, clones and users may share a cache. An entry appears by one rename, complete; if two jobs
finish the same key, the first one's entry stays. Entries are renamed before they are deleted, so a job that restores
one either has links to all of its files already, or finds nothing and computes. Only paths with the full name of an
entry are deleted. A file of another user is copied: Snakemake sets the times of outputs, which only the owner may do.

The cache only saves work, so an error of its file system is printed and stops nothing.
"""

import json
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from stat import S_ISDIR, S_ISREG
from typing import NamedTuple
from uuid import uuid4

from workflow_scripts.provenance.artefacts import TEMPORARY, claimed, put_in_place
from workflow_scripts.provenance.key import is_key
from workflow_scripts.provenance.record import sha256_of

_GIGABYTE = 10**9
_LIST = "entry.json"
_LEFT_BEHIND = re.compile(rf"\.[0-9a-f]{{32}}{re.escape(TEMPORARY)}")
"""Pattern of the name of an entry that is being made or deleted, or was when its job was killed (``_aside``)."""
_DAMAGED = (FileNotFoundError, IsADirectoryError, NotADirectoryError, shutil.SpecialFileError)
"""Exceptions for an entry whose content ``put`` has not written."""
_ROUNDS = 20
"""Approximate number of times that the sizes of all entries are added while an empty cache fills."""


COMPILERS = {"TORCHINDUCTOR_CACHE_DIR": "inductor", "TRITON_CACHE_DIR": "triton"}
"""Environment variables with the folders of PyTorch's compiled code, and the folders' names."""


def share_compiled(folder: Path | None) -> None:
    """Keep code that PyTorch compiles for a GPU next to the cache, for later jobs on any node.

    Such code is run, so the folder belongs to this user, even if others share the cache.

    Args:
        folder: Folder of the cache; None without one.
    """
    if not folder or not Path("/dev/nvidiactl").exists():  # nothing is compiled without a GPU
        return
    private = Path(f"{folder}.compiled-{os.getuid()}").absolute()
    with suppress(OSError):  # on a full or read-only disk, compilers use a temporary folder
        private.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = private.lstat()
        if status.st_uid == os.getuid() and not status.st_mode & 0o022 and not private.is_symlink():
            for name, subfolder in COMPILERS.items():
                os.environ.setdefault(name, str(private / subfolder))


class Cache(NamedTuple):
    """The cache of a study."""

    folder: Path | None
    """Folder of the cache; None: nothing is cached."""
    gigabytes: float
    """Maximum size in GB."""

    def entry_folder(self, key: str) -> Path | None:
        """Return the folder of an entry, which need not exist; None without a cache."""
        return self.folder / key[:2] / key if self.folder else None

    def restore(self, key: str, files: Mapping[str, Path]) -> bool:
        """Restore the files and folders of an entry, each by one rename, and return whether an intact entry exists.

        Args:
            key: Hash of everything that determines the contents of the files.
            files: Paths of files and folders by name in the entry.
        """
        entry = self.entry_folder(key)
        if entry is None:
            return False
        with _printing_errors(entry, "cannot be read, so its work is repeated"), ExitStack() as stack:
            if not entry.exists():
                return False
            staged = {name: stack.enter_context(claimed(path, _make_later)) for name, path in files.items()}
            try:
                for name, temporary in staged.items():
                    _share(entry / name, temporary)
                intact = _read_list(entry) == _entry_list(key, staged)
            except _DAMAGED:
                intact = False
            if intact:
                for name, path in files.items():
                    put_in_place(staged[name], path)
                with suppress(OSError):  # another job has deleted the entry, or another user owns it
                    os.utime(entry)
                return True
            if entry.exists():  # otherwise another job has deleted it to make room
                print(f"{entry}: damaged. The entry is deleted, and its work is repeated.")  # noqa: T201
                _remove(entry)
        return False

    def put(self, key: str, files: Mapping[str, Path]) -> None:
        """Cache files and folders under a key, and make room; an error loses only the entry."""
        entry = self.entry_folder(key)
        if entry is None:
            return
        with _printing_errors(entry, "not cached"):
            if not entry.exists():
                size = _add(entry, key, files)
                limit = self.gigabytes * _GIGABYTE
                draw = int(key[:8], 16) / 16**8  # uniform from 0 to 1, and the same in each execution
                if draw < _ROUNDS * size / limit:
                    _make_room(entry.parent.parent, limit)


@contextmanager
def _printing_errors(entry: Path, lost: str) -> Iterator[None]:
    """Print an error of the file system, such as a full disk or missing permissions, and continue."""
    try:
        yield
    except OSError as error:
        print(f"{entry}: {lost}: {error.strerror or error}.")  # noqa: T201


def _add(entry: Path, key: str, files: Mapping[str, Path]) -> int:
    """Make an entry, and return its size in bytes.

    Raises:
        OSError: if the disk is full, an equal job was faster, or an output is neither file nor folder.
    """
    staged = _aside(entry)
    try:
        staged.mkdir(parents=True)
        for name, path in files.items():
            _share(path, staged / name)
        (staged / _LIST).write_bytes(_entry_list(key, {name: staged / name for name in files}))
        _, size = _use(staged)
        staged.rename(entry)
    except OSError:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    return size


def _make_later(_temporary: Path) -> None:
    """Make nothing yet; the claimed name is removed if making the entry fails halfway."""


def _read_list(entry: Path) -> bytes:
    """Return the contents of ``entry.json``, which must be a file: a pipe would wait for a writer."""
    file = entry / _LIST
    if not S_ISREG(file.lstat().st_mode):
        raise shutil.SpecialFileError(file)
    return file.read_bytes()


def _entry_list(key: str, files: Mapping[str, Path]) -> bytes:
    """Return the contents of ``entry.json``: the key, the hashes of all files, and empty folders with an empty hash."""
    hashes = {}
    for name, top in files.items():
        for path in [top, *(top.rglob("*") if top.is_dir() else ())]:
            relative_path = (Path(name) / path.relative_to(top)).as_posix()
            if path.is_file():
                hashes[relative_path] = sha256_of(path)
            elif not any(path.iterdir()):
                hashes[f"{relative_path}/"] = ""
    return json.dumps({"key": key, "sha256": hashes}, indent=1, sort_keys=True).encode()


def _share(source: Path, target: Path) -> None:
    """Make ``target`` a file or folder that shares the bytes of ``source``.

    Raises:
        SpecialFileError: if ``source`` is or contains a link, a pipe, or another special file.
    """
    status = source.lstat()
    if S_ISDIR(status.st_mode):
        target.mkdir()
        for path in source.iterdir():
            _share(path, target / path.name)
        return
    if not S_ISREG(status.st_mode):
        raise shutil.SpecialFileError(f"{source} is neither a file nor a folder")
    try:
        if status.st_uid != os.geteuid():
            raise PermissionError
        target.hardlink_to(source)
    except OSError:  # a file of another user, a file system without hard links, or another disk
        shutil.copyfile(source, target)


def _make_room(folder: Path, limit: float) -> None:
    """Delete the least recently used entries, and remains of killed jobs, until the rest fits."""
    entries = [entry for entry in folder.glob("[0-9a-f][0-9a-f]/*") if _is_own(entry)]
    for (_, size), entry in sorted(((_use(entry), entry) for entry in entries), reverse=True):
        limit -= size
        if limit < 0:
            _remove(entry)


def _is_own(entry: Path) -> bool:
    """Return whether a path in the cache is a readable entry, or the remains of one after a killed job."""
    if _LEFT_BEHIND.fullmatch(entry.name):
        return True
    with suppress(PermissionError):
        named = is_key(entry.name) and entry.name.startswith(entry.parent.name)
        return named and (entry / _LIST).is_file()
    return False


def _use(entry: Path) -> tuple[float, int]:
    """Return the time of an entry's last use and its bytes; zeros if another job is deleting it."""
    with suppress(OSError):
        return entry.stat().st_mtime, sum(path.stat().st_size for path in entry.rglob("*"))
    return 0, 0


def _remove(entry: Path) -> None:
    """Delete an entry, renamed first, so other jobs see it complete or not at all."""
    gone = _aside(entry)
    with suppress(OSError):  # another job was faster
        entry.rename(gone)
        if S_ISDIR(gone.lstat().st_mode):
            shutil.rmtree(gone, ignore_errors=True)
        else:
            gone.unlink()


def _aside(entry: Path) -> Path:
    """Return a path next to an entry that no other job uses."""
    return entry.with_name(f".{uuid4().hex}{TEMPORARY}")
