"""Lines and parts of text files, for the readers of evaluation data.

Lines end only at a line feed: ``str.splitlines`` would also split at characters that occur inside texts (U+0085,
U+2028). A file whose name ends in ``.gz`` is decompressed.
"""

import gzip
import zlib
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.errors import DataError

SPLITS = {"train": "train", "dev": "dev", "test": "test", "all": ""}
"""Role of a file to the split of its rows; ``all`` is for tasks that are cross-validated or have no splits."""


def read_text(path: Path, otherwise: str | None = None) -> str:
    """The text of a UTF-8 file without a byte order mark, decompressed if its name ends in ``.gz``.

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
        return content.decode("utf-8-sig")
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
