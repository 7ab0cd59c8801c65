"""Datasets from an ordered list of sources, checked against a contract.

A dataset names its possible sources, best first: a ``local`` file below the data root, a file in an installed
``package``, or the Hugging Face ``hub`` at a pinned revision. The first available source is read, one on this machine
before one on the Hub; whichever it is, its rows must meet the same contract. Bytes are pinned by sha256, so the
location of a file on a machine is not part of any result.
"""

import hashlib
import importlib
import lzma
import os
import zlib
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.data.hub import Kind, download
from workflow_scripts.data.planned import NOT_REACHED, ON_HUB, accepted, check_planned, is_here
from workflow_scripts.data.readers import Rows
from workflow_scripts.data.tables import drop_incomplete, in_form
from workflow_scripts.errors import DataError, MissingError, UnreachableError
from workflow_scripts.provenance.record import Input, sha256_of
from workflow_scripts.settings.datasets import Contract, Dataset, File, FileSource, HubSource
from workflow_scripts.settings.encoders import EncoderSource

S = TypeVar("S", bound=FileSource | HubSource | EncoderSource)
T = TypeVar("T")

_DAMAGE = (pa.ArrowException, UnicodeError, SyntaxError, EOFError, lzma.LZMAError, zlib.error, OSError)
"""What readers and the libraries below them raise for files that are cut off, in another format, or not text."""
_LONGEST = 500_000  # characters of a text: a longer one is a file without line ends, or of another kind
_MAY_BE_NULL = ("text2", "negative", "subset", "split")


def data_root() -> Path | None:
    """The folder of local datasets: environment variable SEMBLANCE_DATA, which the setting data_root sets."""
    root = os.environ.get("SEMBLANCE_DATA")
    return Path(root) if root else None


class Loaded(NamedTuple):
    """What a dataset was read as."""

    rows: Rows
    origin: dict[str, Input]
    """Role to the file or revision that it came from; empty for a gap."""
    gap: str | None = None
    """Why there are no rows, if no source was available."""


def load_planned(
    name: str, dataset: Dataset, data_root: Path | None, planned: str, *, gap_if_broken: bool = False
) -> Loaded:
    """Read ``dataset`` from the source that it was planned with, or say why an optional one is a gap.

    Args:
        name: In the configuration.
        dataset: Its block.
        data_root: Folder of local data.
        planned: The source as the graph names it (``planned``).
        gap_if_broken: Whether it is a gap if files or rows are not as the configuration says.

    Raises:
        MissingError: if no source is available and the dataset is not optional, or was there when this was planned.
        UnreachableError: if the Hub cannot be asked.
        DataError: if bytes or rows are not as the configuration or the plan says.
    """
    reached = not planned.startswith(NOT_REACHED)
    sources = [source for source in dataset.sources if reached or source.kind not in ON_HUB]
    try:
        rows, origin = load(name, dataset.model_copy(update={"sources": sources}), data_root)
    except MissingError as error:
        if is_here(planned):
            advice = "Put it back; or delete the dataset's table and .snakemake/sources, to do without."
            raise MissingError(f"{error} Planned with {planned}. {advice}") from error
        if not dataset.optional:
            raise
        why = "not there" if reached else "Hub not reached"
        return _gap(
            dataset, f"{name}: {why}; expected {', or '.join(map(_expected, dataset.sources))}", error
        )
    except DataError as error:
        if isinstance(error, UnreachableError) or not gap_if_broken:
            raise
        found = str(error).replace(f"{data_root}/", "")  # a label is the same on every machine
        return _gap(dataset, f"{name}: broken: {found}", error)
    check_planned(f"datasets.{name}", planned, {given.path: given.sha256 for given in origin.values()})
    return Loaded(rows, origin)


def _gap(dataset: Dataset, why: str, error: DataError) -> Loaded:
    print(f"Gap: {error}\nGap: {why}")  # noqa: T201
    return Loaded(Rows(FORMS[dataset.form].empty_table()), {}, why)


def _expected(source: FileSource | HubSource) -> str:
    """What a dataset may be read from: files with the hashes that they must have, or a repository with its commit."""
    if isinstance(source, HubSource):
        return label_of(source).removesuffix("/")
    files = sorted((file.path, _promised(file)) for file in source.files.values())
    return " and ".join(f"{label_of(source)}{path} ({promised})" for path, promised in files)


def _promised(file: File) -> str:
    return f"sha256 {' or '.join(accepted(file.sha256)) or 'not pinned'}"


