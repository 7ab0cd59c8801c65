"""Numbers printed in papers, from ``resources/published/*.csv``, for the graph and the jobs of tables.

A row of the file identifies a number in the paper by group, row and column, and its counterpart in this project by
grid, run and heading, which are empty if it has none.
"""

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from workflow_scripts.data.tables import number_of
from workflow_scripts.errors import DataError

PLACED = ": "
"""Separator in headings of numbers outside tables, such as ``figure: token_similarity``."""


class Printed(NamedTuple):
    """One printed number."""

    table: str
    """Name of the file."""
    group: str
    row: str
    column: str
    value: float | None
    """None if the number is only drawn, or illegible."""
    grid: str
    run: str
    heading: str
    source: str
    """Citation of the paper."""

    @property
    def target(self) -> tuple[str, str, str] | None:
        """Return grid, run and heading of the counterpart; None without one."""
        return (self.grid, self.run, self.heading) if self.grid else None

    def __str__(self) -> str:
        """Return table, group, row and column, for messages."""
        return ": ".join([self.table, ", ".join(filter(None, (self.group, self.row, self.column)))])


_NEEDED = ("row", "column", "grid", "run", "heading", "value", "source")


def read_printed(content: bytes, path: str) -> list[Printed]:
    """Return the printed numbers in one file.

    Args:
        content: CSV in UTF-8.
        path: Path of the file.

    Raises:
        DataError: if the file is not a CSV in UTF-8, a column is missing or occurs twice, or a value is not a number.
    """
    try:
        reader = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""), strict=True)
        header, rows = list(reader.fieldnames or ()), list(reader)
    except (UnicodeDecodeError, csv.Error) as error:
        raise DataError(f"{path}: not CSV in UTF-8: {error}. Save it in this format.") from error
    _check_complete(header, f"{path}: the header")
    if twice := [name for name in Printed._fields if header.count(name) > 1]:
        raise DataError(f"{path}: column {twice[0]!r} occurs twice. Remove or rename one.")
    table = path.rpartition("/")[2].removesuffix(".csv")
    return [_number(row, table, f"{path}: row {line}") for line, row in enumerate(rows, start=1)]


def _check_complete(columns: Collection[str | None], where: str) -> None:
    """Raise DataError unless a header, or a row of cells, has every needed column."""
    if missing := [name for name in _NEEDED if name not in columns]:
        raise DataError(f"{where} has no {', '.join(missing)}. Write the columns {', '.join(_NEEDED)}.")


def _number(row: Mapping[str | None, str | None], table: str, where: str) -> Printed:
    _check_complete([name for name, cell in row.items() if cell is not None], where)
    if None in row:  # csv's key of cells beyond the header
        raise DataError(f"{where} has more cells than the header. Put text with commas into quotation marks.")
    cells: dict[str, Any] = {name: row.get(name) or "" for name in Printed._fields} | {"table": table}
    try:
        return Printed(**cells | {"value": number_of(cells["value"]) if cells["value"].strip() else None})
    except ValueError as error:
        raise DataError(
            f"{where}: value '{row['value']}' is not a number. Write a number, or leave the cell empty."
        ) from error


def cell_numbers(
    contents: Mapping[str, bytes], cells: Collection[tuple[str, str]], grid: str, others: Collection[str] = ()
) -> dict[tuple[str, ...], Printed]:
    """Return the printed numbers of one grid by run and heading.

    Args:
        contents: Bytes of each file by path.
        cells: Runs and headings of the grid.
        grid: Name of the grid.
        others: Grids whose numbers are used instead of its own, in cells of the same run and heading.

    Raises:
        DataError: as ``read_printed``; or if a row's run and heading are not in the grid, or have no value or two; or
            if one of the other grids has no common cell.
    """
    every = [number for path, content in contents.items() for number in read_printed(content, path)]
    in_tables = [number for number in every if PLACED not in number.heading]
    if others:
        shared = [
            number for number in in_tables if number.grid in others and (number.run, number.heading) in cells
        ]
        if missing := sorted({*others} - {number.grid for number in shared}):
            problem = f"printed_in: {missing[0]} has no printed number for a run and heading of this grid"
            raise DataError(f"experiments.{grid}: {problem}. Remove it, or choose a grid with such a number.")
        return _by(("run", "heading"), shared)
    ours = [number for number in in_tables if number.grid == grid]
    for number in ours:
        if (number.run, number.heading) not in cells:
            problem = f"run {number.run}, heading {number.heading}: not in the grid {grid}"
            raise DataError(f"{number}: {problem}. Correct the row or the grid.")
    return _by(("run", "heading"), ours)


def as_printed(content: bytes, path: str) -> dict[tuple[str, ...], Printed]:
    """Return the numbers in one file by the paper's group, row and column; a single group is named "".

    Raises:
        DataError: as ``read_printed``, or if a cell has no value or two.
    """
    printed = read_printed(content, path)
    if len({number.group for number in printed}) == 1:
        printed = [number._replace(group="") for number in printed]
    return _by(("group", "row", "column"), printed)


def _by(names: Sequence[str], numbers: Iterable[Printed]) -> dict[tuple[str, ...], Printed]:
    """Return numbers by some of their fields; repeated numbers must have the same value."""
    by_fields: dict[tuple[str, ...], Printed] = {}
    for number in numbers:
        if number.value is None:
            raise DataError(f"{number}: has no value. Add one, or remove the row.")
        key = tuple(getattr(number, name) for name in names)
        if by_fields.setdefault(key, number).value != number.value:
            raise DataError(f"{number}: has two values. Remove one row.")
    return by_fields


def look_up(numbers: Mapping[tuple[str, ...], Printed], group: str, row: str, column: str) -> Printed | None:
    """Return the number of a cell, in its group or in a file with one group; None without one."""
    return numbers.get((group, row, column)) or numbers.get(("", row, column))
