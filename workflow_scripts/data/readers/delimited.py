"""Files of cells: scored pairs, labelled texts and triples as most of them are distributed.

Cells are set off by tabs, commas or spaces, quoted or not, with or without a header; options say which column of the
file is which of the form. Where cells are not quoted, quotation marks are text, and lines end only at a line feed.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.data.readers import Files, Rows, lines_of, read_text
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers import PARTS
from workflow_scripts.settings.readers.delimited import Config

_ADVICE = "Correct the options columns, header and separator, or save the file with line ends of Unix."


def read(files: Files, options: Config) -> Rows:
    """Read the parts train, dev and test, or the one part ``all``, whose rows have no split.

    Returns:
        Rows of the form that has the configured columns. Pairs without a score were never judged, and are dropped;
        so are triples with an empty text.

    Raises:
        DataError: if a column is missing, or naming a line with too few or too many cells, without a label, or with a
            score that is not a number.
    """
    schema = FORMS[str(options.form)]  # a configuration without one is refused
    dropped: Counter[str] = Counter()
    rows = []
    for part in [part for part in PARTS if part in files]:
        for line, cells in _rows(files[part], options):
            if options.form == "pairs" and not cells["score"]:
                dropped["no score"] += 1
                continue
            if options.form == "triples" and not all(text.strip() for text in cells.values()):
                dropped["empty text"] += 1
                continue
            row = {"split": "" if part == "all" else part, "subset": ""} | cells
            try:
                rows.append([_cell(name, row.get(name), options) for name in schema.names])
            except ValueError as error:
                raise DataError(f"{files[part]}:{line}: {error}. Download the file again.") from None
    return Rows(table_of(rows, schema), dropped)


def _rows(path: Path, options: Config) -> Iterator[tuple[int, dict[str, str]]]:
    """Number of each line, and its cells by the columns of the form."""
    lines = _lines(path, options)
    header = options.header or next(lines, (1, [""]))[1]
    for column in options.columns.values():
        if header.count(column) != 1:
            found = f"no column {column!r}" if column not in header else f"column {column!r} is there twice"
            raise DataError(f"{path}:1: {found}; has {header}. {_ADVICE}")
    for number, cells in lines:
        if len(cells) != len(header):
            found = f"{len(cells)} columns; there should be {len(header)}"
            raise DataError(f"{path}:{number}: {found}. Download the file again.")
        row = dict(zip(header, [cell.strip() for cell in cells] if options.strip else cells, strict=True))
        yield number, {name: row[column] for name, column in options.columns.items()}


def _lines(path: Path, options: Config) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line, a header among them."""
    text = read_text(path, options.otherwise).translate(str.maketrans("", "", options.remove))
    if not options.quoted:
        most = len(options.header) - 1 if options.header and options.separator == " " else -1
        yield from enumerate((line.split(options.separator, most) for line in lines_of(text)), start=1)
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=options.separator, strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: {error}. Download the file again.") from error


def _cell(name: str, text: str | None, options: Config) -> str | float | None:
    """What stands in a column of the form.

    Raises:
        ValueError: if there is no label, or the score is not finite.
    """
    if name == "score":
        return _number(text)
    if name != "label" or text is None:
        return text
    label = text.partition(options.label_until)[0] if options.label_until else text
    if not label:
        raise ValueError("no label")
    return f"{_number(label):g}" if options.graded else label


def _number(text: str | None) -> float:
    try:
        value = float(text or "")
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"score {text!r} is not a number")
    return value
