"""Checksummed artefacts: written atomically, with their record inside, and checked when read.

A checksummed file ends with a trailer, two hashes of fixed width. ``semblance-identity:`` is the sha256 of the file's
contents without its record; jobs identify their inputs by it. ``semblance-checksum:`` is the sha256 of the complete
file, with zeros in place of this hash. The checksum breaks if a single byte changes. A file that is remade with the
same contents, on another machine or by other code, keeps its identity, so the jobs that read it do not rerun. Three
kinds of file are checksummed:

* Parquet: record and trailer are key-value metadata of the footer;
* pages (SVG, HTML, Markdown): record and trailer are in a comment at the end;
* ``record.json`` of a folder, such as a model or an experiment's figures: it lists the sha256 of every other file.
"""

import errno
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from mmap import ACCESS_COPY, mmap
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.errors import DataError, how_to_make, how_to_repair
from workflow_scripts.provenance.closure import check_code
from workflow_scripts.provenance.key import canonical
from workflow_scripts.provenance.record import (
    Input,
    Label,
    Record,
    as_list,
    current_origin,
    merged_labels,
    sha256_of,
)

RECORD_KEY = "semblance.record"
RECORD_FILE = "record.json"
_NOTE_START = f"<!-- {RECORD_KEY} ".encode()
_TRAILER_KEY = "semblance.seal"
_SEAL = re.compile(
    rb"semblance-identity:(?P<identity>[0-9a-f]{64}) semblance-checksum:(?P<checksum>[0-9a-f]{64})"
)
_BLANK = "0" * 64
_UNSIGNED = f"semblance-identity:{_BLANK} semblance-checksum:{_BLANK}"
CHECKSUMMED_SUFFIXES = {".parquet", ".svg", ".html", ".md"}
_TAIL_BYTES = 4 << 20  # far more than the Parquet footer or closing comment with record and trailer
TEMPORARY, REPLACED = ".tmp", ".old"
"""Suffixes of the hidden names of a file or folder while it is written or replaced."""
FolderFault = Literal["missing", "changed", "foreign"]
_NONE: Mapping[str, Any] = MappingProxyType({})
_DISK_IS_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def job_record(
    rule: str,
    *,
    settings: Mapping[str, Any],
    inputs: Mapping[str, Path | list[Path]],
    outputs: Iterable[Path],
    wildcards: Mapping[str, str] = _NONE,
    code_hashes: Mapping[str, str] = _NONE,
    versions: Mapping[str, str] = _NONE,
    external: Mapping[str, Input] = _NONE,
    labels: Iterable[Label | str] = (),
) -> Record:
    """Return the record of a job, with its key; labels of the inputs are inherited.

    Args:
        rule: Name of the rule.
        settings: The job's slice of the configuration.
        inputs: Artefact, or list of artefacts, by role; a model folder stands for its record.
        outputs: All artefacts that the job writes.
        wildcards: Values that distinguish this job from others of its rule.
        code_hashes: Hashes of the syntax trees of its code, by file.
        versions: Versions of packages that can change its numbers.
        external: External source by role (a package's file, a Hub revision).
        labels: Substitutions of this job itself, and gaps.

    Raises:
        DataError: if an input is missing, damaged, or written for another path.
    """
    used = {
        role: [_input(path) for path in given] if isinstance(given, list) else _input(given)
        for role, given in inputs.items()
    }
    records = [_record_in_place(path) for given in inputs.values() for path in as_list(given)]
    artefact_record = Record(
        rule=rule,
        key="",
        wildcards=dict(wildcards),
        settings=canonical(settings),
        meaning=dict(code_hashes),
        packages=dict(versions),
        inputs=used | dict(external),
        outputs=sorted(path.as_posix() for path in outputs),
        labels=merged_labels(labels, *(record.labels for record in records if record)),
        origin=current_origin(),
    )
    return artefact_record.model_copy(update={"key": artefact_record.recomputed_key()})


def _input(path: Path) -> Input:
    return Input(path=path.as_posix(), sha256=identity(path))


