"""Releases of Wikitext: each paragraph is a document and is split into sentences; headings are dropped.

The tokenised release writes rare words as <unk>, and hyphens, commas and points inside words and numbers as ``@-@``;
the raw release does neither. Papers seldom name the release, so both can be read.
"""

import re
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from workflow_scripts.columns import SENTENCES
from workflow_scripts.data.readers import Files, Rows, read_text, split_lines
from workflow_scripts.data.sentences import split_sentences
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers import Wikitext as Config

_HEADING = re.compile(r"= .* =$")
_JOINED = re.compile(r" @([-,.])@ ")
_UNKNOWN = "<unk>"


def read(files: Files, options: Config) -> Rows:
    """Read all files, in the order of the source.

    Returns:
        Rows of the form ``sentences``.

    Raises:
        DataError: if a text is missing.
    """
    dropped: Counter[str] = Counter()
    rows: list[tuple[str, int, int]] = []
    document = 0
    for paragraph in (line.strip() for path in files.values() for line in _lines(path)):
        if not paragraph or _HEADING.match(paragraph):
            dropped["heading" if paragraph else "blank"] += 1
            continue
        text = _JOINED.sub(r"\1", paragraph)
        if options.unknown is not None:
            text = text.replace(_UNKNOWN, options.unknown)
        for position, sentence in enumerate(split_sentences(text)):
            if len(sentence) < options.min_characters:
                dropped[f"under {options.min_characters} characters"] += 1
            else:
                rows.append((sentence, document, position))
        document += 1
    return Rows(table_of(rows, SENTENCES), dropped)


def _lines(path: Path) -> list[str]:
    """Lines of a text file, or the column ``text`` of the Hub's Parquet files."""
    if path.suffix != ".parquet":
        return split_lines(read_text(path))
    lines: list[Any] = pq.read_table(path, columns=["text"])["text"].to_pylist()
    if None in lines:
        raise DataError(f"{path}: row {lines.index(None) + 1}: text is missing. Correct the file.")
    return lines
