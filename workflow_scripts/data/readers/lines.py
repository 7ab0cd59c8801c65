"""One sentence per line, plain text or gzip; every line is its own document.

Published corpora are such files, and a paper's number of steps counts all lines, including repeated, short and blank
ones. Cleaning is optional, and its counts are part of the result.
"""

from collections import Counter

from workflow_scripts.columns import SENTENCES
from workflow_scripts.data.readers import Files, Rows, read_text, split_lines
from workflow_scripts.data.sentences import keep_sentences
from workflow_scripts.data.tables import table_of
from workflow_scripts.settings.readers import Lines as Config


def read(files: Files, options: Config) -> Rows:
    """Read the file of role ``text``.

    Returns:
        Rows of the form ``sentences``.

    Raises:
        DataError: naming the first line that is not UTF-8.
    """
    lines = split_lines(read_text(files["text"]))
    if options.cleaning == "none":
        return Rows(table_of([(line, document, 0) for document, line in enumerate(lines)], SENTENCES))
    cleaned = [" ".join(line.split()) for line in lines]
    blank = Counter({"blank": cleaned.count("")})
    table, cut = keep_sentences(([line] for line in cleaned if line), options.min_words, options.max_words)
    return Rows(table, blank + cut)
