"""Labelled texts in tab-separated columns with a header and no quoting.

MRPC, SciCite, the short-text clustering sets and the Quora pairs come so, under different column names.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.data.readers import Reading
from workflow_scripts.data.text_files import labelled, parts, read_rows


def read(
    files: Mapping[str, Path], *, label: str, text1: str, text2: str | None = None, split: str | None = None
) -> Reading:
    """Read the parts train, dev and test, or the one part ``all``.

    Args:
        files: Part to file.
        label: Column of the label.
        text1: Column of the text, or of a pair's first text.
        text2: Column of a pair's second text.
        split: Column that names the split of a row; otherwise the part does.

    Raises:
        DataError: if a column is not there, or naming the line that has too few.
    """
    columns = [name for name in (label, text1, text2, split) if name is not None]
    rows = []
    for part, path in parts(files):
        for _, cells in read_rows(path, columns):
            row = dict(zip(columns, cells, strict=True))
            rows.append(
                (row[split] if split else part, row[text1], row[text2] if text2 else None, row[label])
            )
    return Reading(labelled(rows), Counter())
