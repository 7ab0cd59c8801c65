"""The typed tables: their means, and what they say twice."""

import csv
import math
from fractions import Fraction
from functools import cache
from itertools import pairwise

import pytest

from tests.published_means import Cell, checks_of, read_printed
from workflow_scripts.graph.configuration import read_yaml
from workflow_scripts.graph.runs import one_column_a_task
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.published import of_cells
from workflow_scripts.settings.study import Grid

PUBLISHED = ROOT / "resources/published"
FILES = sorted(PUBLISHED.glob("*.csv"))
STS = ("STS12", "STS13", "STS14", "STS15", "STS16", "STS-B", "SICK-R")


@cache
def numbers(name):
    """Cells of one table to their exact values."""
    table = read_printed((PUBLISHED / f"{name}.csv").read_text("utf-8"), name)
    return {cell: Fraction(printed.text) for cell, printed in table.items()}


@pytest.mark.parametrize(
    ("paper", "checked", "off"),
    [
        ("s2sent", 8, 0),
        ("layerattpooler", 24, 0),
        ("three_r", 71, 6),
        ("jtcse", 153, 3),
        ("extraction", 232, 0),
    ],
)
def test_printed_means_are_off_exactly_where_noted(paper, checked, off):
    """O-87: six of 3R's, all in Table 2, and three of JTCSE's, all in Table I, are off; none elsewhere."""
    of_paper = [one for one in checks_of(PUBLISHED) if one.table.startswith(paper)]
    wrong = [one for one in of_paper if one.off]
    assert (len(of_paper), len(wrong)) == (checked, off)
    assert [one for one in of_paper if one.surprising] == []
    assert {one.table for one in wrong} <= {"three_r_table2", "jtcse_table1"}


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


def rows_of_3r(one, other):
    """All cells of a row, beside those of another one."""
    cells = [cell for cell in numbers(one[0]) if cell[:2] == one[1:]]
    assert len(cells) == 8
    return [((one[0], *cell), (*other, cell.column)) for cell in cells]


JTCSE_NAMES = {"STS-B": "STSB", "SICK-R": "SICKR", "Avg": "7 Avg."}  # of what LayerAttPooler calls otherwise
SIMCSE_OF_3R = ("three_r_table2", "unsupervised", "SimCSE-BERT-base")
BERT_OF_3R = "SimCSE-BERT-base"
JTCSE = ("jtcse_table1", "BERT-base", "JTCSE", "7 Avg.")
TWICE = {
    "both papers that quote Table 5 of Gao et al. 2021": [
        (("layerattpooler_table1", f"{backbone}, Equation 7", "CLS_Last, as published for SimCSE", column),
         ("jtcse_table1", backbone, "SimCSE", JTCSE_NAMES.get(column, column)))
        for backbone in ("BERT-base", "RoBERTa-base")
        for column in (*STS, "Avg")
    ],
    "SimCSE in 3R's Table 3": rows_of_3r(("three_r_table3", BERT_OF_3R, "SimCSE"), SIMCSE_OF_3R),
    "and in its Table 8": rows_of_3r(("three_r_table8", BERT_OF_3R, "c = 0"), SIMCSE_OF_3R),
    "3R with its list of 300": rows_of_3r(
        ("three_r_table3", BERT_OF_3R, "3R"), ("three_r_table6", BERT_OF_3R, "list length = 300")
    ),
    "a threshold fixed at .273 and exemplars from 60 words: two runs, and yet one row": rows_of_3r(
        ("three_r_table8", BERT_OF_3R, "c = 0.273"), ("three_r_table11", BERT_OF_3R, "list length = 300, N = 60")
    ),
    "every length of 3R's list": [
        pair
        for length in (103, 176, 199, 300, 393, 472)
        for pair in rows_of_3r(
            ("three_r_table6", BERT_OF_3R, f"list length = {length}"),
            ("three_r_table11", BERT_OF_3R, f"list length = {length}, N = 50"),
        )
    ],
    "JTCSE's main result": [
        (JTCSE, ("jtcse_table9", "JTCSE-BERT", "6 CAEL", "7 STS")),
        (JTCSE, ("jtcse_table10", "JTCSE-BERT", "NCE + ICNCE + ICTM", "7 STS")),
        (("jtcse_table1", "BERT-base", "TNCSE", "7 Avg."),
         ("jtcse_table9", "JTCSE-BERT", "without CAEL", "7 STS")),
    ],
    "JTCSE's averages beside costs, but for RankCSE's: 80.10 in Table I, 76.04 in Table VII, as its note says": [
        (("jtcse_table7", group, row, "7 STS"), ("jtcse_table1", "BERT-base", row, "7 Avg."))
        for group, row, column in numbers("jtcse_table7")
        if column == "7 STS" and row != "RankCSE"
        and (group != "ensemble" or row in ("EDFSE", "TNCSE", "JTCSE"))
    ],
    "averages of the extraction study": [
        *((("extraction_table4", *cell), ("extraction_table5", *cell))
          for cell in numbers("extraction_table4") if cell in numbers("extraction_table5")),
        *(pair
          for task in ("STS", "clustering", "classification")
          for model in ("T0", "T4")
          for pair in (
              (("extraction_table4", task, "avg.", model),
               ("extraction_figure4", "", f"{model}, avg., layer 12", task)),
              (("extraction_table4", task, "[MASK]", model),
               ("extraction_table1", "[MASK], layer 12", model, task)),
          )),
    ],
    "four averages of S2Sent, whose base of RoBERTa stands for average pooling (A13)": [
        (("s2sent_table2", f"{name}, SimCSE", row, "STS-Avg."), ("s2sent_table3", name, pooling, method))
        for name, row, pooling, method in (
            ("BERT", "Last1, Base", "CLS", "SimCSE"),
            ("RoBERTa", "Last1, Base", "Avg.", "SimCSE"),
            ("BERT", "Last3, Stack - S2Sent (2D SS)", "Avg.", "SimCSE + S2Sent"),
            ("RoBERTa", "Last6, Stack - S2Sent (2D SS)", "Avg.", "SimCSE + S2Sent"),
        )
    ],
    "LayerAttPooler's best pooling": [
        (("layerattpooler_table1", "BERT-base, Equation 8", best, "STS-B"),
         ("layerattpooler_table2", "BERT-base, Equation 8", row, "STS-B"))
        for best, row in (("CLS_Last", "CLS_Last"), ("LayerAttPooler", "att(CLS + AVG), CLS_Last concat"))
    ],
}  # fmt: skip


