"""Means in papers' tables, recomputed from the cells of the same tables.

Papers round cells and means independently, so a printed mean may differ from the mean of the printed cells by half a
unit in the last place of the mean plus half a unit in that of the cells. If it differs by more, one of the numbers is
wrong. The computation uses exact fractions: a mean exactly at the limit is accepted. What is a mean of what is said by
``resources/published/means.yaml``.
"""

import csv
import io
from collections.abc import Iterator, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any, NamedTuple

import yaml


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
    """Read one printed table, each cell of which stands once."""
    rows = [*csv.DictReader(io.StringIO(content))]
    cells = {
        Cell(row["group"], row["row"], row["column"]): Printed(row["value"], row["note"]) for row in rows
    }
    assert len(cells) == len(rows), f"{place}: a cell occurs twice"
    return cells


def checks_of(folder: Path) -> list[Check]:
    """Every mean in the tables of a folder, with its recomputation."""
    tables = {file.stem: read_printed(file.read_text("utf-8"), file.name) for file in folder.glob("*.csv")}
    means = yaml.safe_load((folder / "means.yaml").read_text("utf-8"))
    checks = []
    for name, cell, parts in _means(tables, means):
        printed, terms = tables[name][cell], [tables[table][part] for table, part in parts]
        recomputed = sum((Fraction(term.text) for term in terms), Fraction(0)) / len(terms)
        allowed = printed.half_unit + max(term.half_unit for term in terms)
        checks.append(Check(name, cell, printed, recomputed, allowed))
    return checks


def _means(
    tables: Mapping[str, Table], means: Mapping[str, list[Any]]
) -> Iterator[tuple[str, Cell, list[tuple[str, Cell]]]]:
    """Table and cell of every mean, and table and cell of what it is computed from."""
    listed = [(kind, one, name) for kind, ones in means.items() for one in ones for name in one["tables"]]
    for kind, mean, name in listed:
        if kind == "columns":  # of a row
            held = [cell for cell in tables[name] if cell.column == mean["mean"]]
            parts = [[(name, cell._replace(column=column)) for column in mean["of"]] for cell in held]
        elif kind == "rows":  # of all other rows
            held = [cell for cell in tables[name] if cell.row in mean["means"]]
            rows = dict.fromkeys(cell.row for cell in tables[name] if cell.row not in mean["means"])
            parts = [[(name, cell._replace(row=row)) for row in rows] for cell in held]
        else:  # of the same cell in other tables; rows and columns that the first of them lacks are skipped
            groups = {part: next(iter(tables[part])).group for part in mean["of"]}
            shown = {cell[1:] for cell in tables[mean["of"][0]]}
            held = [cell for cell in tables[name] if cell.group == mean["group"] and cell[1:] in shown]
            parts = [[(part, cell._replace(group=group)) for part, group in groups.items()] for cell in held]
        assert held, f"{name}: no such mean. Correct the table or means.yaml."
        yield from ((name, cell, part) for cell, part in zip(held, parts, strict=True))
