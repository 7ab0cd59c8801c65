"""Readers of source formats: functions of the modules of this folder, which a dataset's source names.

A reader gets files by role (the keys of the source's ``files``, with checked hashes) and the source's ``options``,
parsed by its class in ``settings.sources``. It returns ``Rows`` of a form that the class names, and raises a DataError
with file and line, the actual and the expected contents. It need not catch a library's exceptions for damaged files:
``datasets.load`` adds the file's name.

Lines of text end at a line feed, with or without carriage returns: ``str.splitlines`` would also split at characters
that occur inside texts (U+0085, U+2028). A file whose name ends in ``.gz`` is decompressed. Pairs without a score and
triples with an empty text are not dropped here: ``datasets.load`` drops and counts them.
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


class Rows(NamedTuple):
    """The rows of a source."""

    table: pa.Table
    """Rows in the order of the files, with the columns of one form (``columns.FORMS``)."""

    dropped: Counter[str] = Counter()  # noqa: RUF012  (never changed)
    """Number of dropped rows by reason, for the report."""


def read_text(path: Path, otherwise: str | None = None) -> str:
    """The text of a UTF-8 file without a byte order mark; lines end in a line feed alone.

    Args:
        path: The file.
        otherwise: The encoding of a file that is not UTF-8.

    Raises:
        DataError: naming the line that is not UTF-8.
    """
    content = gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        if not otherwise:
            line = content.count(b"\n", 0, error.start) + 1
            problem = f"byte {content[error.start]:#x} is not UTF-8"
            raise DataError(f"{path}:{line}: {problem}. Convert the file to UTF-8.") from error
        text = content.decode(otherwise)
    return re.sub("\r+\n", "\n", text)


def split_lines(text: str) -> list[str]:
    """The lines of a text without line feeds; a blank line is an empty string."""
    return text.removesuffix("\n").split("\n") if text else []
