"""Tables compared: several as one, the runs in order, some columns, and the best values."""

import csv
import io

import pytest

from tests.support.toy_sheets import RUNS, row, sheet
from workflow_scripts.errors import DataError
from workflow_scripts.reporting import selection
from workflow_scripts.reporting.sheets import footnotes, in_rows, latex, to_csv
from workflow_scripts.settings.suites import LOWER_IS_BETTER, NOT_RANKED, direction_of

FIXED, TRAINED = RUNS


def texts(one):
    """The cells of a printed table by run and heading, as texts; facts such as seeds left out."""
    head, *rows = in_rows(one)
    columns = [
        place for place, name in enumerate(head) if name.partition(" [")[0] in map(one.named, one.headings)
    ]
    return {(cells[0], head[place]): cells[place] for cells in rows for place in columns}


def scores(values, heading="A", **changes):
    """Cells of a column, by run; nothing is compared."""
    plain = {"sd": None, "baseline": None, "difference": None, "p_value": None, "heading": heading}
    return [row(run, mean=value, values=[value], **(plain | changes)) for run, value in values.items()]


def joined(*tables, by="heading"):
    return selection.join(dict(zip(("one", "two"), tables, strict=True)), by)


def test_two_tables_are_one_table_with_empty_cells():
    """Runs and headings of two tables are one table with empty cells."""
    one = sheet(scores({"a": 1.0, "b": 2.0}), ["A"])
    two = sheet(scores({"b": 3.0, "c": 4.0}, "B"), ["B"])
    for by in ("run", "heading"):
        assert texts(joined(one, two, by=by)) == {
            ("a", "A"): "1.00", ("b", "A"): "2.00", ("c", "A"): "",
            ("a", "B"): "", ("b", "B"): "3.00", ("c", "B"): "4.00",
        }  # fmt: skip


def test_a_run_with_two_values_has_two_rows_or_columns():
    """A run with two values has two rows or its column occurs twice."""
    tables = [sheet(scores({"a": 1.0, "b": value})) for value in (2.0, 3.0)]
    rows = {("a", "A"): "1.00", ("b (one)", "A"): "2.00", ("b (two)", "A"): "3.00"}
    assert texts(joined(*tables)) == rows
    columns = {
        ("a", "A (one)"): "1.00", ("b", "A (one)"): "2.00", ("a", "A (two)"): "1.00", ("b", "A (two)"): "3.00",
    }  # fmt: skip
    assert texts(joined(*tables, by="run")) == columns


@pytest.mark.parametrize(
    "change", [{"task": "b"}, {"metric": "pearson"}, {"scale": 1}, {"aggregation": "mean"}]
)
def test_a_heading_that_shows_something_else_is_another_column(change):
    one, two = sheet(scores({"a": 1.0})), sheet(scores({"b": 2.0}, **change))
    assert joined(one, two).headings == ["A (one)", "A (two)"]


def test_two_values_of_a_baseline_have_a_row_each():
    """A run whose baseline has two values has a row for each and its own baseline."""
    tables = [sheet([*scores({FIXED: value}), row(TRAINED, values=[58.1])]) for value in (1.0, 2.0)]
    found = joined(*tables)
    assert {one["run"]: one["baseline"] for one in found.rows} == {
        f"{FIXED} (one)": None, f"{TRAINED} (one)": f"{FIXED} (one)",
        f"{FIXED} (two)": None, f"{TRAINED} (two)": f"{FIXED} (two)",
    }  # fmt: skip


def test_a_difference_to_two_runs_is_left_out_with_the_reason():
    tables = [
        sheet([row(TRAINED, heading, baseline=base)], [heading]) for heading, base in (("A", "x"), ("B", "y"))
    ]
    found = joined(*tables, by="run")
    assert [one["difference"] for one in found.rows] == [None, None]
    assert any("compare this run with different runs" in line for line in footnotes(found))
    assert [one["run"] for one in joined(*tables).rows if one["seeds"]] == [
        f"{TRAINED} (one)",
        f"{TRAINED} (two)",
    ]


def test_notes_and_substitutions_of_all_tables_are_numbered_once():
    one = sheet(scores({"a": 1.0}, note="n", labels=["s"]))
    two = sheet([*scores({"b": 2.0}, note="n"), *scores({"b": 2.0}, "B", note="m", labels=["t"])], ["A", "B"])
    found = joined(one, two)
    assert found.notes == {"n": 1, "m": 2}
    assert found.substitutions == {"s": "a", "t": "b"}
    head, *_ = in_rows(found)
    assert head[-2:] == ["A [1]", "B (b) [2]"]


def test_a_joined_table_has_the_strictest_level_of_its_tables():
    """A p-value of .03 is below one level only; a table without tests, whose level is 0, sets none."""
    tables = [
        sheet([row(run, heading, p_value=0.03)], [heading], alpha=alpha)
        for run, heading, alpha in (("a", "A", 0.05), ("b", "B", 0.01), ("c", "C", 0.0))
    ]
    found = selection.join(dict(zip("xyz", tables, strict=True)), "heading")
    assert found.alpha == 0.01
    assert {*found.cells["star"]} == {""}
    assert [*tables[0].cells["star"]] == ["*"]


def test_equal_cells_are_one_with_the_labels_of_both():
    one, two = (sheet(scores({"a": 1.0}, labels=[label])) for label in ("s", "t"))
    (cell,) = joined(one, two).rows
    assert cell["labels"] == ["s", "t"]


