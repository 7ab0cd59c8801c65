"""Readers of source formats: functions in the modules of this folder, selected by a dataset's source.

A reader receives files by role (the keys of the source's ``files``, with checked hashes) and the source's ``options``,
parsed by its class in ``settings.sources``. It returns ``SourceRows`` of a form listed in the class, and raises a
DataError with file and line, the actual and the expected contents. It need not catch a library's exceptions for damaged
files: ``datasets.load`` adds the file's name.

Lines of text end at a line feed, with or without carriage returns: ``str.splitlines`` would also split at characters
that occur inside texts (U+0085, U+2028). A file whose name ends in ``.gz`` is decompressed. Pairs without a score,
and pairs and triples with an empty text, are not dropped here: ``datasets.load`` drops and counts them.
"""

import gzip
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from workflow_scripts.errors import DataError

Files = Mapping[str, Path]


class SourceRows(NamedTuple):
    """The rows of a source."""

    table: pa.Table
    """Rows in the order of the files, with the columns of one form (``columns.FORMS``)."""

    dropped: Counter[str] = Counter()  # noqa: RUF012  (never changed)
    """Number of dropped rows by reason, for the report."""


def read_text(path: Path, fallback_encoding: str | None = None) -> str:
    """Return the text of a UTF-8 file without a byte order mark, with a line feed at the end of each line.

    Args:
        path: The file.
        fallback_encoding: Encoding of files that are not UTF-8.

    Raises:
        DataError: with the line that is not UTF-8, or that programs read in different ways because of a carriage return
            without a line feed, other line ends and no line feed, a control character that is a letter or quotation
            mark in another encoding, or lines in two encodings.
    """
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if not fallback_encoding:
            line = content.count(b"\n", 0, error.start) + 1
            problem = f"byte {content[error.start]:#x} is not UTF-8"
            raise DataError(f"{path}:{line}: {problem}. Convert the file to UTF-8.") from error
        text = _decoded(path, content, fallback_encoding)
    text = re.sub("\r+\n", "\n", text)
    if match := re.search("\r", text):
        line, feeds, returns = text.count("\n", 0, match.start()) + 1, text.count("\n"), text.count("\r")
        problem = (
            f"a carriage return without a line feed: the file has {feeds} or {feeds + returns} line ends"
        )
        raise DataError(f"{path}:{line}: {problem}. Convert its line ends to line feeds.")
    if "\n" not in text and len(lines := text.splitlines()) > 1:
        end = f"U+{ord(text[len(lines[0])]):04X}"
        problem = f"{end} and no line feed: the file has 1 line or {len(lines)}"
        raise DataError(f"{path}:1: {problem}. Convert its line ends to line feeds.")
    return text


def _decoded(path: Path, content: bytes, encoding: str) -> str:
    """Return the text of a file that is not UTF-8."""
    for line, part in enumerate(content.split(b"\n"), start=1):
        if not part.isascii() and _is_utf8(part):
            problem = f"line {line} is UTF-8, but other lines are not"
            raise DataError(f"{path}:{line}: {problem}. Convert the file to UTF-8.")
    try:
        text = content.decode(encoding)
    except UnicodeError as error:
        problem = f"neither UTF-8 nor {encoding}"
        raise DataError(f"{path}: {problem}: {error}. Convert the file to UTF-8.") from error
    if match := re.search("[\x80-\x9f]", text):
        line, byte = text.count("\n", 0, match.start()) + 1, match[0].encode("latin-1")
        problem = f"byte {byte[0]:#x} is a control character in {encoding}"
        if letter := byte.decode("cp1252", "ignore"):
            problem, advice = (
                f"{problem}, and {letter} in cp1252",
                "Set fallback_encoding: cp1252, or convert the file to UTF-8",
            )
        else:
            advice = "Convert the file to UTF-8"
        raise DataError(f"{path}:{line}: {problem}. {advice}.")
    return text


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True


def split_lines(text: str) -> list[str]:
    """Return the lines of a text without line feeds; a blank line is an empty string."""
    return text.removesuffix("\n").split("\n") if text else []
