"""Sealed artefacts: written whole or not at all, carrying their record, and checked when read.

A sealed file holds, near its end, ``semblance-seal:`` and 64 hexadecimal digits: the sha256 of the
file itself with those digits replaced by zeros. One changed byte anywhere breaks the seal, and no
second file is needed to notice. Three kinds of file are sealed:

* Parquet: record and seal are key-value metadata of the footer;
* text that readers open (SVG, HTML): both stand in a comment at the end;
* ``record.json`` of a model folder, which lists the sha256 of every other file in the folder.
"""

import errno
import fcntl
import glob
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.errors import DataError
from workflow_scripts.provenance import Input, Record, code_hashes, git_state, package_versions, sha256_of

RECORD_KEY = "semblance.record"
RECORD_FILE = "record.json"
_NOTE_START = f"<!-- {RECORD_KEY} ".encode()
_MARK = b"semblance-seal:"
_OPEN_SEAL = _MARK + b"0" * 64
_SEAL = re.compile(re.escape(_MARK) + rb"([0-9a-f]{64})")  # source code may name the mark, and holds no seal
SEALED_SUFFIXES = {".parquet", ".svg", ".html"}
_NEAR_BYTES = 64 << 10  # the seal follows the record, so it is seldom further than this from the end
_TAIL_BYTES = 4 << 20  # record and seal stand in a Parquet footer or in a closing comment: both far smaller
_CHUNK_BYTES = 1 << 20
_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_TIMESTAMP = ".snakemake_timestamp"  # Snakemake leaves one, empty, in every directory() output


def job_record(
    rule: str,
    *,
    settings: Mapping[str, Any],
    inputs: Mapping[str, Path],
    outputs: Iterable[Path],
    wildcards: Mapping[str, str] | None = None,
    modules: Iterable[str] = (),
    foreign: Mapping[str, Input] | None = None,
    labels: Iterable[str] = (),
) -> Record:
    """Describe the running job; labels of the inputs are inherited.

    Args:
        rule: Name of the rule and of its entry script.
        settings: The slice of the configuration that the job was given.
        inputs: Role to artefact; a model folder stands for its record.
        outputs: Every artefact the job writes.
        wildcards: What distinguishes this job from others of its rule.
        modules: Modules that the entry script imports by name, such as ``methods.simcse``.
        foreign: Role to a source from outside the pipeline (a package's file, a Hub revision).
        labels: Substitutions made by this job itself.
    """
    used = {role: Input(path=path.as_posix(), sha256=identity(path)) for role, path in inputs.items()}
    inherited = {label for path in inputs.values() for label in _labels(path)}
    commit, dirty = git_state()
    return Record(
        rule=rule,
        wildcards=dict(wildcards or {}),
        settings=dict(settings),
        inputs=used | dict(foreign or {}),
        outputs=sorted(path.as_posix() for path in outputs),
        code=code_hashes(rule, *modules),
        packages=package_versions(rule, *modules),
        commit=commit,
        dirty=dirty,
        labels=sorted(inherited.union(labels)),
    )


def identity(path: Path) -> str:
    """The seal of a sealed file or model folder (checked first), the sha256 of any other file.

    Raises:
        DataError: if the file is missing or damaged; a table or page without a seal is damaged, not foreign.
    """
    if path.is_dir() or path.name == RECORD_FILE:
        folder = path if path.is_dir() else path.parent
        check_model_folder(folder)
        path = folder / RECORD_FILE
    if not path.exists():
        raise DataError(f"{path}: no such file. Run the rule that makes it: snakemake {path}.")
    sealed = path.suffix in SEALED_SUFFIXES or read_seal(path) is not None
    return check_seal(path) if sealed else sha256_of(path)


def _labels(path: Path) -> list[str]:
    record = read_record(path)
    return record.labels if record else []


# Seals


