"""Lines, columns and parts of text files, for the readers of evaluation data.

Lines end only at a line feed: ``str.splitlines`` would also split at characters that occur inside texts (U+0085,
U+2028). A file whose name ends in ``.gz`` is decompressed.
"""

import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from workflow_scripts.columns.corpora import LABELLED
from workflow_scripts.errors import DataError

SPLITS = {"train": "train", "dev": "dev", "test": "test", "all": ""}
"""Role of a file to the split of its rows; ``all`` is for tasks that are cross-validated or have no splits."""

Labelled = tuple[str, str, str | None, str]
"""Split, first text, second text if there is one, label."""


def read_text(path: Path, otherwise: str | None = None) -> str:
    """The text of a UTF-8 file, decompressed if its name ends in ``.gz``.

    Args:
        path: The file.
        otherwise: The encoding of a file that is not UTF-8.

    Raises:
        DataError: if a gzip file is incomplete, or naming the line that is not UTF-8.
    """
    try:
        content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a complete gzip file: {error}. Download the file again.") from error
    try:
        return content.decode("utf-8")
    except UnicodeDecodeError as error:
        if otherwise:
            return content.decode(otherwise)
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{path}:{line}: byte {content[error.start]:#x} is not UTF-8. Convert the file to UTF-8."
        ) from error


def read_lines(path: Path, otherwise: str | None = None) -> list[str]:
    """The lines of a text file without line feeds; a blank line is an empty string."""
    text = read_text(path, otherwise).removesuffix("\n")
    return text.split("\n") if text else []


def read_rows(
    path: Path, columns: Iterable[str], optional: Iterable[str] = ()
) -> Iterator[tuple[int, list[str]]]:
    """Yield line number and the cells of ``columns`` from a tab-separated file with a header, no quoting.

    Args:
        path: The file.
        columns: Required columns, by their names in the header.
        optional: Further columns; their cells are empty if the file lacks them.

    Raises:
        DataError: if the header lacks a required column, or naming a line with too few or too many cells.
    """
    header, *lines = read_lines(path) or [""]
    names = header.split("\t")
    wanted, other = list(columns), list(optional)
    if twice := [name for name in (*wanted, *other) if names.count(name) > 1]:
        raise DataError(f"{path}:1: column {twice[0]!r} is there twice. Leave one.")
    if missing := [name for name in wanted if name not in names]:
        raise DataError(f"{path}:1: no column {missing[0]!r}; has {names}. {_remedy(header)}")
    places = [names.index(name) if name in names else None for name in (*wanted, *other)]
    for line_number, line in enumerate(lines, start=2):
        cells = line.split("\t")
        if len(cells) != len(names):
            found = f"{len(cells)} columns; the header has {len(names)}"
            raise DataError(f"{path}:{line_number}: {found}. Download the file again.")
        yield line_number, ["" if place is None else cells[place] for place in places]


def _remedy(header: str) -> str:
    """What may be wrong with a file whose header lacks a column."""
    if header.startswith("\ufeff"):
        return "Save the file without a byte order mark (UTF-8, not UTF-8 with BOM)."
    if header.endswith("\r"):
        return "Save the file with line ends of Unix."
    return "Name the columns in the first line, set off by tabs, or download the file again."


def parts(files: Mapping[str, Path]) -> list[tuple[str, Path]]:
    """Split and file of each part, in the order train, dev, test.

    Raises:
        DataError: naming a role that is not one of ``SPLITS``.
    """
    if unknown := sorted(files.keys() - SPLITS.keys()):
        raise DataError(
            f"{files[unknown[0]]}: role {unknown[0]!r} is none of {', '.join(SPLITS)}. Rename it."
        )
    return [(split, files[role]) for role, split in SPLITS.items() if role in files]


def number(text: str, path: Path, line: int) -> float:
    """Read a score.

    Raises:
        DataError: naming the line, if the score is not a finite number.
    """
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise DataError(f"{path}:{line}: score {text!r} is not a number. Download the file again.")
    return value


def labelled(rows: Iterable[Labelled]) -> pa.Table:
    """Rows as a table with the columns of ``columns.corpora.LABELLED``."""
    columns = list(zip(*rows, strict=True)) or [()] * len(LABELLED)
    return pa.table([list(column) for column in columns], schema=LABELLED)
