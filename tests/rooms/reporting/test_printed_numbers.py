"""Every number that the five papers print has a run or a reason, in the repository as it is."""

from fractions import Fraction

import pytest

from tests.support.printed_numbers import KINDS, NAMES, cells, ledger, problems
from tests.support.snakemake_plans import study_in
from workflow_scripts.data.printed import cell_numbers
from workflow_scripts.errors import DataError
from workflow_scripts.graph.extraction import names
from workflow_scripts.graph.reporting import Figures
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.extraction import positions
from workflow_scripts.settings.extraction import DIGITS
from workflow_scripts.settings.grids import PAPERS

PRINTED = {
    "s2sent": (196, 0.95),
    "layerattpooler": (262, 0.95),
    "three_r": (674, 0.95),
    "jtcse": (1919, 0.85),
    "extraction": (3978, 0.95),
}
"""How many numbers each paper prints, and which part of them has a run at least."""


@pytest.fixture(scope="module")
def study():
    return study_in(ROOT, [])


@pytest.mark.parametrize("paper", PAPERS)
def test_every_printed_number_has_a_run_or_a_reason(paper):
    """Every printed number has a run or a reason and most have a run."""
    found, reasons = cells(paper), ledger(paper)["reasons"]
    assert list(problems(found, reasons)) == []
    printed, least = PRINTED[paper]
    assert len(found) == printed
    assert sum(cell.target is not None for cell in found) >= least * printed
    for reason in reasons:
        assert {"table", "kind", "reason"} <= reason.keys() <= {*NAMES, "kind", "reason"}
        assert reason["kind"] in KINDS
        assert len(reason["reason"]) >= 10


@pytest.mark.parametrize("paper", PAPERS)
def test_every_panel_of_a_figure_is_drawn_or_has_a_reason(paper):
    panels = ledger(paper)["panels"]
    assert panels
    for panel in panels:
        assert panel.keys() in ({"figure", "panel", "grid", "drawn"}, {"figure", "panel", "kind", "reason"})
        assert panel.get("kind") in {None, *KINDS}


def extraction_cells(settings):
    """Table, row and heading of every cell of the extraction study's tables."""
    for name, table in settings.extraction.tables.items():
        shown = positions(table, names(settings, table))
        yield from ((name, place.run, place.column) for place in shown)
    for name, block in settings.extraction.statistics.items():
        for row in block.rows:
            run = ", ".join(filter(None, (row.name, row.split)))
            yield from ((name, run, heading) for heading in DIGITS)


@pytest.fixture(scope="module")
def targets(study):
    """Every cell, figure and setting that a number can be printed as."""
    of_grids = [(name, run, column.heading)
                for name, grid in study.grids.items() for run in grid.runs for column in grid.columns]  # fmt: skip
    drawn = [
        (grid, "", f"figure: {figure}")
        for grid, figures in Figures(study).by_experiment.items()
        for figure in figures
    ]
    return {*of_grids, *drawn, *extraction_cells(study.settings)}


def is_there(cell, targets, study):
    if not cell.heading.startswith("setting: "):
        run = "" if cell.heading.startswith("figure: ") else cell.run
        return (cell.grid, run, cell.heading) in targets
    section, *keys = cell.heading.removeprefix("setting: ").split(".")
    run = study.grids[cell.grid].runs.get(cell.run) if cell.grid in study.grids else None
    value = run and getattr(run, section)
    for key in keys:
        value = value and getattr(value, key)
    return value is not None and Fraction(str(value)) == Fraction(str(cell.value))


def test_a_cell_is_printed_with_one_value():
    """Printed twice, in a table and in the text, it may have the same value only."""
    head = "row,column,grid,run,heading,value,source\n"
    row = "a,b,toy,run,STS,{},Table 1\n"
    equal, other = (head + row.format(76.25) + row.format(value) for value in (76.25, 76.52))
    (printed,) = cell_numbers({"toy.csv": equal.encode()}, {("run", "STS")}, "toy").values()
    assert printed.value == 76.25
    with pytest.raises(DataError, match=r"has two values\. Remove one row"):
        cell_numbers({"toy.csv": other.encode()}, {("run", "STS")}, "toy")


def test_every_counterpart_in_the_ledger_exists(study, targets):
    named = [cell for paper in PAPERS for cell in cells(paper) if cell.target is not None]
    assert [cell for cell in named if not is_there(cell, targets, study)] == []
    panels = [panel for paper in PAPERS for panel in ledger(paper)["panels"] if "grid" in panel]
    drawn = [(one["grid"], "", f"figure: {one['drawn']}") for one in panels if one["drawn"] != "table"]
    assert drawn
    assert {*drawn} <= targets
