"""The one cache: what a job, a task of a suite or a figure made, found again by the key of all that decides it.

An entry is a folder, ``<cache>/<two digits>/<key>``, with the files by name and ``entry.json``, which lists their
hashes. Files are shared and not copied: as reflinks where the file system has these, else as hard links, else (another
disk, some network disks) they are copies. A hard link is edited by whoever edits the output in place, and Snakemake
takes a read-only output for one that it must not make again. So files are hashed before they are used: an entry that is
not as it was put is deleted, and its work is done again.

Any number of jobs, studies and clones may share a cache. An entry appears whole, by one rename, and of two jobs that
finish the same key the first stays. What leaves is renamed before it is deleted: a job that is restoring it either has
links to all of its files by then, or finds nothing and computes.
"""

import fcntl
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

from workflow_scripts.provenance.artefacts import claimed, put_in_place, sweep
from workflow_scripts.provenance.record import sha256_of

FOLDER, GIGABYTES = "SEMBLANCE_CACHE", "SEMBLANCE_CACHE_GIGABYTES"
"""Variables that say where the cache is and how large it may grow, which the settings ``cache`` and
``cache_gigabytes`` set; where the first is empty, nothing is cached."""
_GIGABYTE = 10**9
_LIST = "entry.json"
_FICLONE = 0x40049409
"""Linux's request for a reflink."""
_ROUNDS = 20
"""About how often the sizes of all entries are added up while as much is put as the cache may hold."""


def entry_of(key: str) -> Path | None:
    """The place of an entry; None where nothing is cached."""
    folder = os.environ.get(FOLDER)
    return Path(folder, key[:2], key) if folder else None


def restore(key: str, files: Mapping[str, Path]) -> bool:
    """Put what is cached under a key in its places, each file or folder at once; returns whether it was there, whole.

    Args:
        key: Of all that decides the contents of the files.
        files: Place of each file or folder, by its name in the entry.
    """
    entry = entry_of(key)
    if entry is None or not entry.exists():
        return False
    with ExitStack() as stack:
        try:
            staged = {
                name: stack.enter_context(claimed(path, partial(_share, entry / name)))
                for name, path in files.items()
            }
            whole = (entry / _LIST).read_bytes() == _listed(key, staged)
        except FileNotFoundError:
            whole = False
        if whole:
            for name, path in files.items():
                put_in_place(staged[name], path)
            with suppress(OSError):  # deleted meanwhile, or another user's
                os.utime(entry)
            return True
    if entry.exists():  # else another job has made room
        print(f"{entry}: not as it was put there. It is deleted, and made again.")  # noqa: T201
        forget(key)
    return False


def put(key: str, files: Mapping[str, Path]) -> None:
    """Cache files and folders under a key, unless they are; then make room. A full disk costs the entry alone."""
    entry = entry_of(key)
    if entry is None or entry.exists():
        return
    try:
        with claimed(entry, Path.mkdir) as temporary:
            for name, path in files.items():
                _share(path, temporary / name)
            (temporary / _LIST).write_bytes(_listed(key, {name: temporary / name for name in files}))
            _, size = _use(temporary)
            with suppress(OSError):  # an equal job was first
                temporary.rename(entry)
    except OSError as error:
        print(f"{entry}: not cached: {error.strerror}.")  # noqa: T201
        return
    limit = float(os.environ[GIGABYTES]) * _GIGABYTE
    draw = int(key[:8], 16) / 16**8  # from 0 to 1, evenly, and the same on every run
    if draw < _ROUNDS * size / limit:
        _make_room(entry.parent.parent, limit)


def forget(key: str) -> None:
    """Delete an entry."""
    if (entry := entry_of(key)) is not None:
        _remove(entry)


def faults(folder: Path) -> Iterator[tuple[Path, str]]:
    """Each entry of a cache that is not as it was put, and what is wrong with it."""
    for entry in _entries(folder):
        files = {path.name: path for path in entry.iterdir() if path.name != _LIST}
        try:
            whole = (entry / _LIST).read_bytes() == _listed(entry.name, files)
        except FileNotFoundError:
            whole = not entry.exists()  # another job has made room
        if not whole:
            yield entry, f"not as {_LIST} lists it"


def _listed(key: str, files: Mapping[str, Path]) -> bytes:
    """Key and hashes of an entry, as they stand in it."""
    hashes = {
        (Path(name) / path.relative_to(top)).as_posix(): sha256_of(path)
        for name, top in files.items()
        for path in (top.rglob("*") if top.is_dir() else [top])
        if path.is_file()
    }
    return json.dumps({"key": key, "sha256": hashes}, indent=1, sort_keys=True).encode()


def _share(source: Path, target: Path) -> None:
    """Make a file, or all files of a folder, share the bytes of another."""
    if source.is_dir():
        target.mkdir()
        for path in source.iterdir():
            _share(path, target / path.name)
        return
    try:
        with source.open("rb") as read, target.open("xb") as written:
            fcntl.ioctl(written, _FICLONE, read.fileno())
        return
    except FileNotFoundError:
        raise
    except OSError:  # a file system without reflinks
        target.unlink(missing_ok=True)
    try:
        target.hardlink_to(source)
    except OSError:  # or without hard links, or another disk
        shutil.copyfile(source, target)


def _make_room(folder: Path, limit: float) -> None:
    """Delete the entries that were not used for longest until the others fit, and what killed jobs left."""
    for left in folder.glob("??"):
        sweep(left)
    for (_, size), entry in sorted(((_use(entry), entry) for entry in _entries(folder)), reverse=True):
        limit -= size
        if limit < 0:
            _remove(entry)


def _entries(folder: Path) -> list[Path]:
    return [entry for entry in sorted(folder.glob("??/*")) if not entry.name.startswith(".")]


def _use(entry: Path) -> tuple[float, int]:
    """When an entry was last used, and its bytes; zeros of one that another job is deleting."""
    with suppress(FileNotFoundError):
        return entry.stat().st_mtime, sum(path.stat().st_size for path in entry.rglob("*"))
    return 0, 0


def _remove(entry: Path) -> None:
    gone = entry.with_name(f".{entry.name}.{uuid4().hex}.tmp")
    with suppress(OSError):  # another job was first
        entry.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)
