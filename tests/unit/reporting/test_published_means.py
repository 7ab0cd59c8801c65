"""Recomputing printed means, on tables small enough to do by hand."""

from fractions import Fraction

import pytest

from workflow_scripts.errors import DataError
from workflow_scripts.reporting.published_means import Cell, Means, check, read_printed

HEAD = "group,row,column,value,grid,run,heading,source,note\n"
NONE = {"columns": [], "rows": [], "tables": []}


def table(*cells, notes=("",)):
    """A table of ``group row column value`` lines; the note stands in the last one."""
    lines = [",".join([*cell.split(), "", "", "", "s", ""]) for cell in cells]
    lines[-1] += notes[0]
    return read_printed(HEAD + "\n".join(lines) + "\n", "t.csv")


def of_columns(*cells, note=""):
    means = Means(**NONE | {"columns": [{"tables": ["t"], "mean": "Avg", "of": ["A", "B"]}]})
    return check({"t": table(*cells, notes=(note,))}, means)


@pytest.mark.parametrize(
    ("printed", "off"),
    [
        ("1.50", False),
        ("1.51", False),
        ("1.52", True),
        ("1.49", False),
        ("1.48", True),
        ("1.6", True),
        ("1.5", False),
    ],
)
def test_a_mean_is_off_where_rounding_does_not_explain_it(printed, off):
    """Cells of 1.00 and 2.00 may stand for .995 to 1.005 and 1.995 to 2.005."""
    (one,) = of_columns("g r A 1.00", "g r B 2.00", f"g r Avg {printed}")
    assert one.recomputed == Fraction(3, 2)
    assert one.off == off


def test_a_coarse_mean_is_allowed_its_own_rounding():
    (one,) = of_columns("g r A 1.00", "g r B 2.10", "g r Avg 1.6")
    assert one.allowed == Fraction(55, 1000)
    assert not one.off


@pytest.mark.parametrize(
    ("printed", "note", "surprising"), [("2.00", "", True), ("1.50", "off", True), ("2.00", "off", False)]
)
def test_a_note_must_say_what_the_numbers_say(printed, note, surprising):
    (one,) = of_columns("g r A 1.00", "g r B 2.00", f"g r Avg {printed}", note=note)
    assert one.surprising == surprising


def test_a_row_of_means_is_the_mean_of_all_others_in_its_column():
    means = Means(**NONE | {"rows": [{"tables": ["t"], "means": ["avg", "Avg"]}]})
    cells = (
        "g x A 1.0",
        "g y A 2.0",
        "g z A 6.0",
        "g x B 9.0",
        "g y B 9.0",
        "g z B 9.0",
        "g avg A 3.0",
        "g Avg B 8.0",
    )
    checks = check({"t": table(*cells)}, means)
    assert {(one.cell.column, one.recomputed, one.off) for one in checks} == {("A", 3, False), ("B", 9, True)}


def test_a_table_of_means_is_checked_cell_by_cell_against_its_tasks():
    means = Means(**NONE | {"tables": [{"tables": ["t"], "group": "STS", "of": ["one", "two"]}]})
    tables = {
        "t": table("STS avg BERT 2.0", "STS abtt BERT 5.0", "clustering avg BERT 7.0"),
        "one": table("STS12 avg BERT 1.0"),
        "two": table("STS13 avg BERT 3.0"),
    }
    (one,) = check(tables, means)  # abtt stands in no task's table, clustering is not asked for
    assert (one.cell, one.recomputed, one.off) == (Cell("STS", "avg", "BERT"), 2, False)


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        (("g r A 1.00", "g r Avg 1.00"), "no cell g, r, B"),
        (("g r A 1.00", "g r B 1.00"), "no mean Avg"),
        (("g r A 1.00", "g r A 1.00"), "occurs twice"),
        (("g r A 1.O0", "g r B 1.00"), "'1.O0' is no number"),
    ],
)
def test_tables_that_cannot_be_checked_are_refused(cells, message):
    with pytest.raises(DataError, match=message):
        of_columns(*cells)


def test_a_table_that_is_not_there_is_named():
    means = Means(**NONE | {"rows": [{"tables": ["u"], "means": ["Avg"]}]})
    with pytest.raises(DataError, match="no table u; has t"):
        check({"t": table("g r A 1.00")}, means)


def test_a_file_with_other_columns_is_refused():
    with pytest.raises(DataError, match=r"t\.csv: has the columns"):
        read_printed("run,heading,value,source\n", "t.csv")
