"""Datasets, read from the first available source and checked against a contract.

The sources are a ``local`` file below the data root, a file in an installed ``package``, or the Hugging Face ``hub`` at
a pinned revision. The rows of any source must meet the same contract. Bytes are pinned by sha256, so the location of a
file on a machine is not part of any result.
"""

import functools
import hashlib
import importlib
import json
import lzma
import textwrap
import unicodedata
import zlib
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns import DROPPED, FORMS
from workflow_scripts.data.readers import SourceRows
from workflow_scripts.data.sources import (
    SourcePlan,
    accepted,
    as_pinned,
    check_planned,
    expected,
    first_available,
    promised,
    source_folder,
)
from workflow_scripts.data.tables import MISSING, TEXT_COLUMNS, number_of, table_of, texts_of
from workflow_scripts.errors import DataError, MissingError, advice
from workflow_scripts.provenance.job import Job
from workflow_scripts.provenance.record import Input, gap_label
from workflow_scripts.settings.sources import READERS, Contract, Dataset, FileSource, HubSource, Pinned

_DAMAGE = (pa.ArrowException, UnicodeError, SyntaxError, EOFError, lzma.LZMAError, zlib.error, OSError)
"""Exceptions of readers and their libraries for truncated files, other formats, and files that are not text."""
_KEPT = "kept: "  # begins the reasons of rows that are counted, but not dropped
_MAX_TEXT = 500_000  # characters; a longer text comes from a file without line ends, or of another format
_MAX_SHOWN, _MAX_NAME = 300, 40  # characters of a library's message, and of a value, in a message
_MAY_BE_NULL = ("text2", "negative", "subset", "split")


def load_planned(
    name: str, dataset: Dataset, data_root: Path | None, plan: SourcePlan
) -> tuple[SourceRows, dict[str, Input], str | None]:
    """Return the rows of a dataset from its planned source, or the reason why an optional one is a gap.

    Args:
        name: Name of the dataset in the configuration.
        dataset: Its block.
        data_root: Folder of local data.
        plan: Its source.

    Returns:
        The rows; the file or revision of each role, empty for a gap; and the reason of a gap.

    Raises:
        MissingError: if no source is available, and the dataset is not optional or was available during planning.
        UnreachableError: if the Hub cannot be reached.
        DataError: if bytes or rows contradict the configuration or the plan.
    """
    asks_hub = plan.kind not in ("unreachable", "absent")
    sources = [source for source in dataset.sources if asks_hub or not isinstance(source, Pinned)]
    try:
        rows, origin = load(name, dataset.model_copy(update={"sources": sources}), data_root)
    except MissingError as error:
        if plan.kind == "files":
            advice = (
                "Put it back; or delete the dataset's table and .snakemake/sources to continue without it."
            )
            raise MissingError(f"{error} Planned with {plan}. {advice}") from error
        if not dataset.optional:
            raise
        wanted = ", or ".join(map(expected, dataset.sources))
        gap = f"{name}: {'Hub not reached' if plan.kind == 'unreachable' else 'not found'}; expected {wanted}"
        print(f"Gap: {error}\nGap: {gap}")  # noqa: T201
        return SourceRows(FORMS[dataset.form].empty_table()), {}, gap
    check_planned(f"datasets.{name}", plan, origin.values())
    return rows, origin, None


def load(name: str, dataset: Dataset, data_root: Path | None) -> tuple[SourceRows, dict[str, Input]]:
    """Return the rows of a dataset from its first available source, checked against its contract.

    Returns:
        The rows with counts of dropped ones, and the files or revision that were read.

    Raises:
        MissingError: if no source is available.
        UnreachableError: if no source is available, and at least one could not be reached.
        DataError: if bytes or rows contradict the configuration.
    """

    def read(source: FileSource | HubSource) -> tuple[SourceRows, dict[str, Input]]:
        if isinstance(source, HubSource):
            return _from_hub(source, dataset.form)
        return _from_files(source, data_root)

    remedy = "Go online, put the file there, add another source, or remove the dataset."
    rows, origin = first_available(f"datasets.{name}", dataset.sources, read, remedy)
    table, incomplete = _complete(rows.table)
    check_contract(name, dataset, table, rows.dropped + incomplete)
    if undecoded := sum("\ufffd" in text for text in texts_of(table)):
        problem = f"{undecoded} texts contain U+FFFD, which replaces bytes that could not be decoded"
        print(f"datasets.{name}: {problem}; they are kept")  # noqa: T201
    return SourceRows(table, rows.dropped + incomplete + _blank(table)), origin