def test_an_equal_cell_has_what_either_table_says():
    """In one table a run is compared with another, and has the paper's value; in the other it has neither."""
    alone = sheet(scores({"a": 1.0}))
    compared = sheet(
        [*scores({"b": 0.5}), row("a", mean=1.0, values=[1.0], sd=None, baseline="b", published=1.5)]
    )
    for tables in ((alone, compared), (compared, alone)):
        (cell,) = [one for one in joined(*tables).rows if one["run"] == "a"]
        assert (cell["baseline"], cell["difference"], cell["published"]) == ("b", 8.125, 1.5)


def test_a_shared_name_gives_way_to_identifiers():
    """A name that two runs have for readers gives way to their identifiers."""
    one, two = (sheet(scores({run: 1.0}), shown={run: "SimCSE"}) for run in "ab")
    assert {run for run, _ in texts(joined(one, two))} == {"a", "b"}


# Choosing

LOSS = {"metric": "alignment"}
TABLE = sheet(
    [
        *scores({"a": 1.0, "b": 3.0, "c": None, "d": 2.0}),
        *scores({"a": 1.0, "b": 3.0, "c": 2.0, "d": None}, "B", **LOSS),
    ],
    ["A", "B"],
)


@pytest.mark.parametrize(
    ("column", "reverse", "order"),
    [("A", False, "bdac"), ("A", True, "adbc"), ("B", False, "acbd"), ("B", True, "bcad")],
)
def test_the_best_runs_are_first_and_gaps_last(column, reverse, order):
    found = selection.in_order(TABLE, column, reverse=reverse)
    assert [run for run, heading in texts(found) if heading == "A"] == [*order]


def test_columns_are_those_that_are_named_in_their_order():
    found = selection.with_columns(TABLE, ["B", "A"])
    assert in_rows(found)[0][-2:] == ["B", "A"]
    both = joined(*[sheet(scores({"a": value})) for value in (1.0, 2.0)], by="run")
    assert selection.with_columns(both, ["A"]).headings == ["A (one)", "A (two)"]
    assert selection.with_columns(both, ["A (two)"]).headings == ["A (two)"]


def test_runs_and_columns_without_a_cell_are_left_out():
    both = joined(sheet(scores({"a": 1.0})), sheet(scores({"b": 2.0}, "B"), ["B"]))
    assert texts(selection.first(both, 1)) == {("a", "A"): "1.00"}
    assert texts(selection.with_columns(both, ["B"])) == {("b", "B"): "2.00"}


def test_an_unknown_column_is_a_line_with_the_nearest_name():
    with pytest.raises(DataError) as refused:
        selection.check_columns([sheet(headings=["Spearman", "Pearson"])], ["Spearmn"], "--sort")
    assert str(refused.value) == "--sort Spearmn: no such column. Did you mean Spearman?"


# The best


@pytest.mark.parametrize(
    ("cells", "best"),
    [
        (scores({"a": 1.0, "b": 2.0, "c": None}), "b"),
        (scores({"a": 1.0, "b": 2.0}, metric="uniformity"), "a"),
        (scores({"a": 1.004, "b": 1.0, "c": 0.9}), "ab"),  # print alike
        ([*scores({"a": 1.0, "b": 2.0}), *scores({"c": 3.0}, n=7)], "b"),  # of other texts
        (scores({"a": 1.0}), ""),
        (scores({"a": 1.0, "b": 2.0}, metric="mean_modulus"), ""),
        (scores({"a": 1.0, "b": 2.0}, suite="training", metric="threshold"), ""),
        (scores({"a": 1.0, "b": 2.0}, aggregation="sd"), ""),
        (scores({"a": 1.0, "b": 2.0}, metric="spearman and alignment"), ""),
    ],
)
def test_the_best_is_among_comparable_cells(cells, best):
    assert selection.best(sheet(cells)) == {(run, "A") for run in best}


def test_a_metric_has_one_direction():
    assert LOWER_IS_BETTER
    assert NOT_RANKED
    assert not LOWER_IS_BETTER & NOT_RANKED
    assert [direction_of("sts", "all", metric) for metric in ("spearman", "alignment", "mean_cosine")] == [
        1,
        -1,
        0,
    ]


def test_the_best_is_bold_without_its_marks():
    """The best is bold in LaTeX and Markdown without its marks and the paper's value."""
    one = sheet([row(FIXED, mean=50.0, published=57.5), row(TRAINED, note="50 %")])
    best = selection.best(one)
    assert in_rows(one, best)[2][-1] == "**58.10 ± 0.14** [1]* (+8.12)"
    assert in_rows(one, best)[1][-1] == "50.00 ± 0.14; paper 57.50"
    assert r"\textbf{58.10 $\pm$ 0.14} {[}1{]}{*} (+8.12)" in latex(one, "", best)


def test_without_notes_no_sign_needs_an_explanation():
    one = selection.without_notes(sheet([row(run, note="why", labels=["a stand-in"]) for run in RUNS]))
    assert all("[" not in text and "(a)" not in text for cells in in_rows(one) for text in cells)
    assert "minipage" not in latex(one, "", notes=False)


def test_the_csv_of_a_joined_table_has_no_empty_cells():
    one, two = sheet(scores({"a": 1.0})), sheet(scores({"b": 2.0}, "B"), ["B"])
    rows = list(csv.DictReader(io.StringIO(to_csv([joined(one, two)]))))
    assert [(found["run"], found["heading"], found["mean"]) for found in rows] == [
        ("a", "A", "1.0"),
        ("b", "B", "2.0"),
    ]
