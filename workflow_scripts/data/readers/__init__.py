"""Readers of source formats: functions in the modules of this folder, selected by a dataset's source.

A reader receives files by role (the keys of the source's ``files``, with checked hashes) and the source's ``options``,
parsed by its class in ``settings.sources``. It returns ``SourceRows`` of a form listed in the class, and raises a
DataError with file and line, the actual and the expected contents. It need not catch a library's exceptions for damaged
files: ``datasets.load`` adds the file's name.

Lines of text end at a line feed, with or without carriage returns: ``str.splitlines`` would also split at characters
that occur inside texts (U+0085, U+2028). Files compressed with gzip are decompressed. Pairs without a score,
and pairs and triples with an empty text, are not dropped here: ``datasets.load`` drops and counts them.
"""

import gzip
import json
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
        DataError: if the file has another format, or is a page or pointer in place of a file; with the line that is not
            UTF-8, or that programs read in different ways because of a carriage return
            without a line feed, other line ends and no line feed, a control character that is a letter or quotation
            mark in another encoding, or lines in two encodings.
    """
    content = path.read_bytes()
    if path.suffix.lower() == ".gz" or content.startswith(_GZIP):
        content = gzip.decompress(content)
    _check_is_text(path, content, _BINARY if fallback_encoding else _BINARY | _WIDE)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if not fallback_encoding:
            line = content.count(b"\n", 0, error.start) + 1
            problem = f"byte {content[error.start]:#x} is not UTF-8"
            raise DataError(f"{path}:{line}: {problem}. Convert the file to UTF-8.") from error
        text = _decoded(path, content, fallback_encoding)
    _check_is_data(path, text)
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


_GZIP = b"\x1f\x8b"
_BINARY = {
    rb"PK\x03\x04": "a ZIP archive or spreadsheet (.xlsx)", rb"\xd0\xcf\x11\xe0": "an Excel file (.xls)",
    rb"BZh\d1AY&SY": "compressed with bzip2", rb"\xfd7zXZ": "compressed with xz", rb"PAR1": "Parquet",
    rb"\x28\xb5\x2f\xfd": "compressed with zstd", rb"7z\xbc\xaf": "a 7z archive", rb"%PDF-": "a PDF",
}  # fmt: skip
"""Formats that are no text, by a pattern of a file's first bytes."""
_WIDE = {
    rb"\xff\xfe\0\0|\0\0\xfe\xff": "UTF-32", rb"\xff\xfe|\xfe\xff": "UTF-16",
    rb"(\0[^\0]){4}|([^\0]\0){4}": "UTF-16 without a byte order mark",
}  # fmt: skip
"""Encodings with several bytes for each letter, which a file's fallback encoding may be."""


def _check_is_text(path: Path, content: bytes, formats: Mapping[bytes, str]) -> None:
    """Raise DataError if a file has one of these formats."""
    found = next((name for start, name in formats.items() if re.match(start, content)), None)
    if found:
        raise DataError(f"{path}: the file is {found}. Convert it to text in UTF-8.")


_STAND_INS = {
    r"version https://git-lfs": ("a Git LFS pointer", "Obtain the file itself: git lfs pull"),
    r"\s*<(!doctype\s+html|html)\b": (
        "an HTML page",
        "Download the file itself; some pages first ask for a login",
    ),
}
"""Texts that downloads leave in place of a file, by pattern."""


def _check_is_data(path: Path, text: str) -> None:
    """Raise DataError if a text is what a download left in place of a file."""
    for pattern, (found, advice) in _STAND_INS.items():
        if re.match(pattern, text, re.IGNORECASE):
            raise DataError(f"{path}: {found}, not the file. {advice}.")


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


def plain_lines(path: Path) -> list[str]:
    """Return the lines of a text file with one text per line.

    Raises:
        DataError: if the file is JSON, or all lines are rows of a table or in quotation marks.
    """
    text = read_text(path)
    lines = [line for line in text.split("\n") if line.strip()]
    problem = None
    if len(cells := {line.count("\t") + 1 for line in lines}) == 1 and cells != {1}:
        problem = f"all lines have {cells.pop()} cells separated by tabs"
    if all(len(line) > 1 and line[0] == line.rstrip()[-1] == '"' for line in lines):
        problem = "all lines have quotation marks around them"
    if all((line[0], line.rstrip()[-1]) == ("{", "}") for line in lines):
        problem = "all lines are JSON"
    if len(lines) < 2:
        problem = None
    if _is_json(text.strip()):
        problem = "the contents are JSON"
    if problem and lines:
        advice = "Write only the texts into the file, one per line."
        raise DataError(f"{path}: {problem}, which would become part of the texts. {advice}")
    return split_lines(text)


_SPACE = re.compile(r"\s+")


def _is_json(text: str) -> bool:
    """Return whether a text consists of JSON objects and lists only, on one line or several."""
    end, decoder = 0, json.JSONDecoder()
    while text[end : end + 1] in ("{", "["):
        try:
            _, end = decoder.raw_decode(text, end)
        except (ValueError, RecursionError):
            return False
        if blank := _SPACE.match(text, end):
            end = blank.end()
    return bool(text) and end == len(text)
