"""The STS benchmark as comma-separated values with quotes and no header: sentence1, sentence2, score.

The format of PhilipMay/stsb-multi-mt, whose rows are in the order of the original release.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path

import pyarrow as pa

from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.text_files import labelled, number, parts, read_text
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers.stsb_csv import Config


def read(files: Mapping[str, Path], options: Config) -> Rows:
    """Read the parts train, dev, test, or the one part ``all``.

    Returns:
        Rows of the form ``pairs`` or ``labelled``.

    Raises:
        DataError: naming a line without three columns or with a score that is not a number.
    """
    rows = [(split, *row) for split, path in parts(files) for row in _rows(path)]
    if options.form == "labelled":
        return Rows(labelled((split, one, two, f"{score:g}") for split, one, two, score in rows), Counter())
    pairs = [
        {"subset": "", "sentence1": one, "sentence2": two, "score": score} for _, one, two, score in rows
    ]
    return Rows(pa.Table.from_pylist(pairs, schema=PAIRS), Counter())


def _rows(path: Path) -> Iterator[tuple[str, str, float]]:
    lines = csv.reader(io.StringIO(read_text(path), newline=""), strict=True)
    try:
        for cells in lines:
            if len(cells) != 3:
                raise DataError(
                    f"{path}:{lines.line_num}: {len(cells)} columns instead of 3. Download the file again."
                )
            yield cells[0], cells[1], number(cells[2], path, lines.line_num)
    except csv.Error as error:
        raise DataError(
            f"{path}:{lines.line_num}: broken quoting: {error}. Download the file again."
        ) from error
