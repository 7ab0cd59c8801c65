"""Labelled texts in tab-separated columns with a header and no quoting.

The format of MRPC, SciCite, the short-text clustering sets and the Quora pairs, which differ in column names.
"""

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.text_files import labelled, parts, read_rows
from workflow_scripts.settings.readers.labelled_tsv import Config


def read(files: Mapping[str, Path], options: Config) -> Rows:
    """Read the parts train, dev and test, or the one part ``all``.

    Returns:
        Rows of the form ``labelled``.

    Raises:
        DataError: if a column is missing, or naming a line with too few cells.
    """
    columns = [
        name for name in (options.label, options.text1, options.text2, options.split) if name is not None
    ]
    rows = []
    for part, path in parts(files):
        for _, cells in read_rows(path, columns):
            row = dict(zip(columns, cells, strict=True))
            rows.append(
                (
                    row[options.split] if options.split else part,
                    row[options.text1],
                    row[options.text2] if options.text2 else None,
                    row[options.label],
                )
            )
    return Rows(labelled(rows), Counter())