def identity(path: Path) -> str:
    """Return the identity of an input: the hash of an artefact's contents and labels, or of another file's bytes.

    An artefact's checksum is verified first.

    Raises:
        DataError: if the file is missing or damaged; a table or page without a checksum counts as damaged.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file. {how_to_make(path)}")
    path = path / RECORD_FILE if path.is_dir() else path
    files = sorted(path.parent.rglob("*")) if path.name == RECORD_FILE else [path]
    stats = [(file, file.stat()) for file in files]
    state = tuple((str(file.absolute()), stat.st_size, stat.st_mtime_ns, stat.st_ino) for file, stat in stats)
    return _identity(path, state)


@cache
def _identity(path: Path, _state: tuple[tuple[str, int, int, int], ...]) -> str:
    """Return the identity of a file in a state; a second check before a job writes need not read all bytes."""
    if path.name == RECORD_FILE:
        check_model_folder(path.parent)
    if path.suffix in CHECKSUMMED_SUFFIXES or read_trailer(path) is not None:
        return verify_checksum(path).identity
    return sha256_of(path)


def _check_unchanged(record: Record) -> None:
    """Raise DataError if code or inputs in a record have changed since the job read them.

    Raises:
        DataError: with the first changed file.
    """
    check_code(record.meaning)
    for source in record.inner_files:
        path = Path(source.path)
        if not path.exists() or identity(path) != source.sha256:
            raise DataError(f"{path}: changed while this job was running. Run the job again.")


def _record_in_place(path: Path) -> Record | None:
    """Return the record of an input; None without one.

    Raises:
        DataError: if the record was written for another path, such as after a swap of two seeds' models, which
            checksums do not reveal.
    """
    record = read_record(path)
    if record is None or path.is_absolute() or any(Path(output).is_absolute() for output in record.outputs):
        return record
    outputs = {name for file in record.outputs for name in (file, file.removesuffix(f"/{RECORD_FILE}"))}
    if outputs and path.as_posix() not in outputs:
        raise DataError(
            f"{path}: copied or moved here: its record is that of {', '.join(record.outputs)}. Delete "
            f"it. {how_to_make(path)}"
        )
    return record


# Checksums


class Trailer(NamedTuple):
    """The two hashes at the end of a checksummed file, and their position."""

    position: int
    identity: str
    checksum: str

    def to_bytes(self) -> bytes:
        """Return the bytes of the trailer in the file."""
        return f"semblance-identity:{self.identity} semblance-checksum:{self.checksum}".encode()


def read_trailer(path: Path) -> Trailer | None:
    """Return the last trailer in a file, not verified; None without one."""
    start, tail = _tail(path)
    position = tail.rfind(b"semblance-identity:")
    match = _SEAL.match(tail, position) if position >= 0 else None
    return (
        Trailer(start + position, match["identity"].decode(), match["checksum"].decode()) if match else None
    )


def _tail(path: Path) -> tuple[int, bytes]:
    """Return the position of a file's end, which contains record and trailer, and its bytes."""
    with path.open("rb") as file:
        start = max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES)
        file.seek(start)
        return start, file.read()


@contextmanager
def _mapped(path: Path) -> Iterator[mmap]:
    """Yield the bytes of a file as a memory map, which allows changes to a private copy."""
    with path.open("rb") as file, mmap(file.fileno(), 0, access=ACCESS_COPY) as content:
        yield content


def content_identity(path: Path, labels: Iterable[Label]) -> str:
    """Return the identity of an artefact: the hash of its contents without the record, and of its inherited labels.

    The contents of a table are its schema and pages, without the footer; those of a folder are the hashes of its files.
    """
    sha = hashlib.sha256(json.dumps([*map(str, labels)]).encode())
    if ".parquet" in path.suffixes:  # a temporary file has a further suffix
        sha.update(pq.read_schema(path).remove_metadata().serialize())
        with _mapped(path) as content, memoryview(content) as whole:
            footer = int.from_bytes(whole[-8:-4], "little")
            sha.update(whole[: -8 - footer])
    elif ".json" in path.suffixes:
        sha.update(json.dumps(_record_in_file(path).files, sort_keys=True).encode())
    else:
        sha.update(page_text(path))
    return sha.hexdigest()


def _digest(path: Path, trailer: Trailer) -> str:
    """Return the sha256 of a file with a trailer, with zeros in place of the trailer's checksum."""
    blank = trailer._replace(checksum=_BLANK).to_bytes()
    with _mapped(path) as content:
        content[trailer.position : trailer.position + len(blank)] = blank
        return hashlib.sha256(content).hexdigest()


def _sign(path: Path, labels: Iterable[Label]) -> None:
    """Write identity and checksum into a file's trailer."""
    blank = read_trailer(path)
    assert blank is not None, path
    trailer = blank._replace(identity=content_identity(path, labels))
    with path.open("r+b") as file:
        file.seek(trailer.position)
        file.write(trailer._replace(checksum=_digest(path, trailer)).to_bytes())