def _find_seal(path: Path) -> tuple[int, str] | None:
    """Offset of the seal's digits, and the digits; None where a file has no seal."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        for length in (_NEAR_BYTES, _TAIL_BYTES):
            start = file.seek(max(0, size - length))
            seals = list(_SEAL.finditer(file.read()))
            if seals:
                return start + seals[-1].start(1), seals[-1].group(1).decode()
            if start == 0:
                break
    return None


def read_seal(path: Path) -> str | None:
    """The seal that a file carries, not checked; None where it carries none."""
    found = _find_seal(path)
    return found[1] if found else None


def _digest(path: Path, position: int) -> str:
    """The sha256 of a file with the 64 bytes at ``position`` read as zeros."""
    sha = hashlib.sha256()
    with path.open("rb") as file:
        for piece in _pieces(file, position):
            sha.update(piece)
        file.seek(64, os.SEEK_CUR)
        sha.update(b"0" * 64)
        while piece := file.read(_CHUNK_BYTES):
            sha.update(piece)
    return sha.hexdigest()


def _pieces(file: BinaryIO, length: int) -> Iterator[bytes]:
    while length and (piece := file.read(min(length, _CHUNK_BYTES))):
        length -= len(piece)
        yield piece


def _close_seal(path: Path) -> None:
    found = _find_seal(path)
    assert found is not None, path
    position, _ = found
    digest = _digest(path, position)
    with path.open("r+b") as file:
        file.seek(position)
        file.write(digest.encode())


def check_seal(path: Path) -> str:
    """Return the seal of ``path``.

    Raises:
        DataError: if the file is not what was written, or has no seal.
    """
    found = _find_seal(path)
    if found is None:
        raise DataError(f"{path}: truncated, or not written by this pipeline (no seal). Delete it and rerun.")
    position, seal = found
    if _digest(path, position) != seal:
        raise DataError(
            f"{path}: changed since it was written (seal {seal[:12]} broken). Delete it and rerun."
        )
    return seal


# Writing


@contextmanager
def _naming_a_full_disk(path: Path) -> Iterator[None]:
    """Give the errors of a full disk the name of ``path``; writers leave it out."""
    try:
        yield
    except Exception as error:
        rust = re.search(r"\(os error (\d+)\)", str(error))  # safetensors has a class of its own for them
        number = error.errno if isinstance(error, OSError) else int(rust[1]) if rust else None
        if number not in _DISK_IS_FULL or getattr(error, "filename", None):
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Give a temporary name beside ``path``; on success sync it and rename it, on failure remove it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path)
    handle, name = tempfile.mkstemp(prefix=f".{path.name}.", suffix=".tmp", dir=path.parent)
    os.close(handle)
    temporary = Path(name)
    try:
        with _claimed(temporary), _naming_a_full_disk(path):
            yield temporary
            temporary.chmod(0o644)
            _sync(temporary)
            temporary.replace(path)
            _sync(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


@contextmanager
def _claimed(temporary: Path) -> Iterator[None]:
    """Hold a lock on ``temporary`` that the kernel takes back when this process dies, however it dies."""
    handle = os.open(temporary, os.O_RDONLY)
    try:
        with suppress(OSError):  # a file system without locks
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _sweep(path: Path) -> None:
    """Remove what killed writers of ``path`` left beside it; where nobody can tell, it stays for the audit."""
    for left in path.parent.glob(f".{glob.escape(path.name)}.*.tmp"):
        with suppress(OSError), _unclaimed(left):
            shutil.rmtree(left) if left.is_dir() else left.unlink()


@contextmanager
def _unclaimed(left: Path) -> Iterator[None]:
    """Raise OSError where a living process holds ``left``."""
    handle = os.open(left, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(handle)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_table(path: Path, table: pa.Table, record: Record) -> None:
    """Write ``table`` with its record in the Parquet footer; equal inputs give equal bytes."""
    with writing_table(path, table.schema, record) as writer:
        writer.write_table(table)


@contextmanager
def writing_table(path: Path, schema: pa.Schema, record: Record) -> Iterator[pq.ParquetWriter]:
    """Open a Parquet artefact to be written batch by batch."""
    with atomic(path) as temporary:
        bare = schema.remove_metadata()  # pandas leaves its own there
        with pq.ParquetWriter(temporary, bare, compression="zstd", write_page_checksum=True) as writer:
            yield writer
            writer.add_key_value_metadata(
                {RECORD_KEY: record.to_json(), "semblance.seal": _OPEN_SEAL.decode()}
            )
        _close_seal(temporary)


def write_page(path: Path, text: str, record: Record) -> None:
    """Write an SVG or HTML file whose closing comment holds record and seal."""
    note = record.to_json().replace("--", "-\\u002d")  # a comment may not hold two hyphens
    with atomic(path) as temporary:
        temporary.write_text(
            f"{text.rstrip()}\n{_NOTE_START.decode()}{note} {_OPEN_SEAL.decode()} -->\n", "utf-8"
        )
        _close_seal(temporary)


@contextmanager
def writing_model_folder(folder: Path, record: Record) -> Iterator[Path]:
    """Give an empty folder to fill; on success hash its files, seal its record and put it in place."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    _sweep(folder)
    temporary = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=folder.parent))
    replaced = temporary.with_suffix(".old")
    try:
        with _claimed(temporary), _naming_a_full_disk(folder):
            yield temporary
            temporary.chmod(0o755)
            files = sorted(path for path in temporary.rglob("*") if path.is_file())
            hashes = {path.relative_to(temporary).as_posix(): sha256_of(path) for path in files}
            _write_record_file(temporary / RECORD_FILE, record.model_copy(update={"files": hashes}))
            for path in (*files, temporary):
                _sync(path)
        if folder.exists():
            folder.rename(replaced)  # a removal that stops half-way would lose both
        temporary.rename(folder)
        _sync(folder.parent)
        for old in folder.parent.glob(f".{glob.escape(folder.name)}.*.old"):  # a killed writer's among them
            shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def _write_record_file(path: Path, record: Record) -> None:
    content = {"record": json.loads(record.to_json()), "seal": _OPEN_SEAL.decode()}
    path.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", "utf-8")
    _close_seal(path)
    _sync(path)


