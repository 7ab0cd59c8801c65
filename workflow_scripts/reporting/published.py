"""Numbers that papers print, from ``resources/published/*.csv``: read before the first job and by jobs of tables.

A row names its number as the paper does, by group, row and column, and its counterpart here by grid, run and heading,
all empty where there is none.
"""

import csv
import io
from collections.abc import Collection, Mapping
from typing import NamedTuple

from workflow_scripts.errors import DataError

PLACED = ": "
"""In a heading that is no column of a table but says where else the number is: ``figure: token_similarity``."""


class Printed(NamedTuple):
    """One printed number."""

    table: str
    """Name of the file."""
    group: str
    row: str
    column: str
    value: float | None
    """None where it is drawn, or illegible."""
    grid: str
    run: str
    heading: str
    source: str
    """The citation."""

    @property
    def target(self) -> tuple[str, str, str] | None:
        """Grid, run and heading of the counterpart."""
        return (self.grid, self.run, self.heading) if self.grid else None

    def __str__(self) -> str:
        """For messages: table, group, row, column."""
        return ": ".join([self.table, ", ".join(filter(None, (self.group, self.row, self.column)))])


_NEEDED = ("grid", "run", "heading", "value", "source")


def read_printed(content: bytes, place: str) -> list[Printed]:
    """The numbers of one file.

    Args:
        content: CSV in UTF-8.
        place: Path of the file.

    Raises:
        DataError: if a column is missing, a value is no number, or the file is no such CSV.
    """
    try:
        rows = list(csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True))
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{place}: no CSV in UTF-8: {error}. Save it as one.") from error
    return [_number(row, place, line) for line, row in enumerate(rows, start=1)]


def _number(row: Mapping[str | None, str | None], place: str, line: int) -> Printed:
    if missing := [name for name in _NEEDED if row.get(name) is None]:
        found = f"row {line} has no {', '.join(missing)}"
        raise DataError(f"{place}: {found}. Give the columns {', '.join(_NEEDED)}.")
    if None in row:  # the header's cells are all taken
        raise DataError(f"{place}: row {line} has more cells than the header. Quote text with commas.")
    texts = {name: row.get(name) or "" for name in Printed._fields}
    try:
        value = float(texts["value"]) if texts["value"] else None
    except ValueError as error:
        raise DataError(
            f"{place}: row {line}: value {row['value']} is no number. Correct the row."
        ) from error
    named = texts | {"table": place.rpartition("/")[2].removesuffix(".csv")}
    return Printed(**(named | {"value": value}))  # type: ignore[arg-type]


def of_cells(
    contents: Mapping[str, bytes], cells: Collection[tuple[str, str]], grid: str
) -> dict[tuple[str, str], Printed]:
    """The printed numbers of the cells of one grid; those of another grid or none are left out.

    Args:
        contents: Path of each file to its bytes.
        cells: Runs and headings of the grid.
        grid: Its name.

    Raises:
        DataError: as ``read_printed``, or if a row's run and heading are not in the grid or have no value or two.
    """
    numbers: dict[tuple[str, str], Printed] = {}
    for place, content in contents.items():
        for number in read_printed(content, place):
            if number.grid != grid or PLACED in number.heading:
                continue
            cell = number.run, number.heading
            where = f"{place}: run {cell[0]}, heading {cell[1]}"
            if cell not in cells:
                raise DataError(f"{where}: not in the grid {grid}. Correct the row or the grid.")
            if number.value is None:
                raise DataError(f"{where}: has no value. Give one or remove the row.")
            if numbers.setdefault(cell, number).value != number.value:
                raise DataError(f"{where}: has two values. Remove one row.")
    return numbers


def as_printed(content: bytes, place: str) -> dict[tuple[str, str, str], Printed]:
    """The numbers of one file by the paper's group, row and column; a single group's name is dropped.

    Raises:
        DataError: as ``read_printed``, or if a cell has no value or two rows.
    """
    printed = read_printed(content, place)
    single = len({number.group for number in printed}) == 1
    numbers: dict[tuple[str, str, str], Printed] = {}
    for number in printed:
        cell = ("" if single else number.group, number.row, number.column)
        if number.value is None or cell in numbers:
            what = "has no value" if number.value is None else "occurs twice"
            where = f"{place}: {number.group}, {number.row}, {number.column}"
            raise DataError(f"{where}: {what}. Correct the row.")
        numbers[cell] = number
    return numbers


def look_up(
    numbers: Mapping[tuple[str, str, str], Printed], group: str, row: str, column: str
) -> Printed | None:
    """The number of a cell, in its group or in a file with one group."""
    return numbers.get((group, row, column)) or numbers.get(("", row, column))
