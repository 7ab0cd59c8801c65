"""One file per class, one text per line: MR, CR, SUBJ and MPQA as distributed with SentEval.

Blank lines are kept as empty texts, because SentEval counts them (CR 3,775 and MPQA 10,606 texts). The files of MR
and SUBJ have passed through ``cat -v``, which writes bytes above 127 as ``M-`` and a letter; published numbers were
computed on these escapes, so decoding them is optional. Both are counted.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.columns.corpora import LABELLED
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.tables import table_of
from workflow_scripts.data.text_files import read_lines
from workflow_scripts.settings.readers.class_files import Config

# Texts were lower-cased before the escapes were written, so a capital M marks an escape.
# A caret alone is kept: carets occur in texts, and no file holds an escaped control character.
_ESCAPE = re.compile(r"M-(\^[@-_?]|[ -~])")


def read(files: Mapping[str, Path], options: Config) -> Rows:
    """Read all files in alphabetical order of their roles; a file's role is the label of its texts.

    Returns:
        Rows of the form ``labelled``: stripped texts, and how many were blank or contained an escape. None is dropped.
    """
    kept: Counter[str] = Counter()
    rows = []
    for label, path in sorted(files.items()):
        for line in read_lines(path):
            escaped = _ESCAPE.search(line) is not None
            kept[f"kept: escapes of cat -v ({options.escapes})"] += escaped
            text = (_ESCAPE.sub(_character, line) if options.escapes == "decode" else line).strip()
            kept["kept: blank line"] += not text
            rows.append(("", text, None, label))
    return Rows(table_of(rows, LABELLED), +kept)


def _character(escape: re.Match[str]) -> str:
    """The character whose byte ``cat -v`` wrote as this escape, in the files' code page (1252)."""
    shown = escape.group(1)
    low = ord(shown[1]) ^ 0x40 if len(shown) == 2 else ord(shown)
    byte = bytes([low | 0x80])
    try:
        return byte.decode("cp1252")
    except UnicodeDecodeError:  # five bytes have no character in this code page
        return byte.decode("latin-1")
