"""One sentence per line, plain text or gzip; every line is a document of its own."""

import gzip
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.sentences import keep_sentences
from workflow_scripts.errors import DataError


def read(files: Mapping[str, Path], *, min_words: int, max_words: int) -> Rows:
    """Read the file of role ``text``.

    Args:
        files: ``text``.
        min_words: Shorter lines are dropped.
        max_words: Longer lines are dropped.

    Returns:
        Rows of the form ``sentences``.

    Raises:
        DataError: naming the first line that is not UTF-8, or if a gzip file is incomplete.
    """
    dropped: Counter[str] = Counter()
    table, cut = keep_sentences(([line] for line in _lines(files["text"], dropped)), min_words, max_words)
    return Rows(table, dropped + cut)


def _lines(path: Path, dropped: Counter[str]) -> Iterator[str]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as file:
        for number, raw in enumerate(_whole(path, file), start=1):
            try:
                line = " ".join(raw.decode("utf-8-sig" if number == 1 else "utf-8").split())
            except UnicodeDecodeError as error:
                raise DataError(f"{path}:{number}: not UTF-8 ({error.reason}). Convert the file.") from error
            if line:
                yield line
            else:
                dropped["blank"] += 1


def _whole(path: Path, file: Iterable[bytes]) -> Iterator[bytes]:
    try:
        yield from file
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataError(f"{path}: not a complete gzip file: {error}. Download the file again.") from error