@pytest.mark.parametrize("pairs", TWICE.values(), ids=TWICE)
def test_what_is_printed_twice_is_the_same(pairs):
    values = [[numbers(name)[Cell(*cell)] for name, *cell in pair] for pair in pairs]
    assert values and [pair for pair, (one, other) in zip(pairs, values, strict=True) if one != other] == []


@pytest.mark.parametrize(
    ("table", "is_gain", "ours", "theirs", "count"),
    [
        ("three_r_table2", lambda cell: cell.column == "Diff.", lambda cell: cell._replace(column="Avg"),
         lambda cell: cell._replace(column="Avg", row=cell.row.removesuffix(" + 3R")), 10),
        ("jtcse_table8", lambda cell: cell.row == "gain", lambda cell: cell._replace(row="Wiki1M + SICKR"),
         lambda cell: cell._replace(row="Wiki1M"), 7),
    ],
)  # fmt: skip
def test_gains_are_differences_of_two_averages(table, is_gain, ours, theirs, count):
    values = numbers(table)
    gains = {cell: value for cell, value in values.items() if is_gain(cell)}
    assert len(gains) == count
    assert gains == {cell: values[ours(cell)] - values[theirs(cell)] for cell in gains}


def test_change_rates_of_word_counts_are_over_the_rarer_word():
    """O-70: 3R prints another formula, which its numbers do not follow."""
    table = numbers("three_r_table5")
    counts = {int(cell.group): value for cell, value in table.items() if cell.column == "frequency"}
    rates = {int(cell.group): value for cell, value in table.items() if cell.column == "changing rate"}
    checked = [(before, after) for before, after in pairwise(sorted(counts)) if after == before + 1]
    assert len(checked) == 12
    for before, after in checked:
        assert rates[after] == pytest.approx((counts[before] - counts[after]) / counts[after], abs=1e-4)
    assert rates[103] == pytest.approx(0.01052, abs=5e-5)
    assert rates[300] == pytest.approx(0.00520, abs=5e-5)


def test_efficiency_in_jtcse_is_score_over_cost_which_is_that_of_linear_maps_at_64_tokens():
    """O-50: twelve layers of 12 x 768^2 weights, and one sub_encoder, two or six of them."""
    table = numbers("jtcse_table7")
    costs = {cell: cost for cell, cost in table.items() if cell.column == "GMAC"}
    assert len(costs) == 16
    for cell, cost in costs.items():
        score, efficiency = (table[cell._replace(column=name)] for name in ("7 STS", "efficiency"))
        assert abs(score / cost - efficiency) < Fraction(1, 100), cell
    of_one = 12 * 12 * 768**2 * 64 / 1e9
    assert of_one == pytest.approx(5.4358, rel=1e-4)
    assert [float(cost) for cost in sorted({*costs.values()})] == pytest.approx(
        [of_one, 2 * of_one, 6 * of_one], rel=0.01
    )


def test_jtcse_rounds_its_averages_beside_poolings():
    """All but PromptBERT's, which takes [MASK] and not [CLS]."""
    main, pooling = numbers("jtcse_table1"), numbers("jtcse_table11")
    plain = [cell for cell in pooling if cell.row == "CLS" and cell.column != "PromptBERT"]
    assert len(plain) == 9
    for cell in plain:
        tenths = math.floor(main["BERT-base", cell.column, "7 Avg."] * 10 + Fraction(1, 2))
        assert pooling[cell] == Fraction(tenths, 10)


@pytest.mark.parametrize(
    ("tables", "columns", "old", "new", "count", "tenths"),
    [
        (range(6, 14), "", "", " + normalize", 34, 1),  # O-76: unit length changes no cosine, to the rounding
        (
            range(6, 20),
            "B2S",
            "avg.",
            "idf^T",
            14,
            4,
        ),  # idf was not computed for it; k-means leaves some tenths
    ],
)
def test_rows_that_ought_to_agree_do(tables, columns, old, new, count, tenths):
    for table in (numbers(f"extraction_table{number}") for number in tables):
        twins = {
            cell: cell._replace(row=cell.row.replace(old, new) if old else cell.row + new) for cell in table
        }
        found = {cell: twin for cell, twin in twins.items() if twin in table and twin != cell}
        found = {cell: twin for cell, twin in found.items() if cell.column.startswith(columns)}
        assert len(found) == count
        assert all(abs(table[cell] - table[twin]) <= Fraction(tenths, 10) for cell, twin in found.items())
