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
from collections import Counter
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.data.hub import Kind, at_commit, download, find, persistently, reaching
from workflow_scripts.data.planned import NOT_REACHED, ON_HUB, accepted, check_planned, is_here
from workflow_scripts.data.readers.base import Reader, Rows
from workflow_scripts.errors import DataError, MissingError, UnreachableError
from workflow_scripts.provenance.record import Input, sha256_of
from workflow_scripts.settings.datasets import Dataset, FileSource, HubSource
from workflow_scripts.settings.encoders import EncoderSource

S = TypeVar("S", bound=FileSource | HubSource | EncoderSource)
T = TypeVar("T")

_DAMAGE = (pa.ArrowException, UnicodeError, EOFError, lzma.LZMAError, zlib.error)
"""What readers and the libraries below them raise of files that are cut, of another format, or no text."""
_LONGEST = 500_000  # characters of a text: a longer one is a file without line ends, or of another kind
_ACCEPT = "or list both hashes in its sha256."
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
    try:
        rows, origin = load(name, _without_hub(dataset) if not reached else dataset, data_root)
    except MissingError as error:
        if is_here(planned):
            advice = "Put it back; or delete the dataset's table and what .kept beside it holds of it, to do without."
            raise MissingError(f"{error} Planned with {planned}. {advice}") from error
        if not dataset.optional:
            raise
        why = "not there" if reached else "Hub not reached"
        return _gap(dataset, f"{name}: {why}; expected {expected(dataset)}", error)
    except UnreachableError:
        raise
    except DataError as error:
        if not gap_if_broken:
            raise
        found = str(error).replace(f"{data_root}/", "")  # a label is the same on every machine
        return _gap(dataset, f"{name}: broken: {found}", error)
    check_planned(f"datasets.{name}", planned, {given.path: given.sha256 for given in origin.values()})
    return Loaded(rows, origin)


def _gap(dataset: Dataset, why: str, error: DataError) -> Loaded:
    print(f"Gap: {error}\nGap: {why}")  # noqa: T201
    return Loaded(Rows(FORMS[dataset.form].empty_table(), Counter()), {}, why)


def _without_hub(dataset: Dataset) -> Dataset:
    here = [source for source in dataset.sources if source.kind not in ON_HUB]
    return dataset.model_copy(update={"sources": here})


def expected(dataset: Dataset) -> str:
    """All that a dataset may be read from: files with the hashes that they must have, repositories with commits."""
    return ", or ".join(_expected(source) for source in dataset.sources)


def _expected(source: FileSource | HubSource) -> str:
    if isinstance(source, HubSource):
        return f"hub:{source.repository}@{source.revision}"
    hashes = sorted(
        (file.path, " or ".join(accepted(file.sha256)) or "not pinned") for file in source.files.values()
    )
    return " and ".join(f"{label_of(source)}{path} (sha256 {sha256})" for path, sha256 in hashes)


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
    check_contract(name, dataset, rows.table)
    return rows, origin


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
        if not path.exists():
            promised = " or ".join(accepted(source.files[role].sha256)) or "not pinned"
            raise MissingError(f"{path} does not exist (sha256 {promised})")
        if not path.is_file():
            raise DataError(f"{path}: a folder, or no file that can be read. Put the file there.")
    origin = {}
    for role, path in files.items():
        found, pinned = sha256_of(path), accepted(source.files[role].sha256)
        if found not in pinned:
            _check_size(path, source.files[role].size)
        if pinned and found not in pinned:
            raise DataError(
                f"{path}: sha256 {found}; pinned {' or '.join(pinned)}. Download it again, {_ACCEPT}"
            )
        origin[role] = Input(path=f"{label_of(source)}{source.files[role].path}", sha256=found)
    reader: Reader = importlib.import_module(f"workflow_scripts.data.readers.{source.reader}")
    options = reader.Config.parse(source.options, f"options of reader {source.reader}")
    try:
        return reader.read(files, options), origin
    except (*_DAMAGE, OSError) as error:
        if (
            isinstance(error, OSError) and error.errno is not None
        ):  # of this machine; Arrow's of a format have none
            raise
        first = (str(error).splitlines() or [""])[0].rstrip(".")
        names = " and ".join(map(str, files.values()))
        raise DataError(
            f"{names}: not what reader {source.reader} reads: {first}. Download the file again, or name its reader."
        ) from error