def _from_files(source: FileSource, data_root: Path | None) -> tuple[SourceRows, dict[str, Input]]:
    root = source_folder(source, data_root, "dataset", [file.path for file in source.files.values()])
    files = {role: root / file.path for role, file in source.files.items()}
    for role, path in files.items():
        if not path.is_file():
            raise MissingError(f"{path} does not exist ({promised(source.files[role])})")
    advice = "Put the pinned file there, or list both hashes in its sha256."
    origin = {}
    for role, file in source.files.items():
        origin[role] = as_pinned(files[role], f"{source.prefix}{file.path}", file.sha256, advice)
        if not accepted(file.sha256):
            print(f"{files[role]}: not pinned; its sha256 is {origin[role].sha256}")  # noqa: T201
    takes = READERS[source.reader]
    options = takes.parse(source.options, f"options of reader {source.reader}")
    module = importlib.import_module(f"workflow_scripts.data.readers.{takes.module}")
    try:
        return getattr(module, source.reader)(files, options), origin
    except _DAMAGE as error:
        # An error of the operating system; Arrow's errors have no errno.
        if isinstance(error, OSError) and error.errno is not None:
            raise
        names = " and ".join(map(str, files.values()))
        first = (str(error).splitlines() or [""])[0].rstrip(".")
        again = "download the file again" if isinstance(source, Pinned) else "put a complete copy there"
        advice = f"Choose the reader of its format, or {again}."
        raise DataError(f"{names}: not in the format of reader {source.reader}: {first}. {advice}") from error


def _from_hub(source: HubSource, form: str) -> tuple[SourceRows, dict[str, Input]]:
    """Return the rows of a repository at a commit, downloaded and read by the rules in the repository's card."""
    from datasets import load_dataset  # slow to import, and needed only for this kind of source
    from datasets.exceptions import DatasetsError

    where = source.prefix.removesuffix("/")
    folder = str(source_folder(source, None, "dataset", None))
    try:
        parts = {split: load_dataset(folder, source.name, split=split) for split in source.splits}
    except (ValueError, FileNotFoundError, DatasetsError) as error:
        raise DataError(f"{where}: {_unreadable(error)}") from error
    tables = _filtered([part.with_format("arrow")[:] for part in parts.values()], source)
    rows = pa.concat_tables(
        _in_form(table, source, split, form) for split, table in zip(parts, tables, strict=True)
    )
    return SourceRows(rows), {"hub": Input(path=where, sha256=_content_hash(rows))}


def _unreadable(error: Exception) -> str:
    """Return why files of a repository cannot be read, with a remedy, in one line.

    Raises:
        OSError: if the cause is this machine, such as a full disk.
    """
    cause: BaseException = error
    while cause.__cause__ is not None:
        cause = cause.__cause__
    if isinstance(cause, OSError) and cause.errno is not None:
        raise cause
    if cause is error and not isinstance(error, pa.ArrowException):
        return f"{(str(error).splitlines() or [''])[0].rstrip('. ')}. Check name, splits and revision."
    problem = textwrap.shorten(f"its files cannot be read: {cause}", _MAX_SHOWN).rstrip(". ")
    return f"{problem}. Choose another revision, or correct a copy of its files and read it from a source `local`."


def _complete(table: pa.Table) -> tuple[pa.Table, Counter[str]]:
    """Return the rows without unscored pairs and empty texts, and the number of these by reason.

    Labelled texts are kept, since published numbers count empty ones (``_blank``). So are sentences: a paper's number
    of steps counts all lines.
    """
    dropped: Counter[str] = Counter()
    if "score" in table.column_names:
        table = _without(pc.is_null(table["score"], nan_is_null=True), "no score", table, dropped)
        table = _without(_empty(table, "sentence1", "sentence2"), "empty text", table, dropped)
    elif "anchor" in table.column_names:
        given = [
            column.fill_null("") if column.null_count < len(table) else column for column in table.columns
        ]
        filled = pa.table(given, table.column_names)
        empty = pc.or_(_empty(filled, *filled.column_names), pc.is_null(filled["anchor"]))
        table = _without(empty, "empty text", table, dropped)
    return table, +dropped