def load(name: str, dataset: Dataset, data_root: Path | None) -> tuple[Rows, dict[str, Input]]:
    """Read ``dataset`` from the first available source, and check it against its contract.

    Returns:
        The rows and what was dropped; and the files or revision that they came from.

    Raises:
        MissingError: if no source is available, and all of them could be asked.
        UnreachableError: if none is available, and at least one of them could not be asked.
        DataError: if bytes or rows are not as the configuration says.
    """

    def read(source: FileSource | HubSource) -> tuple[Rows, dict[str, Input]]:
        if isinstance(source, HubSource):
            return _from_hub(source, dataset.form)
        return _from_files(source, data_root)

    wait = "set unreachable: gap" if dataset.optional else "name another source"
    remedy = f"Go online, put the file there, {wait}, or leave the set out."
    rows, origin = first_of(f"datasets.{name}", dataset.sources, read, remedy)
    table, incomplete = drop_incomplete(rows.table)
    check_contract(name, dataset, table, incomplete)
    return Rows(table, rows.dropped + incomplete), origin


def first_of(place: str, sources: Sequence[S], get: Callable[[S], T], remedy: str) -> T:
    """What ``get`` gets from the first source that is there, those on this machine before those on the Hub.

    Raises:
        MissingError: if none is there, and all of them could be asked.
        UnreachableError: if none is there, and at least one of them could not be asked; ``remedy`` says what to do.
    """
    tried: list[DataError] = []
    for source in sorted(sources, key=lambda source: source.kind in ON_HUB):
        try:
            return get(source)
        except (MissingError, UnreachableError) as error:
            tried.append(error)
    found = f"{place}: no source is available: {'; '.join(map(str, tried))}."
    if any(isinstance(error, UnreachableError) for error in tried):
        raise UnreachableError(f"{found} {remedy}")
    raise MissingError(found)


def _from_files(source: FileSource, data_root: Path | None) -> tuple[Rows, dict[str, Input]]:
    root = folder_of(source, data_root, "dataset", [file.path for file in source.files.values()])
    files = {role: root / file.path for role, file in source.files.items()}
    for role, path in files.items():
        if not path.is_file():
            raise MissingError(f"{path} does not exist ({_promised(source.files[role])})")
    origin = {}
    for role, file in source.files.items():
        found, pinned = sha256_of(files[role]), accepted(file.sha256)
        if pinned and found not in pinned:
            advice = "Put the pinned file there, or list both hashes in its sha256."
            raise DataError(f"{files[role]}: sha256 {found}; pinned {' or '.join(pinned)}. {advice}")
        if not pinned:
            print(f"{files[role]}: not pinned; its sha256 is {found}")  # noqa: T201
        origin[role] = Input(path=f"{label_of(source)}{file.path}", sha256=found)
    reader = importlib.import_module(f"workflow_scripts.data.readers.{source.reader}")
    options = reader.Config.parse(source.options, f"options of reader {source.reader}")
    try:
        return reader.read(files, options), origin
    except _DAMAGE as error:
        if getattr(error, "errno", None) is not None:  # of this machine; Arrow's of a format have none
            raise
        names = " and ".join(map(str, files.values()))
        first = (str(error).splitlines() or [""])[0].rstrip(".")
        again = "download the file again" if source.kind in ON_HUB else "put a whole copy there"
        advice = f"Name the reader of its format, or {again}."
        raise DataError(f"{names}: not what reader {source.reader} reads: {first}. {advice}") from error


def label_of(source: Any) -> str:
    """What the names of a source's files begin with, in records."""
    match source.kind:
        case "local":
            return "local:"
        case "package":
            return f"package:{source.package}/"
    return f"hub:{source.repository}@{source.revision}/"


def folder_of(source: Any, data_root: Path | None, kind: Kind, files: list[str]) -> Path:
    """The folder below which the files of a source are.

    Raises:
        MissingError: no data root is set, or no such package, repository or commit.
        UnreachableError: the Hub cannot be asked.
    """
    if source.kind in ON_HUB:
        return download(source.repository, source.revision, kind, files)
    if source.kind == "package":
        spec = find_spec(source.package)
        if spec is None or spec.origin is None:
            raise MissingError(f"Python package {source.package} is not installed")
        return Path(spec.origin).parent
    if data_root is None:
        raise MissingError("no data root is set (setting data_root, or environment variable SEMBLANCE_DATA)")
    return data_root


