"""One sentence per line, plain text or gzip; every line is a document of its own.

Published corpora are such files, and a paper's number of steps is that of their lines: repeats, short lines and blank
ones included, as they are. Cleaning is a choice, and its counts are part of what is read.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.columns.corpora import SENTENCES
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.sentences import keep_sentences
from workflow_scripts.data.tables import table_of
from workflow_scripts.data.text_files import read_lines
from workflow_scripts.settings.readers.lines import Config


def read(files: Mapping[str, Path], options: Config) -> Rows:
    """Read the file of role ``text``.

    Returns:
        Rows of the form ``sentences``.

    Raises:
        DataError: naming the first line that is not UTF-8, or if a gzip file is incomplete.
    """
    lines = [line.rstrip("\r") for line in read_lines(files["text"])]
    if options.cleaning == "none":
        rows = ((line, document, 0) for document, line in enumerate(lines))
        return Rows(table_of(rows, SENTENCES), Counter())
    cleaned = [" ".join(line.split()) for line in lines]
    blank = Counter({"blank": cleaned.count("")})
    table, cut = keep_sentences(([line] for line in cleaned if line), options.min_words, options.max_words)
    return Rows(table, blank + cut)