def _without(faulty: pa.ChunkedArray, reason: str, table: pa.Table, dropped: Counter[str]) -> pa.Table:
    """Return a table without its faulty rows, and count these."""
    kept = table.filter(pc.invert(faulty))
    dropped[reason] += len(table) - len(kept)
    return kept


def _empty(table: pa.Table, *columns: str) -> pa.ChunkedArray:
    """Return for each row whether a text of these columns is empty or blank; a null is neither."""
    empty = [pc.equal(pc.utf8_trim_whitespace(table[name]), "").fill_null(False) for name in columns]
    return functools.reduce(pc.or_, empty)


def _blank(table: pa.Table) -> Counter[str]:
    """Return the number of labelled texts that are empty: SentEval counts those of CR and MPQA."""
    if "label" not in table.column_names:
        return Counter()
    return +Counter({f"{_KEPT}blank line": pc.sum(_empty(table, "text1", "text2")).as_py() or 0})


def _content_hash(rows: pa.Table) -> str:
    """Return a hash of a table's cells, independent of chunks, which identifies data of the Hub."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as stream:
        stream.write_table(rows.combine_chunks())
    return hashlib.sha256(sink.getvalue()).hexdigest()


def _filtered(tables: list[pa.Table], source: HubSource) -> list[pa.Table]:
    """Return the rows of each split that pass the filter of a source.

    Raises:
        DataError: if a split lacks a column of the source, or a filter's column has no such value or is no text.
    """
    where = source.prefix.removesuffix("/")
    for table in tables:
        if missing := sorted({*source.filter, *source.columns.values()} - {*table.column_names}):
            problem = f"no column {missing[0]!r}"
            raise DataError(f"{where}: {problem}. Choose from: {', '.join(table.column_names)}.")
    for name, value in source.filter.items():
        try:
            cells = [_plain(table[name]).cast(pa.string()) for table in tables]
        except (pa.ArrowException, ValueError) as error:
            problem = f"column {name!r} cannot be compared with {value!r}: {error}"
            raise DataError(f"{where}: filter: {problem}. Choose a column of text or numbers.") from error
        values = sorted(
            {cell for column in cells for cell in pc.unique(column).to_pylist() if cell is not None}
        )
        if value not in values:
            shown = [textwrap.shorten(cell, _MAX_NAME) for cell in values]
            raise DataError(f"{where}: filter: {name}: no row has {value!r}. {advice(value, shown)}")
        tables = [table.filter(pc.equal(column, value)) for table, column in zip(tables, cells, strict=True)]
    return tables


def _in_form(rows: pa.Table, source: HubSource, split: str, form: str) -> pa.Table:
    """Return rows of one split of a repository with the columns of ``form``; a column without a source is null.

    Raises:
        DataError: if a column has another type.
    """
    where = source.prefix.removesuffix("/")
    constants = {"split": source.split_names.get(split)} | source.constants
    columns = []
    for field in FORMS[form]:
        if field.name in source.columns:
            column = source.columns[field.name]
            try:
                columns.append(_converted(rows[column], field))
            except (pa.ArrowException, ValueError) as error:
                problem = f"column {column!r} cannot be read as {field.name}: {error}"
                raise DataError(f"{where}: {problem}. Correct the data, or choose another column.") from error
        else:
            columns.append(pa.array([constants.get(field.name)] * len(rows), field.type))
    return pa.table(columns, schema=FORMS[form])


def _converted(cells: pa.ChunkedArray, field: pa.Field) -> pa.ChunkedArray | pa.Array:
    """Return cells of a repository in the type of a column; not-a-number becomes a missing value, as in pandas.

    Raises:
        ValueError: if a score is not a number, or texts are numbers.
        pa.ArrowException: if cells cannot be converted.
    """
    cells = _plain(cells)
    if pa.types.is_floating(cells.type):
        cells = pc.if_else(pc.is_nan(cells), None, cells)
    texts = pa.types.is_string(cells.type) or pa.types.is_large_string(cells.type)
    if field.name in TEXT_COLUMNS and not texts:
        raise ValueError(f"its type is {cells.type}, not text")
    if field.name == "score" and texts:
        return pa.array([number_of(text) if text and text.strip() else None for text in cells.to_pylist()])
    return cells.cast(field.type)


def _plain(cells: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return cells of one type.

    Raises:
        ValueError: if they are of several: ``datasets`` reads such JSON as an extension of Arrow's types.
    """
    if isinstance(cells.type, pa.BaseExtensionType):
        texts = cells.cast(pa.string()).drop_null().to_pylist()
        first = {type(json.loads(text)): text for text in reversed(texts)}
        raise ValueError(f"its values have several types, such as {' and '.join(sorted(first.values())[:2])}")
    return cells


