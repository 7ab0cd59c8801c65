"""Delimited files of scored pairs, labelled texts and triples, the most common format.

Cells are separated by tabs, commas or spaces, quoted or not, with or without a header; options map the file's columns
to those of the form. In files without quoting, quotation marks are text.
"""

import csv
import io
import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from workflow_scripts.columns import FORMS
from workflow_scripts.data.readers import Files, Rows, read_text, split_lines
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.readers import PARTS
from workflow_scripts.settings.readers import Delimited as Config

csv.field_size_limit(2**31 - 1)  # datasets.check_contract limits the length of texts


def read(files: Files, options: Config) -> Rows:
    """Read the parts train, dev and test, or the one part ``all``, whose rows have no split.

    Returns:
        Rows of the form with the configured columns, and the number of lines with more cells than the option header.

    Raises:
        DataError: if a column is missing; or naming a line with too few or too many cells, without a label, or with a
            score that is not a number.
    """
    schema = FORMS[str(options.form)]  # the settings refuse a source without a form
    kept: Counter[str] = Counter()
    rows = []
    for part in [part for part in PARTS if part in files]:
        for place, cells in _rows(files[part], options, kept):
            row = {"split": "" if part == "all" else part, "subset": ""} | cells
            try:
                rows.append([_cell(name, row.get(name), options) for name in schema.names])
            except ValueError as error:
                raise DataError(f"{place}: {error}. Correct the line.") from None
    return Rows(table_of(rows, schema), kept)


def _rows(path: Path, options: Config, kept: Counter[str]) -> Iterator[tuple[str, dict[str, str]]]:
    """File and number of each line, and its cells by the columns of the form."""
    lines = _lines(path, options)
    header = options.header or next(lines, (1, [""]))[1]
    for column in options.columns.values():
        if header.count(column) != 1:
            problem = f"no column {column!r}" if column not in header else f"column {column!r} is there twice"
            raise DataError(
                f"{path}:1: {problem}; has {header}. Correct the options columns, header and separator."
            )
    for number, cells in lines:
        more = len(cells) - len(header)
        if more < 0 or (more and not options.open_ended):
            problem = f"{len(cells)} columns; there should be {len(header)}"
            raise DataError(f"{path}:{number}: {problem}. Correct the line, or the option header.")
        kept.update({"kept: more cells than header": 1} if more else {})
        row = dict(zip(header, cells, strict=False))
        texts = {name: row[column] for name, column in options.columns.items()}
        if options.between:
            texts |= _halves(texts, options, f"{path}:{number}")
        yield f"{path}:{number}", {n: text.strip() if options.strip else text for n, text in texts.items()}


def _halves(texts: dict[str, str], options: Config, place: str) -> dict[str, str]:
    """The texts of a cell that contains several columns of the form."""
    cell = texts[options.shared[0]]
    parts = cell.split(options.between)
    if len(parts) != len(options.shared):
        problem = f"{len(parts)} texts in {cell!r:.80}; there should be {len(options.shared)}"
        raise DataError(f"{place}: {problem}. Correct the line, or the option between.")
    return dict(zip(options.shared, parts, strict=True))


def _lines(path: Path, options: Config) -> Iterator[tuple[int, list[str]]]:
    """Number and cells of each line, including a header."""
    text = read_text(path, options.otherwise).translate(str.maketrans("", "", options.remove))
    if not options.quoted:
        most = len(options.header) - 1 if options.header and options.separator == " " else -1
        yield from enumerate((line.split(options.separator, most) for line in split_lines(text)), start=1)
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=options.separator, strict=True)
    try:
        yield from ((reader.line_num, cells) for cells in reader if cells)
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: {error}. Correct the quotation marks.") from error


def _cell(name: str, text: str | None, options: Config) -> str | float | None:
    """The value of a column of the form; None for a pair that was not judged.

    Raises:
        ValueError: if there is no label, or the score is not finite.
    """
    if name == "score":
        return _number(text) if text and text.strip() else None
    if name != "label" or text is None:
        return text
    label = text.partition(options.label_until)[0] if options.label_until else text
    if not label:
        raise ValueError("no label")
    return f"{_number(label):g}" if options.graded else label


def _number(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value):
        raise ValueError(f"score {text!r} is not a number")
    return value
