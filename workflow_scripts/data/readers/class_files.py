"""One file a class, one text a line: MR, CR, SUBJ and MPQA as SentEval keeps them.

Blank lines are kept as empty texts, because SentEval counts them (CR 3,775 and MPQA 10,606 texts). The
files of MR and SUBJ went through ``cat -v``, which wrote bytes above 127 as ``M-`` and a letter; published
numbers were computed on those escapes, so decoding them is an option. Both are counted.
"""

import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from workflow_scripts.data.readers import Reading
from workflow_scripts.data.text_files import labelled, read_lines

# The texts are lower-cased before the escapes were written, so that a capital M marks an escape.
# A caret alone is left: it stands in texts, and no file holds an escaped control character.
_ESCAPE = re.compile(r"M-(\^[@-_?]|[ -~])")


def read(files: Mapping[str, Path], *, escapes: Literal["keep", "decode"]) -> Reading:
    """Read all files; a file's role is the label of its texts, and roles come in alphabetical order.

    Args:
        files: Label to file.
        escapes: What to do with the escapes of ``cat -v``.

    Returns:
        The texts with ends stripped, and how many were blank or held an escape. No row is dropped.
    """
    kept: Counter[str] = Counter()
    rows = []
    for label, path in sorted(files.items()):
        for line in read_lines(path):
            escaped = _ESCAPE.search(line) is not None
            kept[f"kept: escapes of cat -v ({escapes})"] += escaped
            text = (_ESCAPE.sub(_character, line) if escapes == "decode" else line).strip()
            kept["kept: blank line"] += not text
            rows.append(("", text, None, label))
    return Reading(labelled(rows), +kept)


def _character(escape: re.Match[str]) -> str:
    """The character whose byte ``cat -v`` wrote as this escape, in the code page of the sources (1252)."""
    shown = escape.group(1)
    low = ord(shown[1]) ^ 0x40 if len(shown) == 2 else ord(shown)
    byte = bytes([low | 0x80])
    try:
        return byte.decode("cp1252")
    except UnicodeDecodeError:  # five bytes have no character there
        return byte.decode("latin-1")
