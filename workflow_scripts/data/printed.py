"""Numbers that papers print, from ``resources/published/*.csv``: read before the first job and by jobs of tables.

A row names its number as the paper does, by group, row and column, and its counterpart here by grid, run and heading,
all empty where there is none.
"""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

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


_NEEDED = ("row", "column", "grid", "run", "heading", "value", "source")


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
    table = place.rpartition("/")[2].removesuffix(".csv")
    return [_number(row, table, f"{place}: row {line}") for line, row in enumerate(rows, start=1)]


def _number(row: Mapping[str | None, str | None], table: str, place: str) -> Printed:
    if missing := [name for name in _NEEDED if row.get(name) is None]:
        raise DataError(f"{place} has no {', '.join(missing)}. Give the columns {', '.join(_NEEDED)}.")
    if None in row:  # the header's cells are all taken
        raise DataError(f"{place} has more cells than the header. Quote text with commas.")
    found: dict[str, Any] = {name: row.get(name) or "" for name in Printed._fields} | {"table": table}
    try:
        return Printed(**found | {"value": float(found["value"]) if found["value"] else None})
    except ValueError as error:
        raise DataError(f"{place}: value {row['value']} is no number. Correct the row.") from error


def of_cells(
    contents: Mapping[str, bytes], cells: Collection[tuple[str, str]], grid: str
) -> dict[tuple[str, ...], Printed]:
    """The printed numbers of one grid by run and heading; those of another grid or none are left out.

    Args:
        contents: Path of each file to its bytes.
        cells: Runs and headings of the grid.
        grid: Its name.

    Raises:
        DataError: as ``read_printed``, or if a row's run and heading are not in the grid or have no value or two.
    """
    every = [number for place, content in contents.items() for number in read_printed(content, place)]
    ours = [number for number in every if number.grid == grid and PLACED not in number.heading]
    for number in ours:
        if (number.run, number.heading) not in cells:
            found = f"run {number.run}, heading {number.heading}: not in the grid {grid}"
            raise DataError(f"{number}: {found}. Correct the row or the grid.")
    return _by(("run", "heading"), ours)


def as_printed(content: bytes, place: str) -> dict[tuple[str, ...], Printed]:
    """The numbers of one file by the paper's group, row and column; a single group's name is dropped.

    Raises:
        DataError: as ``read_printed``, or if a cell has no value or two.
    """
    printed = read_printed(content, place)
    if len({number.group for number in printed}) == 1:
        printed = [number._replace(group="") for number in printed]
    return _by(("group", "row", "column"), printed)


def _by(names: Sequence[str], numbers: Iterable[Printed]) -> dict[tuple[str, ...], Printed]:
    """Numbers by some of their names; one that is there twice has the same value."""
    found: dict[tuple[str, ...], Printed] = {}
    for number in numbers:
        if number.value is None:
            raise DataError(f"{number}: has no value. Give one or remove the row.")
        if found.setdefault(tuple(getattr(number, name) for name in names), number).value != number.value:
            raise DataError(f"{number}: has two values. Remove one row.")
    return found


def look_up(numbers: Mapping[tuple[str, ...], Printed], group: str, row: str, column: str) -> Printed | None:
    """The number of a cell, in its group or in a file with one group."""
    return numbers.get((group, row, column)) or numbers.get(("", row, column))
