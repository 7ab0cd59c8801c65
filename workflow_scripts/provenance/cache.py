"""The cache of finished work: outputs of jobs and tasks of suites, each under its key.

An entry is a folder, ``<cache>/<two digits>/<key>``, with the files by name and ``entry.json``, a list of their hashes.
Entries and outputs share their bytes by hard links; on another disk, and on some network disks, they are copies.
Editing an output in place also edits its hard link, and read-only files are no remedy, because Snakemake does not make
a read-only output again. So files are hashed before they are used; a damaged entry is deleted, and its work is done
again.

Any number of jobs, studies and clones may share a cache. An entry appears by one rename, complete; if two jobs finish
the same key, the first one's entry stays. Entries are renamed before they are deleted, so a job that is restoring one
either has links to all of its files already, or finds nothing and computes.
"""

import json
import os
import shutil
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from functools import partial
from pathlib import Path
from uuid import uuid4

from workflow_scripts.provenance.artefacts import TEMPORARY, claimed, put_in_place
from workflow_scripts.provenance.record import sha256_of

FOLDER, GIGABYTES = "SEMBLANCE_CACHE", "SEMBLANCE_CACHE_GIGABYTES"
"""Environment variables with the folder of the cache and its largest size, from the settings ``cache`` and
``cache_gigabytes``; without a folder, nothing is cached."""
_GIGABYTE = 10**9
_LIST = "entry.json"
_ROUNDS = 20
"""Approximate number of times that the sizes of all entries are added up while an empty cache fills."""


def entry_folder(key: str) -> Path | None:
    """The folder of an entry, whether it exists or not; None without a cache."""
    folder = os.environ.get(FOLDER)
    return Path(folder, key[:2], key) if folder else None


def restore(key: str, files: Mapping[str, Path]) -> bool:
    """Restore the files and folders of an entry, each by one rename; returns False if there is no intact entry.

    Args:
        key: Hash of everything that decides the contents of the files.
        files: Path of each file or folder, by its name in the entry.
    """
    entry = entry_folder(key)
    if entry is None or not entry.exists():
        return False
    with ExitStack() as stack:
        try:
            staged = {
                name: stack.enter_context(claimed(path, partial(_share, entry / name)))
                for name, path in files.items()
            }
            intact = (entry / _LIST).read_bytes() == _entry_list(key, staged)
        except FileNotFoundError:
            intact = False
        if intact:
            for name, path in files.items():
                put_in_place(staged[name], path)
            with suppress(OSError):  # another job has deleted the entry, or another user owns it
                os.utime(entry)
            return True
    if entry.exists():  # else another job has deleted it to make room
        print(f"{entry}: damaged; the entry is deleted, and its work is done again.")  # noqa: T201
        _remove(entry)
    return False


def put(key: str, files: Mapping[str, Path]) -> None:
    """Cache files and folders under a key, and make room; a full disk only loses the entry."""
    entry = entry_folder(key)
    if entry is None or entry.exists():
        return
    staged = _aside(entry)
    try:
        staged.mkdir(parents=True)
        for name, path in files.items():
            _share(path, staged / name)
        (staged / _LIST).write_bytes(_entry_list(key, {name: staged / name for name in files}))
        _, size = _use(staged)
        staged.rename(entry)
    except OSError as error:  # a full disk, or an equal job was faster
        print(f"{entry}: not cached: {error.strerror}.")  # noqa: T201
        shutil.rmtree(staged, ignore_errors=True)
        return
    limit = float(os.environ[GIGABYTES]) * _GIGABYTE
    draw = int(key[:8], 16) / 16**8  # uniform from 0 to 1, and the same in every run
    if draw < _ROUNDS * size / limit:
        _make_room(entry.parent.parent, limit)


def _entry_list(key: str, files: Mapping[str, Path]) -> bytes:
    """Contents of ``entry.json``: the key and the hashes of all files."""
    hashes = {
        (Path(name) / path.relative_to(top)).as_posix(): sha256_of(path)
        for name, top in files.items()
        for path in (top.rglob("*") if top.is_dir() else [top])
        if path.is_file()
    }
    return json.dumps({"key": key, "sha256": hashes}, indent=1, sort_keys=True).encode()


def _share(source: Path, target: Path) -> None:
    """Make ``target`` a file or folder that shares the bytes of ``source``."""
    if source.is_dir():
        target.mkdir()
        for path in source.iterdir():
            _share(path, target / path.name)
        return
    try:
        target.hardlink_to(source)
    except OSError:  # a file system without hard links, or another disk
        shutil.copyfile(source, target)


def _make_room(folder: Path, limit: float) -> None:
    """Delete the least recently used entries, and what killed jobs have left of others, until the rest fits."""
    for (_, size), entry in sorted(((_use(entry), entry) for entry in folder.glob("??/*")), reverse=True):
        limit -= size
        if limit < 0:
            _remove(entry)


def _use(entry: Path) -> tuple[float, int]:
    """The time of an entry's last use, and its bytes; zeros if another job is deleting it."""
    with suppress(FileNotFoundError):
        return entry.stat().st_mtime, sum(path.stat().st_size for path in entry.rglob("*"))
    return 0, 0


def _remove(entry: Path) -> None:
    """Delete an entry; it is renamed first, so that other jobs see it whole or not at all."""
    gone = _aside(entry)
    with suppress(OSError):  # another job was faster
        entry.rename(gone)
        shutil.rmtree(gone, ignore_errors=True)


def _aside(entry: Path) -> Path:
    """A path next to an entry that no other job uses."""
    return entry.with_name(f".{uuid4().hex}{TEMPORARY}")