# Reading


def read_table(path: Path, schema: pa.Schema, columns: list[str] | None = None) -> pa.Table:
    """Read a Parquet artefact after checking its seal and its columns.

    Raises:
        DataError: if the file is missing, damaged, or lacks a column of ``schema``.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file. Run the rule that makes it: snakemake {path}.")
    check_seal(path)
    found = pq.read_schema(path).remove_metadata()
    if not found.equals(schema):
        raise DataError(
            f"{path}: columns {_describe(found)}; expected {_describe(schema)}. Rerun the rule that makes it."
        )
    return pq.read_table(path, columns=columns).replace_schema_metadata(None)


def _describe(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def read_record(path: Path) -> Record | None:
    """The record that an artefact carries; None for a file that carries none."""
    if path.is_dir():
        path /= RECORD_FILE
    if path.suffix == ".parquet":
        metadata = pq.read_metadata(path).metadata or {}
        text = metadata.get(RECORD_KEY.encode())
    elif path.name == RECORD_FILE:
        return Record.model_validate(json.loads(path.read_text("utf-8"))["record"])
    else:
        # The last one: a report may have figures drawn into it, each with a record of its own.
        _, note, closing = _tail(path).rpartition(_NOTE_START)
        text = closing.rpartition(b" " + _MARK)[0] if note else None
    return Record.model_validate_json(text) if text else None


def page_text(path: Path) -> bytes:
    """What a page holds besides its record."""
    return path.read_bytes().rpartition(_NOTE_START)[0]


def _tail(path: Path) -> bytes:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
        return file.read()


def is_timestamp(file: Path) -> bool:
    """Whether ``file`` is the empty one in which Snakemake keeps the date of a folder."""
    return file.name == _TIMESTAMP and file.stat().st_size == 0


def check_model_folder(folder: Path) -> Record:
    """Verify the seal of a model folder's record and the hash of every file it lists.

    Raises:
        DataError: naming the first file that is missing, changed or not listed.
    """
    record_file = folder / RECORD_FILE
    if not record_file.exists():
        raise DataError(f"{folder}: no {RECORD_FILE}; not a finished model folder. Delete it and rerun.")
    check_seal(record_file)
    record = read_record(record_file)
    assert record is not None
    for name, recorded in record.files.items():
        file = folder / name
        if not file.is_file():
            raise DataError(f"{file}: missing, but listed in {record_file}. Delete {record_file} and rerun.")
        if sha256_of(file) != recorded:
            raise DataError(f"{file}: changed since it was written. Delete {record_file} and rerun.")
    listed = {*record.files, RECORD_FILE}
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        if file.relative_to(folder).as_posix() not in listed and not is_timestamp(file):
            raise DataError(f"{file}: not listed in {record_file}; foreign. Remove it.")
    return record
