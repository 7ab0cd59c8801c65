"""Wikitext's releases: paragraphs to sentences, headings left out, one document a paragraph.

The tokenised release writes rare words as <unk> and joins hyphens, commas and points inside numbers as ``@-@``; the
raw release has neither. Which of the two a paper used is seldom said, so that both are options.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.data.readers import Reading
from workflow_scripts.data.sentences import split_sentences
from workflow_scripts.data.text_files import read_lines
from workflow_scripts.schemas import SENTENCES

_HEADING = re.compile(r"= .* =$")
_JOINED = re.compile(r" @([-,.])@ ")
_UNKNOWN = "<unk>"


def read(files: Mapping[str, Path], *, unknown: str | None, min_characters: int) -> Reading:
    """Read files one after the other, in the order of their roles.

    Args:
        files: Role to file: text, plain or gzip-packed, or Parquet.
        unknown: What stands for <unk>; null leaves it as it is.
        min_characters: Shorter sentences are dropped; the extraction study has 10.
    """
    dropped: Counter[str] = Counter()
    rows: list[tuple[str, int, int]] = []
    document = 0
    for path in files.values():
        for line in _lines(path):
            paragraph = line.strip()
            if not paragraph or _HEADING.match(paragraph):
                dropped["heading" if paragraph else "blank"] += 1
                continue
            for position, sentence in enumerate(split_sentences(_plain(paragraph, unknown))):
                if len(sentence) < min_characters:
                    dropped[f"under {min_characters} characters"] += 1
                else:
                    rows.append((sentence, document, position))
            document += 1
    columns = list(zip(*rows, strict=True)) or [(), (), ()]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, SENTENCES, strict=True)]
    return Reading(pa.table(arrays, schema=SENTENCES), dropped)


def _lines(path: Path) -> list[str]:
    """Lines of a text file, or the column ``text`` of the Hub's Parquet files."""
    if path.suffix != ".parquet":
        return read_lines(path)
    lines: list[str] = pq.read_table(path, columns=["text"])["text"].to_pylist()
    return lines


def _plain(paragraph: str, unknown: str | None) -> str:
    joined = _JOINED.sub(r"\1", paragraph)
    return joined if unknown is None else joined.replace(_UNKNOWN, unknown)
