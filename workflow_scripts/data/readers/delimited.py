"""Files of cells: scored pairs, labelled texts and triples as most of them are distributed.

Cells are set off by tabs, commas or spaces, quoted or not, with or without a header; options say which column of the
file is which of the form. Where cells are not quoted, quotation marks are text, and lines end only at a line feed.
"""

import csv
import io
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.tables import table_of
from workflow_scripts.data.text_files import parts, read_text
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers.delimited import Config


def read(files: Mapping[str, Path], options: Config) -> Rows:
    """Read the parts train, dev and test, or the one part ``all``.

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
    for split, path in parts(files):
        for line, cells in _rows(path, options):
            row: dict[str, Any] = {"split": split, "subset": ""} | cells
            if options.form == "pairs" and not row["score"]:
                dropped["no score"] += 1
                continue
            if options.form == "triples" and not all(text.strip() for text in cells.values()):
                dropped["empty text"] += 1
                continue
            if options.form == "pairs":
                row["score"] = _number(row["score"], path, line)
            elif options.form == "labelled":
                row["label"] = _label(row["label"], options, path, line)
            rows.append([row.get(name) for name in schema.names])
    return Rows(table_of(rows, schema), dropped)


def _rows(path: Path, options: Config) -> Iterator[tuple[int, dict[str, str]]]:
    """Number of each line, and its cells by the columns of the form."""
    lines = _lines(path, options)
    header = options.header or next(lines, (1, [""]))[1]
    for column in options.columns.values():
        if header.count(column) != 1:
            found = f"no column {column!r}" if column not in header else f"column {column!r} is there twice"
            raise DataError(f"{path}:1: {found}; has {header}. {_remedy(header)}")
    places = {name: header.index(column) for name, column in options.columns.items()}
    for number, cells in lines:
        if len(cells) != len(header):
            found = f"{len(cells)} columns; there should be {len(header)}"
            raise DataError(f"{path}:{number}: {found}. Download the file again.")
        yield (
            number,
            {name: cells[place].strip() if options.strip else cells[place] for name, place in places.items()},
        )


def _lines(path: Path, options: Config) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line, a header among them."""
    text = read_text(path, options.otherwise).translate(str.maketrans("", "", options.remove))
    if not options.quoted:
        most = len(options.header) - 1 if options.header and options.separator == " " else -1
        lines = text.removesuffix("\n").split("\n") if text else []
        yield from enumerate((line.split(options.separator, most) for line in lines), start=1)
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=options.separator, strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: {error}. Download the file again.") from error


def _remedy(header: list[str]) -> str:
    """What may be wrong with a file whose header lacks a column."""
    if header[-1].endswith("\r"):
        return "Save the file with line ends of Unix."
    return "Correct the options columns, header and separator, or download the file again."


def _label(cell: str, options: Config, path: Path, line: int) -> str:
    label = cell.partition(options.label_until)[0] if options.label_until else cell
    if not label:
        raise DataError(f"{path}:{line}: no label. Download the file again.")
    return f"{_number(label, path, line):g}" if options.graded else label


def _number(text: str, path: Path, line: int) -> float:
    """A score, which must be finite."""
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not abs(value) < float("inf"):
        raise DataError(f"{path}:{line}: score {text!r} is not a number. Download the file again.")
    return value