def _check_size(path: Path, promised: int | None) -> None:
    size = path.stat().st_size
    if promised is not None and size != promised:
        cut = "It was cut off: download" if size < promised else "Download"
        raise DataError(f"{path}: {size} bytes; pinned {promised}. {cut} it again, {_ACCEPT}")


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
    match source.kind:
        case "local":
            return local_root(data_root)
        case "package":
            return package_root(source.package)
    return download(source.repository, source.revision, kind, files)


def local_root(data_root: Path | None) -> Path:
    """The data root, which may not be set."""
    if data_root is None:
        raise MissingError("no data root is set (setting data_root, or environment variable SEMBLANCE_DATA)")
    return data_root


def package_root(package: str) -> Path:
    """The folder of an installed Python package."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        raise MissingError(f"Python package {package} is not installed")
    return Path(spec.origin).parent


def _from_hub(source: HubSource, form: str) -> tuple[Rows, dict[str, Input]]:
    from datasets import Dataset as HubDataset  # slow to import, and needed only for this kind of source
    from datasets import load_dataset

    where = f"hub:{source.repository}@{source.revision}"
    newest = find(source.repository, source.revision, "dataset")

    def get() -> dict[str, Any]:
        with reaching(where), at_commit(source.revision, offline=newest is None):
            return {
                split: load_dataset(source.repository, source.name, split=split, revision=source.revision)
                for split in source.splits
            }

    tables = [
        _in_form(part.with_format("arrow")[:], source, split, form)
        for split, part in (persistently(get) if newest else get()).items()
        if isinstance(part, HubDataset)
    ]
    rows = pa.concat_tables(tables)
    return Rows(rows, Counter()), {"hub": Input(path=where, sha256=_content_hash(rows))}


def _content_hash(rows: pa.Table) -> str:
    """Hash of a table's cells, regardless of how they are chunked: it identifies what the Hub has served."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()


def _in_form(rows: pa.Table, source: HubSource, split: str, form: str) -> pa.Table:
    """Bring one split of the Hub into the columns of ``form``; a column that nothing fills is null."""
    if missing := sorted({*source.columns.values(), *source.where} - set(rows.column_names)):
        place = f"hub:{source.repository}@{source.revision}"
        raise DataError(
            f"{place}: no column {missing[0]!r}; has {rows.column_names}. Fix the block's columns."
        )
    for name, value in source.where.items():
        rows = rows.filter(pc.equal(rows[name].cast(pa.string()), value))
    constants = source.constants | (
        {"split": source.split_names[split]} if split in source.split_names else {}
    )
    columns = []
    for field in FORMS[form]:
        if field.name in source.columns:
            columns.append(rows[source.columns[field.name]].cast(field.type))
        else:
            columns.append(pa.array([constants.get(field.name)] * len(rows), field.type))
    return pa.table(columns, schema=FORMS[form])


def check_contract(name: str, dataset: Dataset, table: pa.Table) -> None:
    """Check ``table`` against the dataset's contract.

    Raises:
        DataError: naming the dataset, what was expected and what was found.
    """
    promise = dataset.contract
    groups = _groups(dataset.form, table) if promise.groups else {}
    findings = {
        "columns": (FORMS[dataset.form].names, table.column_names),
        "rows": (promise.rows, len(table)) if promise.rows is not None else None,
        "groups": (promise.groups, groups) if promise.groups and groups.keys() != {None} else None,
        "labels": (promise.labels, len(pc.unique(table["label"]))) if promise.labels else None,
    }
    for what, finding in findings.items():
        if finding and finding[0] != finding[1]:
            mismatch = f"{what} {finding[1]}; its contract says {finding[0]}"
            raise DataError(f"datasets.{name}: {mismatch}. This is not {name}; get the right file.")
    _check_texts(name, table)
    if len(table) < promise.min_rows:
        raise DataError(f"datasets.{name}: {len(table)} rows; its contract says at least {promise.min_rows}.")
    if promise.score_range and len(table):
        low, high = pc.min_max(table["score"]).as_py().values()
        if low < promise.score_range[0] or high > promise.score_range[1]:
            raise DataError(
                f"datasets.{name}: scores from {low} to {high}; its contract says {promise.score_range}."
            )


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


def _groups(form: str, table: pa.Table) -> dict[str | None, int]:
    """Rows per subset or split; the only key is None if the source does not distinguish them."""
    column = {"pairs": "subset", "labelled": "split"}[form]
    return {entry["values"]: entry["counts"] for entry in pc.value_counts(table[column]).to_pylist()}