def _from_hub(source: HubSource, form: str) -> tuple[Rows, dict[str, Input]]:
    """Rows of a repository's files at a commit, which the library reads on this machine, as its card says."""
    from datasets import load_dataset  # slow to import, and needed only for this kind of source

    where = label_of(source).removesuffix("/")
    folder = str(download(source.repository, source.revision, "dataset"))
    try:
        parts = {split: load_dataset(folder, source.name, split=split) for split in source.splits}
    except (ValueError, FileNotFoundError) as error:
        raise DataError(f"{where}: {str(error).splitlines()[0].rstrip('. ')}. Correct the block.") from error
    found = [_in_form(part.with_format("arrow")[:], source, split, form) for split, part in parts.items()]
    rows = pa.concat_tables(found)
    return Rows(rows), {"hub": Input(path=where, sha256=_content_hash(rows))}


def _content_hash(rows: pa.Table) -> str:
    """Hash of a table's cells, regardless of how they are chunked: it identifies what the Hub has served."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()


def _in_form(rows: pa.Table, source: HubSource, split: str, form: str) -> pa.Table:
    """Bring one split of the Hub into the columns of ``form``."""
    where = label_of(source).removesuffix("/")
    for name, value in source.where.items():
        if name not in rows.column_names:
            raise DataError(
                f"{where}: no column {name!r}; has {rows.column_names}. Correct the block's where."
            )
        rows = rows.filter(pc.equal(rows[name].cast(pa.string()), value))
    constants = {"split": source.split_names.get(split)} | source.constants
    return in_form(rows, form, source.columns, constants, where)


def check_contract(
    name: str, dataset: Dataset, table: pa.Table, incomplete: Mapping[str, int] | None = None
) -> None:
    """Check ``table`` against the dataset's contract.

    Args:
        name: Of the dataset, in the configuration.
        dataset: Its block.
        table: Its rows.
        incomplete: Reasons for which rows were left out, and how many, for the message.

    Raises:
        DataError: naming the dataset, what was expected and what was found.
    """
    promise = dataset.contract
    for what, (promised, found) in _findings(dataset.form, promise, table).items():
        if promised not in (None, found):
            without = "".join(
                f", {count} more left out for {why}" for why, count in (incomplete or {}).items()
            )
            mismatch = f"{what} {found}{without}; its contract says {promised}"
            raise DataError(f"datasets.{name}: {mismatch}. This is not {name}; get the right file.")
    _check_texts(name, table)
    if len(table) < promise.min_rows:
        raise DataError(f"datasets.{name}: {len(table)} rows; its contract says at least {promise.min_rows}.")
    if dataset.form == "pairs" and (row := pc.index(pc.is_finite(table["score"]), False).as_py()) >= 0:
        raise DataError(f"datasets.{name}: row {row + 1}: score is not finite. Correct the file.")
    if promise.score_range and len(table):
        low, high = pc.min_max(table["score"]).as_py().values()
        if low < promise.score_range[0] or high > promise.score_range[1]:
            found = f"scores from {low} to {high}; its contract says {promise.score_range}"
            raise DataError(f"datasets.{name}: {found}.")


def _findings(form: str, promise: Contract, table: pa.Table) -> dict[str, tuple[Any, Any]]:
    """What a contract promises (None: nothing), and what a table has.

    Rows of each group (a subset or split) are compared only where the source names groups.
    """
    groups = pc.value_counts(table["subset" if form == "pairs" else "split"]) if promise.groups else []
    counts = {group["values"].as_py(): group["counts"].as_py() for group in groups}
    labels = len(pc.unique(table["label"])) if promise.labels else None
    return {
        "columns": (FORMS[form].names, table.column_names),
        "rows": (promise.rows, len(table)),
        "groups": (promise.groups if counts.keys() - {None} else None, counts),
        "labels": (promise.labels, labels),
    }


def _check_texts(name: str, table: pa.Table) -> None:
    """Check that texts are texts.

    Raises:
        DataError: naming column and row of the first that is missing, holds a null character or a byte order mark, or
            is no text by its length.
    """
    for field in table.schema:
        if not pa.types.is_string(field.type):
            continue
        texts = table[field.name].combine_chunks()
        found = {
            "is missing": pc.is_null(texts),
            "holds a null character (UTF-16?)": pc.match_substring(texts, "\0"),
            "begins with a byte order mark": pc.starts_with(texts, "\ufeff"),
            f"is longer than {_LONGEST} characters": pc.greater(pc.utf8_length(texts), _LONGEST),
        }
        if field.name in _MAY_BE_NULL and texts.null_count in (0, len(texts)):
            del found["is missing"]
        for what, faulty in found.items():
            row = pc.index(faulty, True).as_py()
            if row >= 0:
                place = f"datasets.{name}: row {row + 1}: {field.name}"
                raise DataError(f"{place} {what}. Mend the file, or get it again.")