def verify_checksum(path: Path) -> Trailer:
    """Return the trailer of a file with a valid checksum.

    Raises:
        DataError: if the file was changed after it was written, or has no checksum.
    """
    trailer = read_trailer(path)
    if trailer is None:
        raise DataError(
            f"{path}: truncated, or not written by this pipeline (no checksum). {how_to_repair(path)}"
        )
    if _digest(path, trailer) != trailer.checksum:
        broken = f"changed since it was written (checksum {trailer.checksum[:12]} broken)"
        raise DataError(f"{path}: {broken}. {how_to_repair(path)}")
    return trailer


# Writing


@contextmanager
def _naming_a_full_disk(path: Path) -> Iterator[None]:
    """Add the name of ``path`` to errors of a full disk, which lack it."""
    try:
        yield
    except Exception as error:
        rust = re.search(r"\(os error (\d+)\)", str(error))  # safetensors raises its own type of error
        number = error.errno if isinstance(error, OSError) else int(rust[1]) if rust else None
        if number not in _DISK_IS_FULL or (isinstance(error, OSError) and error.filename):
            raise
        raise OSError(number, os.strerror(number), str(path)) from error


@contextmanager
def atomic(path: Path) -> Iterator[Path]:
    """Yield a temporary file next to ``path``; sync and rename it on success, remove it on failure."""
    with claimed(path, Path.touch) as temporary:
        yield temporary
        _sync(temporary)
        put_in_place(temporary, path)


@contextmanager
def claimed(path: Path, make: Callable[[Path], None]) -> Iterator[Path]:
    """Yield a temporary file next to ``path``, which replaces that of a killed writer, and remove it on exit.

    A file has one writer at a time, because each job holds a lock.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}{TEMPORARY}")
    _remove(temporary)
    make(temporary)
    try:
        with _naming_a_full_disk(path):
            yield temporary
    finally:
        _remove(temporary)


def _remove(path: Path) -> None:
    """Remove a file or folder if it exists."""
    if path.is_dir():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def write_table(path: Path, table: pa.Table, record: Record) -> None:
    """Write a table with its record in the Parquet footer; equal arguments give equal bytes."""
    with writing_table(path, table.schema, record) as writer:
        writer.write_table(table)


@contextmanager
def writing_table(
    path: Path, schema: pa.Schema, record: Record, *, split_bytes: bool = False
) -> Iterator[pq.ParquetWriter]:
    """Yield a writer of a Parquet artefact, for writing batch by batch.

    Args:
        path: The artefact.
        schema: Its columns.
        record: Its record.
        split_bytes: Whether to compress the first bytes of all numbers of a column together, then the second bytes and
            so on, which is smaller for numbers that seldom repeat.
    """
    with atomic(path) as temporary:
        with pq.ParquetWriter(
            temporary,
            schema.remove_metadata(),  # pandas adds its own
            compression="zstd",
            use_dictionary=not split_bytes,
            use_byte_stream_split=split_bytes,
            write_page_checksum=True,
        ) as writer:
            yield writer
            _check_unchanged(record)
            writer.add_key_value_metadata({RECORD_KEY: record.to_json(), _TRAILER_KEY: _UNSIGNED})
        _sign(temporary, record.labels)


def write_page(path: Path, text: str, record: Record) -> None:
    """Write an SVG, HTML or Markdown file with record and trailer in a closing comment."""
    _check_unchanged(record)
    note = record.to_json().replace("--", "-\\u002d")  # a comment must not contain two hyphens
    with atomic(path) as temporary:
        temporary.write_text(f"{text.rstrip()}\n{_NOTE_START.decode()}{note} {_UNSIGNED} -->\n", "utf-8")
        _sign(temporary, record.labels)


@contextmanager
def writing_model_folder(folder: Path, record: Record, labels: Sequence[str] = ()) -> Iterator[Path]:
    """Yield an empty folder to fill; on success, add the checksummed record with the files' hashes, and rename it.

    Args:
        folder: The folder to write.
        record: Its record, without the hashes of its files.
        labels: Labels to add to the record; they may grow while the folder is filled.
    """
    with claimed(folder, Path.mkdir) as temporary:
        yield temporary
        _check_unchanged(record)
        files = sorted(path for path in temporary.rglob("*") if path.is_file())
        hashes = {path.relative_to(temporary).as_posix(): sha256_of(path) for path in files}
        update = {"files": hashes, "labels": merged_labels(record.labels, labels)}
        _write_record_file(temporary / RECORD_FILE, record.model_copy(update=update))
        for path in files:
            # The files of safetensors are readable only by their owner.
            path.chmod(temporary.stat().st_mode & 0o666)
        for path in (*files, temporary / RECORD_FILE, temporary):
            _sync(path)
        put_in_place(temporary, folder)


def put_in_place(temporary: Path, path: Path) -> None:
    """Rename a temporary file or folder to ``path``, and remove an earlier folder of that name."""
    old = path.with_name(f".{path.name}{REPLACED}")
    if path.is_dir():
        _remove(old)
        path.rename(old)  # removing it first could lose both
    temporary.replace(path)
    _sync(path.parent)
    _remove(old)


def give_record(path: Path, record: Record) -> None:
    """Replace the record of an artefact that an equal job made; labels and origin stay."""
    old = read_record(path)
    assert old is not None, path
    new = record.model_copy(update={"labels": old.labels, "origin": old.origin, "files": old.files})
    if new == old:
        return
    if old.files:
        with atomic(path / RECORD_FILE) as temporary:
            _write_record_file(temporary, new)
    else:
        write_table(path, read_table(path, pq.read_schema(path).remove_metadata()), new)


def _write_record_file(path: Path, record: Record) -> None:
    content = {"record": json.loads(record.to_json()), "seal": _UNSIGNED}
    path.write_text(json.dumps(content, indent=1) + "\n", "utf-8")
    _sign(path, record.labels)


# Reading


def read_table(path: Path, schema: pa.Schema, columns: list[str] | None = None) -> pa.Table:
    """Return a Parquet artefact, after verification of its checksum and columns.

    Raises:
        DataError: if the file is missing or damaged, or its columns differ from ``schema``.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file. {how_to_make(path)}")
    verify_checksum(path)
    columns_there = pq.read_schema(path).remove_metadata()
    if not columns_there.equals(schema):
        raise DataError(
            f"{path}: columns {_describe(columns_there)}; expected {_describe(schema)}. {how_to_repair(path)}"
        )
    return pq.read_table(path, columns=columns).replace_schema_metadata(None)


