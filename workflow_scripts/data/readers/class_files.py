"""One file per class, one text per line: MR, CR, SUBJ and MPQA as distributed with SentEval.

Blank lines are kept as empty texts, because SentEval counts them (CR 3,775 and MPQA 10,606 texts). The files of MR
and SUBJ have passed through ``cat -v``, which writes bytes above 127 as ``M-`` and a letter; published numbers were
computed on these escapes, so they are kept. Both are counted.
"""

import re
from collections import Counter

from workflow_scripts.columns import LABELLED
from workflow_scripts.data.readers import Files, Rows, read_text, split_lines
from workflow_scripts.data.tables import table_of
from workflow_scripts.settings.readers import ClassFiles as Config

# Texts were lower-cased before the escapes were written, so a capital M marks an escape.
_ESCAPE = re.compile(r"M-(\^[@-_?]|[ -~])")


def read(files: Files, _options: Config) -> Rows:
    """Read all files in alphabetical order of their roles; a file's role is the label of its texts.

    Returns:
        Rows of the form ``labelled``: stripped texts, and the numbers of blank texts and of texts with an escape; none
        is dropped.
    """
    lines = [(label, line) for label, path in sorted(files.items()) for line in split_lines(read_text(path))]
    rows = [("", line.strip(), None, label) for label, line in lines]
    escapes = sum(_ESCAPE.search(line) is not None for _, line in lines)
    blank = sum(not text for _, text, *_ in rows)
    kept = Counter({"kept: escapes of cat -v": escapes, "kept: blank line": blank})
    return Rows(table_of(rows, LABELLED), +kept)
