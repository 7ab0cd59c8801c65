"""The typed tables of the papers: every number has a source, and stands in the cell that it names."""

import csv

import pytest

from workflow_scripts.data.printed import of_cells
from workflow_scripts.graph.configuration import read_yaml
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.runs import one_column_a_task
from workflow_scripts.settings.study import Grid

PUBLISHED = ROOT / "resources/published"
FILES = sorted(PUBLISHED.glob("*.csv"))


def rows_of(file):
    return list(csv.DictReader(file.open(encoding="utf-8", newline="")))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_number_has_a_source_and_names_grid_run_and_heading_or_none(file):
    rows = rows_of(file)
    assert rows
    assert all(row["row"] and row["column"] and row["source"] for row in rows)
    named = {tuple(bool(row[name]) for name in ("grid", "run", "heading")) for row in rows}
    assert named <= {(True, True, True), (False, False, False)}


def test_every_named_cell_of_a_grid_prints_the_number():
    """By its own table, or by another one that has the same number: papers quote each other."""
    shown, listed = {}, {}
    for path in (ROOT / "config/experiments").glob("*.yaml"):
        grid = Grid.parse(one_column_a_task(read_yaml(path)), path.stem)
        contents = {name: (PUBLISHED / f"{name}.csv").read_bytes() for name in grid.published}
        for cell, number in of_cells(contents, grid.cells(), path.stem).items():
            shown[path.stem, *cell] = number.value
        listed[path.stem] = grid.published
    assert shown
    named = [
        ((row["grid"], row["run"], row["heading"]), float(row["value"]))
        for file in FILES
        for row in rows_of(file)
        if row["grid"] in listed and ": " not in row["heading"]
    ]
    assert [(cell, value) for cell, value in named if shown.get(cell) != value] == []
    assert {cell for cell, _ in named} == {*shown}