def _describe(schema: pa.Schema) -> str:
    return ", ".join(f"{field.name} {field.type}" for field in schema)


def read_record(path: Path) -> Record | None:
    """Return the record inside an artefact; None for a file without one."""
    if path.is_dir():
        path /= RECORD_FILE
    if path.name == RECORD_FILE:
        return _record_in_file(path)
    if path.suffix == ".parquet":
        text = (pq.read_metadata(path).metadata or {}).get(RECORD_KEY.encode())
    else:
        # The last one: a report may contain figures with records of their own.
        _, mark, note = _tail(path)[1].rpartition(_NOTE_START)
        text = note.rpartition(b" semblance-identity:")[0] if mark else None
    return Record.model_validate(json.loads(text)) if text else None


def _record_in_file(path: Path) -> Record:
    return Record.model_validate(json.loads(path.read_text("utf-8"))["record"])


def page_text(path: Path) -> bytes:
    """Return the text of a page without its record."""
    return path.read_bytes().rpartition(_NOTE_START)[0]


def check_model_folder(folder: Path) -> Record:
    """Return the record of a model folder whose checksum and files' hashes are valid.

    Raises:
        DataError: with the first file that is missing, changed or not listed.
    """
    record_file = folder / RECORD_FILE
    if not record_file.exists():
        raise DataError(
            f"{folder}: no {RECORD_FILE}, so the model folder is unfinished. {how_to_repair(record_file)}"
        )
    verify_checksum(record_file)
    record = _record_in_file(record_file)
    for name, _, fault in folder_faults(folder, record):
        raise DataError(f"{folder / name}: {fault}. {how_to_repair(record_file)}")
    return record


def folder_faults(folder: Path, record: Record) -> Iterator[tuple[str, FolderFault, str]]:
    """Yield name and fault, also in words, of each file of a folder that deviates from its record."""
    files = {path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()}
    for name, recorded in record.files.items():
        if name not in files:
            yield name, "missing", f"missing, but listed in {RECORD_FILE}"
        elif (now := sha256_of(folder / name)) != recorded:
            yield (
                name,
                "changed",
                f"changed since it was written: sha256 {now[:12]}, recorded {recorded[:12]}",
            )
    for name in sorted(files - {*record.files, RECORD_FILE}):
        yield name, "foreign", f"not listed in {RECORD_FILE}"