def check_contract(
    name: str, dataset: Dataset, table: pa.Table, dropped: Mapping[str, int] | None = None
) -> None:
    """Raise DataError unless a table meets its dataset's contract.

    Args:
        name: Name of the dataset in the configuration.
        dataset: Its block.
        table: Its rows.
        dropped: Number of dropped rows by reason, for the message.

    Raises:
        DataError: with the dataset, the expected and the actual value.
    """
    contract = dataset.contract
    lost = {reason: count for reason, count in (dropped or {}).items() if not reason.startswith(_KEPT)}
    without = "".join(f", {count} more dropped for {reason}" for reason, count in lost.items())
    for what, (wanted, actual) in _comparisons(dataset.form, contract, table).items():
        if wanted not in (None, actual):
            mismatch = f"{what} {actual}{without}; its contract says {wanted}"
            raise DataError(f"datasets.{name}: {mismatch}. This is not {name}: obtain the right file.")
    _check_texts(name, table)
    if dataset.form == "labelled":
        _check_labels(name, contract, table)
    if len(table) < contract.min_rows:
        raise DataError(
            f"datasets.{name}: rows {len(table)}{without}; its contract says at least {contract.min_rows}."
        )
    if dataset.form == "pairs" and (row := pc.index(pc.is_finite(table["score"]), False).as_py()) >= 0:
        raise DataError(f"datasets.{name}: row {row + 1}: score is not finite. Write a number.")
    if contract.score_range and len(table) and dataset.form in ("pairs", "labelled"):
        low, high = _score_range(name, dataset.form, table)
        if low < contract.score_range[0] or high > contract.score_range[1]:
            problem = f"scores from {low} to {high}; its contract says {contract.score_range}"
            raise DataError(f"datasets.{name}: {problem}.")


def _score_range(name: str, form: str, table: pa.Table) -> tuple[float, float]:
    """Return the minimum and maximum score, or grade of labelled texts."""
    if form == "pairs":
        low, high = pc.min_max(table["score"]).as_py().values()
        return low, high
    try:
        grades = [number_of(label) for label in table["label"].to_pylist()]
    except ValueError as error:
        raise DataError(
            f"datasets.{name}: {error}, but its contract has a score_range. Correct the label, or remove "
            "score_range."
        ) from error
    return min(grades), max(grades)


def _comparisons(form: str, contract: Contract, table: pa.Table) -> dict[str, tuple[Any, Any]]:
    """Return expected values of a contract (None: any value) with the actual values of a table.

    Rows of each group (a subset or split) are compared only if the source has groups.
    """
    groups = pc.value_counts(table["subset" if form == "pairs" else "split"]) if contract.groups else []
    counts = {group["values"].as_py(): group["counts"].as_py() for group in groups}
    labels = len(pc.unique(table["label"])) if contract.labels else None
    return {
        "columns": (FORMS[form].names, table.column_names),
        "rows": (contract.rows, len(table)),
        "groups": (contract.groups if counts.keys() - {None} else None, counts),
        "labels": (contract.labels, labels),
    }


