"""Readers of scored pairs, labelled texts and triples."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from workflow_scripts.columns import FORMS, LABELLED, PAIRS, SIDES
from workflow_scripts.data.readers import Files, SourceRows, plain_lines, read_text, split_lines
from workflow_scripts.data.tables import MISSING, TEXT_COLUMNS, number_of, table_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.sources import PARTS, ClassFiles, Delimited, Lee

csv.field_size_limit(2**31 - 1)  # datasets.check_contract limits the length of texts


def delimited(files: Files, options: Delimited) -> SourceRows:
    """Return the rows of the parts train, dev and test, or of the only part ``all``, whose rows have no split.

    Cells are separated by tabs, commas or spaces, with or without quoting and a header. Options map the file's columns
    to those of the form. In files without quoting, quotation marks are text.

    Returns:
        Rows of the form with the configured columns.

    Raises:
        DataError: if a column is missing; with a line of too few or too many cells, without a label, or with a score
            that is not a number; or with a line that can be read in two ways: with quotation marks around cells or as
            text, as a header or as a row.
    """
    schema = FORMS[str(options.form)]  # the settings refuse a source without a form
    rows = []
    for part in [part for part in PARTS if part in files]:
        part_rows = [*_rows(files[part], options)]
        if options.header:
            _check_first(part_rows)
        for line, cells in part_rows:
            row = {"split": "" if part == "all" else part, "subset": ""} | cells
            try:
                rows.append([_cell(name, row.get(name), options) for name in schema.names])
            except ValueError as error:
                raise DataError(f"{line}: {error}. Correct the line.") from None
    return SourceRows(table_of(rows, schema))


def _check_first(rows: Sequence[tuple[str, Mapping[str, str]]]) -> None:
    """Raise DataError if only the first row has texts of one word, like names of columns."""
    named = [
        all(re.fullmatch(r"#?\w+", row[name]) for name in TEXT_COLUMNS if name in row) for _, row in rows
    ]
    if len(rows) > 1 and named[0] and not any(named[1:]):
        line, row = rows[0]
        problem = f"{[*row.values()]} look like names of columns: all other lines have texts of several words"
        raise DataError(f"{line}: {problem}. Remove `header`; or move the line, if it is a row.")


class _Line(NamedTuple):
    """A row of a file."""

    number: int
    """Number of its last line."""
    cells: list[str]
    joined: list[str]
    """Its lines: several if a cell in quotation marks contains line ends."""


def _rows(path: Path, options: Delimited) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield file and number of each line, with its cells by the columns of the form."""
    lines = _lines(path, options)
    first, header = (1, options.header) if options.header else next(lines, _Line(1, [""], []))[:2]
    _check_quotes(f"{path}:{first}", header, len(header), options)
    for column in options.columns.values():
        if header.count(column) != 1:
            problem = f"no column {column!r}" if column not in header else f"column {column!r} occurs twice"
            raise DataError(
                f"{path}:1: {problem}; the file has {header}. Correct the options columns, header and "
                "separator."
            )
    names = [name.strip().casefold() for name in header]
    for line in lines:
        number, cells = line[:2]
        _check_quotes(f"{path}:{number}", cells, len(header), options)
        _check_joined(f"{path}:{number}", line, header, options)
        if len(cells) < len(header) or (len(cells) > len(header) and not options.open_ended):
            problem = f"{len(cells)} columns instead of {len(header)}"
            raise DataError(f"{path}:{number}: {problem}. Correct the line, or the option header.")
        if [cell.strip().casefold() for cell in cells[: len(names)]] == names:
            advice = "Remove the option `header`." if options.header else "Remove the line."
            raise DataError(f"{path}:{number}: the line contains the names of the columns. {advice}")
        row = dict(zip(header, cells, strict=False))
        texts = {name: row[column] for name, column in options.columns.items()}
        if options.sentence_separator:
            cell = texts["sentence1"].split(options.sentence_separator)
            if len(cell) != len(SIDES):
                problem = f"{len(cell)} texts in one cell instead of {len(SIDES)}"
                raise DataError(
                    f"{path}:{number}: {problem}. Correct the line, or the option sentence_separator."
                )
            texts |= zip(SIDES, cell, strict=True)
        yield f"{path}:{number}", {n: text.strip() if options.strip else text for n, text in texts.items()}


def _check_quotes(where: str, cells: list[str], width: int, options: Delimited) -> None:
    """Raise DataError if ``quoted`` is not set, but the cells of a line would differ with quoting."""
    if options.quoted is not None or not any(cell.startswith('"') for cell in cells):
        return
    line = options.separator.join(cells)
    backslash = '\\"' in line  # before a mark inside a cell, instead of a second mark
    escapes: dict[str, Any] = {"doublequote": False, "escapechar": "\\"} if backslash else {}
    try:
        (others,) = csv.reader([line], delimiter=options.separator, strict=True, **escapes)
    except csv.Error:
        return
    if others != cells and (len(others) == width or (len(others) > width and options.open_ended)):
        pairs = zip_longest(cells, others, fillvalue="")
        cell, other = next((f"{cell:.60}", f"{other:.60}") for cell, other in pairs if cell != other)
        problem = f"{cell!r} is {other!r} if cells may be quoted"
        advice = "Double marks inside cells and set" if backslash else "Set"
        raise DataError(f"{where}: {problem}. {advice} quoted: true; or quoted: false if marks are text.")


