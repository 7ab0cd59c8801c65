"""Numbers that papers print, from ``resources/published/*.csv``: read before the first job and by jobs of tables."""

import csv
import io
from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from workflow_scripts.errors import DataError

PLACED = ": "
"""In a heading that is no column of a table but says where else the number is: ``figure: token_similarity``."""
_COLUMNS = ("grid", "run", "heading", "value", "source")


class Published(NamedTuple):
    """A number printed in a paper."""

    value: float
    source: str
    """The citation."""


def read_rows(content: bytes, place: str, columns: Sequence[str]) -> list[dict[str, Any]]:
    """The rows of one file, with ``value`` as a number, or None where it is empty.

    Args:
        content: CSV in UTF-8.
        place: Its name, for errors.
        columns: Those that are read.

    Raises:
        DataError: if a column is missing, a value is no number, or the file is no such CSV.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{place}: no CSV in UTF-8: {error}. Save it as one.") from error
    for number, row in enumerate(rows, start=1):
        if missing := [name for name in columns if row.get(name) is None]:
            found = f"row {number} has no {', '.join(missing)}"
            raise DataError(f"{place}: {found}. Give the columns {', '.join(columns)}.")
        if None in row:  # the header's cells are all taken
            raise DataError(f"{place}: row {number} has more cells than the header. Quote text with commas.")
    return [
        {name: row[name] for name in columns} | {"value": _value(row["value"], f"{place}: row {number}")}
        for number, row in enumerate(rows, start=1)
    ]


def _value(text: str, place: str) -> float | None:
    try:
        return float(text) if text else None
    except ValueError as error:
        raise DataError(f"{place}: value {text} is no number. Correct the row.") from error


def read_published(
    contents: Mapping[str, bytes], cells: Collection[tuple[str, str]], grid: str
) -> dict[tuple[str, str], Published]:
    """Read the published numbers for the cells of one grid; rows that name another grid or none are ignored.

    Args:
        contents: Name of each file to its bytes.
        cells: Runs and headings of the grid.
        grid: Its name.

    Raises:
        DataError: as ``read_rows``, or if a row's run and heading are not in the grid or have no value or two.
    """
    numbers: dict[tuple[str, str], Published] = {}
    for place, content in contents.items():
        for row in read_rows(content, place, _COLUMNS):
            if row["grid"] != grid or PLACED in row["heading"]:
                continue
            cell = row["run"], row["heading"]
            where = f"{place}: run {cell[0]}, heading {cell[1]}"
            if cell not in cells:
                raise DataError(f"{where}: not in the grid {grid}. Correct the row or the grid.")
            if row["value"] is None:
                raise DataError(f"{where}: has no value. Give one or remove the row.")
            number = Published(row["value"], row["source"])
            if numbers.setdefault(cell, number).value != number.value:
                raise DataError(f"{where}: has two values. Remove one row.")
    return numbers