def _check_texts(name: str, table: pa.Table) -> None:
    """Raise DataError if texts are missing, or come from damaged or binary files or from another column.

    Raises:
        DataError: with column and row of the first text that is missing, contains a null character, begins with a
            byte order mark, or is too long; or with a column whose texts are all numbers.
    """
    for field in table.schema:
        if not pa.types.is_string(field.type):
            continue
        texts = table[field.name].combine_chunks()
        checks = {
            "is missing": pc.is_null(texts),
            "contains a null character (UTF-16?)": pc.match_substring(texts, "\0"),
            "begins with a byte order mark": pc.starts_with(texts, "\ufeff"),
            f"is longer than {_MAX_TEXT} characters": pc.greater(pc.utf8_length(texts), _MAX_TEXT),
        }
        if field.name in _MAY_BE_NULL and texts.null_count in (0, len(texts)):
            del checks["is missing"]
        for problem, faulty in checks.items():
            row = pc.index(faulty, True).as_py()
            if row >= 0:
                cell = f"datasets.{name}: row {row + 1}: {field.name}"
                raise DataError(f"{cell} {problem}. Correct the file, or obtain it again.")
        if (
            field.name in TEXT_COLUMNS
            and pc.all(pc.match_substring_regex(texts, r"^\s*\d+(\.\d+)?\s*$")).as_py()
        ):
            problem = f"{field.name}: all {len(texts)} texts are numbers, such as {texts[0].as_py()}"
            raise DataError(f"datasets.{name}: {problem}. Choose the column of the texts.")


def _check_labels(name: str, contract: Contract, table: pa.Table) -> None:
    """Raise DataError unless every label is clearly a class.

    A label that may be a missing value, or the name of a column, is a class if the contract counts the classes.

    Raises:
        DataError: with two labels that differ only in spelling (white space, case, Unicode's form or decimals); a label
            that may stand for a missing value; or one that only a file's first row has.
    """
    labels, splits = table["label"].to_pylist(), table["split"].to_pylist()
    counts, known = Counter(labels), dict[str, str]()
    for label in counts:
        other = known.setdefault(_spelt_alike(label), label)
        if other != label:
            problem = (
                f"labels {other!r} ({counts[other]} rows) and {label!r} ({counts[label]}) differ only in "
                "spelling"
            )
            raise DataError(f"datasets.{name}: {problem}. Use one spelling, or different names.")
    if contract.labels:
        return
    advice = f"Correct the file; if it is a class, add labels: {len(counts)} to the contract."
    if missing := next((label for label in counts if label.casefold() in MISSING), None):
        problem = f"label {missing!r} ({counts[missing]} rows) may stand for a missing value"
        raise DataError(f"datasets.{name}: {problem}. {advice}")
    firsts = Counter(labels[splits.index(split)] for split in dict.fromkeys(splits))
    first = labels[0] if len(firsts) == 1 and not _is_number(labels[0]) else None
    others = [count for label, count in counts.items() if label != first]
    if first and others and firsts[first] == counts[first] and min(others) > 1:
        problem = f"label {first!r} occurs only in the first row, like the name of a column"
        raise DataError(f"datasets.{name}: {problem}. {advice}")


def _spelt_alike(label: str) -> str:
    """Return the form that labels share if they differ in white space, case, hidden characters, Unicode or decimals."""
    text = unicodedata.normalize("NFKC", label).casefold()
    visible = "".join(
        character for character in text if not character.isspace() and unicodedata.category(character) != "Cf"
    )
    return str(number_of(visible)) if _is_number(visible) else visible


def _is_number(text: str) -> bool:
    try:
        number_of(text)
    except ValueError:
        return False
    return True


def read_dataset(job: Job) -> None:
    """Read one dataset from its first available source (rule read_dataset)."""
    name, plan = job.wildcards["dataset"], SourcePlan.parse(job.settings["source"], "source")
    dataset = Dataset.parse(job.operational["contract"], f"datasets.{name}")
    (table, counts), origin, gap = load_planned(name, dataset, job.workplace.data_root, plan)
    tables = {"table": table.cast(FORMS[dataset.form]), "dropped": table_of(counts.items(), DROPPED)}
    job.write(tables, external=origin, labels=[gap_label(gap)] if gap else [])