def _check_joined(where: str, line: _Line, header: list[str], options: Delimited) -> None:
    """Raise DataError if a row of several lines would be one row per line without quoting.

    Such rows come from an unescaped quotation mark at the beginning of a text, and another at the end of a later one.
    """
    rows = [text.split(options.separator) for text in line.joined]
    spaced = any(cell.startswith(" ") for cell in line.cells[1:])
    if len(rows) > 1 and all(_is_row(row, header, options, spaced=spaced) for row in rows):
        problem = f"{len(rows)} lines that end here are one row, or one row each if quotation marks are text"
        advice = "Set quoted: false or double marks that are text; or remove line ends from the cells"
        raise DataError(f"{where}: {problem}. {advice}.")


def _is_row(cells: list[str], header: list[str], options: Delimited, *, spaced: bool) -> bool:
    """Return whether cells may be a row: their number fits, scores are numbers, and no comma is one of a text.

    A comma before a space is part of a text unless the file has ``spaced`` cells.
    """
    if len(cells) < len(header) or (len(cells) > len(header) and not options.open_ended):
        return False
    number = options.columns.get("label" if options.graded else "score")
    if number is None:
        return spaced or not any(cell.startswith(" ") for cell in cells[1:])
    try:
        _cell("score", cells[header.index(number)], options)
    except ValueError:
        return False
    return True


def _lines(path: Path, options: Delimited) -> Iterator[_Line]:
    """Yield each row with its last line's number, including a header; blank lines are none, as in CSV."""
    text = read_text(path, options.fallback_encoding).translate(
        str.maketrans("", "", options.remove_characters)
    )
    lines = split_lines(text)
    if not options.quoted:
        most = len(options.header) - 1 if options.header and options.separator == " " else -1
        for number, line in enumerate(lines, start=1):
            if line:
                yield _Line(number, line.split(options.separator, most), [line])
        return
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=options.separator, strict=True)
    before = 0
    try:
        for cells in reader:
            joined, before = lines[before : reader.line_num], reader.line_num
            if cells:
                yield _Line(before, cells, joined)
    except csv.Error as error:
        raise DataError(f"{path}:{reader.line_num}: {error}. Correct the quotation marks.") from error


def _cell(name: str, text: str | None, options: Delimited) -> str | float | None:
    """Return the value of a column of the form; None for a pair that was not judged.

    Raises:
        ValueError: if the label is empty, or the score is not a number.
    """
    if name == "score":
        if text and text.strip().casefold() in MISSING:
            raise ValueError(
                f"score {text!r} is not a number. Leave the cell of a pair that was not judged empty"
            )
        return number_of(text) if text and text.strip() else None
    if name != "label" or text is None:
        return text
    label = text.partition(options.label_until)[0] if options.label_until else text
    if not label.strip():
        raise ValueError("no label")
    return np.format_float_positional(number_of(label), trim="-") if options.graded else label


# Texts were lower-cased before the escapes were written, so a capital M marks an escape.
_ESCAPE = re.compile(r"M-(\^[@-_?]|[ -~])")


def class_files(files: Files, _options: ClassFiles) -> SourceRows:
    """Return the texts of one file per class, one per line, in alphabetical order of roles: MR, CR, SUBJ and MPQA.

    Blank lines are kept as empty texts, because SentEval counts them (CR 3,775 and MPQA 10,606 texts). The files of MR
    and SUBJ have passed through ``cat -v``, which writes bytes above 127 as ``M-`` and a letter; published numbers were
    computed on these escapes, so they are kept and counted.

    Returns:
        Rows of the form ``labelled``: stripped texts, and the number of texts with an escape; none is dropped. A file's
        role is the label of its texts.
    """
    lines = [(label, line) for label, path in sorted(files.items()) for line in plain_lines(path)]
    rows = [("", line.strip(), None, label) for label, line in lines]
    escapes = sum(_ESCAPE.search(line) is not None for _, line in lines)
    return SourceRows(table_of(rows, LABELLED), +Counter({"kept: escapes of cat -v": escapes}))


def lee(files: Files, _options: Lee) -> SourceRows:
    """Return the pairs of Lee and Pincombe's ``documents`` (Latin-1, one per line) and ``ratings`` (a matrix).

    Lee, Pincombe and Welsh 2005, An empirical evaluation of models of text document similarity. Ratings range from 0.2
    to 1. The upper triangle of the matrix is read; the lower one must be equal, or zero as in gensim's copy.

    Returns:
        Rows of the form ``pairs``.

    Raises:
        DataError: if the ratings are not a square matrix of numbers with a row for every document, or its triangles
            differ.
    """
    documents, file = (
        split_lines(read_text(files["documents"], fallback_encoding="latin-1")),
        files["ratings"],
    )
    try:
        ratings = np.loadtxt(file, ndmin=2)
    except ValueError as error:
        raise DataError(f"{file}: not a matrix of numbers: {error}. Obtain the file again.") from error
    if ratings.shape != (len(documents), len(documents)) or not np.isfinite(ratings).all():
        problem = f"{' x '.join(map(str, ratings.shape))} ratings for {len(documents)} documents, or some not finite"
        raise DataError(f"{file}: {problem}. Obtain both files again.")
    if np.tril(ratings, -1).any() and (apart := ~np.isclose(ratings, ratings.T)).any():
        i, j = np.argwhere(apart)[0]
        problem = f"documents {i + 1} and {j + 1} have the ratings {ratings[i, j]:g} and {ratings[j, i]:g}"
        raise DataError(f"{file}: {problem}. Write a symmetric matrix, or zeros below the diagonal.")
    pairs = combinations(range(len(documents)), 2)
    rows = [("", documents[i], documents[j], float(ratings[i, j])) for i, j in pairs]
    return SourceRows(table_of(rows, PAIRS))
