"""Means in papers' tables, recomputed from the cells of the same tables.

Papers round cells and means independently, so a printed mean may differ from the mean of the printed cells by half a
unit in the last place of the mean plus half a unit in that of the cells. If it differs by more, one of the numbers is
wrong. The computation uses exact fractions: a mean exactly at the limit is accepted.
"""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import NamedTuple

import yaml
from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.errors import DataError

FIELDS = ("group", "row", "column", "value", "grid", "run", "heading", "source", "note")


class Cell(NamedTuple):
    """The position of a number in a printed table."""

    group: str
    row: str
    column: str


class Printed(NamedTuple):
    """A number with the digits printed in the paper, and a note on what is wrong with it."""

    text: str
    note: str

    @property
    def half_unit(self) -> Fraction:
        """Half a unit in the last place."""
        return Fraction(1, 2 * 10 ** len(self.text.partition(".")[2]))


Table = Mapping[Cell, Printed]


class ColumnMean(Settings):
    """A column that holds the mean of others."""

    tables: list[str] = Field(min_length=1)
    mean: str
    of: list[str] = Field(min_length=2)


class RowMean(Settings):
    """Rows that each hold the mean of all others."""

    tables: list[str] = Field(min_length=1)
    means: list[str] = Field(min_length=1)


class TableMean(Settings):
    """A table whose cells are the means of the cells with the same row and column in other tables."""

    tables: list[str] = Field(min_length=1)
    group: str
    of: list[str] = Field(min_length=2)


class Means(Settings):
    """Which numbers are means: the contents of ``resources/published/means.yaml``."""

    columns: list[ColumnMean]
    rows: list[RowMean]
    tables: list[TableMean]


class Check(NamedTuple):
    """One printed mean and its recomputation."""

    table: str
    cell: Cell
    printed: Printed
    recomputed: Fraction
    allowed: Fraction

    @property
    def off(self) -> bool:
        """Whether rounding does not explain the difference."""
        return abs(Fraction(self.printed.text) - self.recomputed) > self.allowed

    @property
    def surprising(self) -> bool:
        """Whether the mean is off without a note, or has a note without being off."""
        return self.off != bool(self.printed.note)


def read_printed(content: str, place: str) -> Table:
    """Read one printed table: CSV with the columns ``FIELDS``.

    Raises:
        DataError: if the columns are wrong, a cell occurs twice, or its value is not a number.
    """
    rows = csv.DictReader(io.StringIO(content))
    if tuple(rows.fieldnames or ()) != FIELDS:
        raise DataError(f"{place}: has the columns {rows.fieldnames}. Give {', '.join(FIELDS)}.")
    cells: dict[Cell, Printed] = {}
    for row in rows:
        cell = Cell(row["group"], row["row"], row["column"])
        if cell in cells:
            raise DataError(f"{place}: {', '.join(cell)}: occurs twice. Remove one row.")
        try:
            Fraction(row["value"])
        except ValueError as error:
            raise DataError(f"{place}: {', '.join(cell)}: {row['value']!r} is no number.") from error
        cells[cell] = Printed(row["value"], row["note"])
    return cells


def check(tables: Mapping[str, Table], means: Means) -> list[Check]:
    """Recompute every printed mean.

    Args:
        tables: Name of each table to its cells.
        means: Which numbers are means.

    Raises:
        DataError: if a table is missing, has no such mean, or lacks a cell that a mean is computed from.
    """
    found = [*_of_columns(tables, means), *_of_rows(tables, means), *_of_tables(tables, means)]
    return [
        _checked(name, cell, _printed(tables, name, cell), [_printed(tables, *part) for part in parts])
        for name, cell, parts in found
    ]


Place = tuple[str, Cell]
Found = Iterator[tuple[str, Cell, list[Place]]]
"""Table and cell of a mean, and the cells that it is computed from."""


def checks_of(folder: Path) -> list[Check]:
    """Every mean in the tables of a folder, with its recomputation."""
    tables = {
        file.stem: read_printed(file.read_text("utf-8"), str(file)) for file in sorted(folder.glob("*.csv"))
    }
    means = Means.parse(yaml.safe_load((folder / "means.yaml").read_text("utf-8")), "means.yaml")
    return check(tables, means)


def _of_columns(tables: Mapping[str, Table], means: Means) -> Found:
    for mean in means.columns:
        for name in mean.tables:
            held = [cell for cell in _at(tables, name) if cell.column == mean.mean]
            for cell in _some(held, name, mean.mean):
                yield name, cell, [(name, cell._replace(column=column)) for column in mean.of]


def _of_rows(tables: Mapping[str, Table], means: Means) -> Found:
    for mean in means.rows:
        for name in mean.tables:
            rows = dict.fromkeys(cell.row for cell in _at(tables, name) if cell.row not in mean.means)
            held = [cell for cell in _at(tables, name) if cell.row in mean.means]
            for cell in _some(held, name, mean.means[0]):
                yield name, cell, [(name, cell._replace(row=row)) for row in rows]


def _of_tables(tables: Mapping[str, Table], means: Means) -> Found:
    """The cells behind such means; rows and columns that the first of the other tables lacks are skipped."""
    for mean in means.tables:
        groups = {part: next(iter(_at(tables, part))).group for part in mean.of}
        shown = {(cell.row, cell.column) for cell in _at(tables, mean.of[0])}
        for name in mean.tables:
            held = [cell for cell in _at(tables, name) if cell.group == mean.group and cell[1:] in shown]
            for cell in _some(held, name, mean.group):
                yield name, cell, [(part, cell._replace(group=group)) for part, group in groups.items()]


def _checked(name: str, cell: Cell, printed: Printed, parts: Sequence[Printed]) -> Check:
    return Check(
        name,
        cell,
        printed,
        recomputed=sum((Fraction(part.text) for part in parts), Fraction(0)) / len(parts),
        allowed=printed.half_unit + max(part.half_unit for part in parts),
    )


def _at(tables: Mapping[str, Table], name: str) -> Table:
    if name not in tables:
        raise DataError(f"means.yaml: no table {name}; has {', '.join(sorted(tables))}.")
    return tables[name]


def _some(cells: list[Cell], name: str, wanted: str) -> list[Cell]:
    if not cells:
        raise DataError(f"{name}: no mean {wanted}. Correct the table or means.yaml.")
    return cells


def _printed(tables: Mapping[str, Table], name: str, cell: Cell) -> Printed:
    if cell not in tables[name]:
        raise DataError(f"{name}: no cell {', '.join(cell)}. Correct the table or means.yaml.")
    return tables[name][cell]
