"""Labelled texts in tab-separated columns with a header and no quoting.

The format of MRPC, SciCite, the short-text clustering sets and the Quora pairs, which differ in column names.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.text_files import labelled, parts, read_rows


def read(
    files: Mapping[str, Path], *, label: str, text1: str, text2: str | None = None, split: str | None = None
) -> Rows:
    """Read the parts train, dev and test, or the one part ``all``.

    Args:
        files: Any of ``train``, ``dev`` and ``test``, or ``all`` for the one part of a task without splits.
        label: Column of the label.
        text1: Column of the text, or of a pair's first text.
        text2: Column of a pair's second text.
        split: Column with the split of a row; if None, the part is the split.

    Returns:
        Rows of the form ``labelled``.

    Raises:
        DataError: if a column is missing, or naming a line with too few cells.
    """
    columns = [name for name in (label, text1, text2, split) if name is not None]
    rows = []
    for part, path in parts(files):
        for _, cells in read_rows(path, columns):
            row = dict(zip(columns, cells, strict=True))
            rows.append(
                (row[split] if split else part, row[text1], row[text2] if text2 else None, row[label])
            )
    return Rows(labelled(rows), Counter())
