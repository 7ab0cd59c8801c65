"""One sentence per line, plain text or gzip; every line is a document of its own.

Published corpora are such files, and a paper's number of steps is that of their lines: repeats, short lines and blank
ones included, as they are. Cleaning is a choice, and its counts are part of what is read.
"""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from workflow_scripts.columns.corpora import SENTENCES
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.sentences import keep_sentences
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers.lines import Config


def read(files: Mapping[str, Path], options: Config) -> Rows:
    """Read the file of role ``text``.

    Returns:
        Rows of the form ``sentences``.

    Raises:
        DataError: naming the first line that is not UTF-8, or if a gzip file is incomplete.
    """
    dropped: Counter[str] = Counter()
    if options.cleaning == "none":
        lines = enumerate(_decoded(files["text"]))
        rows = ((line.rstrip("\r\n"), document, 0) for document, line in lines)
        return Rows(table_of(rows, SENTENCES), dropped)
    table, cut = keep_sentences(
        ([line] for line in _lines(files["text"], dropped)), options.min_words, options.max_words
    )
    return Rows(table, dropped + cut)


def _lines(path: Path, dropped: Counter[str]) -> Iterator[str]:
    for text in _decoded(path):
        if line := " ".join(text.split()):
            yield line
        else:
            dropped["blank"] += 1


def _decoded(path: Path) -> Iterator[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        for number, raw in enumerate(_whole(path, file), start=1):
            try:
                yield raw.decode("utf-8-sig" if number == 1 else "utf-8")
            except UnicodeDecodeError as error:
                raise DataError(f"{path}:{number}: not UTF-8 ({error.reason}). Convert the file.") from error


def _whole(path: Path, file: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a complete gzip file: {error}. Download the file again.") from error
