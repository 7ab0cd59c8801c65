"""Every number that the five papers print has a run or a reason, in the repository as it is."""

from fractions import Fraction

import pytest

from tests import ledger
from tests.planning import study_in
from workflow_scripts.graph.blocks import names
from workflow_scripts.graph.figures import Figures
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.coverage import lines
from workflow_scripts.reporting.extraction import places
from workflow_scripts.settings.extraction import DIGITS

AT_LEAST = {"s2sent": 0.95, "layerattpooler": 0.95, "three_r": 0.95, "jtcse": 0.85, "extraction": 0.95}


@pytest.fixture(scope="module")
def study():
    return study_in(ROOT, [])


@pytest.fixture(scope="module")
def ledgers():
    return ledger.ledgers()


def test_every_printed_number_has_a_run_or_a_reason_and_most_have_a_run(ledgers):
    """``lines`` raises at the first with neither."""
    found = {line.paper: line for line in lines(ledger.cells(), ledgers, []) if line.name == "all"}
    assert [(name, line.printed) for name, line in found.items()] == [
        ("s2sent", 196),
        ("layerattpooler", 262),
        ("three_r", 674),
        ("jtcse", 1919),
        ("extraction", 3978),
    ]
    for name, line in found.items():
        assert line.mapped + sum(line.reasons.values()) == line.printed
        assert line.mapped >= AT_LEAST[name] * line.printed, name


def extraction_cells(settings):
    """Table, row and heading of every cell of the extraction study's tables."""
    for name, table in settings.extraction.tables.items():
        shown = places(table, names(settings, table))
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


def test_every_counterpart_in_the_ledger_exists(study, targets, ledgers):
    named = [cell for cell in ledger.cells() if cell.target is not None]
    assert [cell for cell in named if not is_there(cell, targets, study)] == []
    panels = [panel for ledger in ledgers.values() for panel in ledger.panels if panel.grid]
    drawn = [(panel.grid, "", f"figure: {panel.drawn}") for panel in panels if panel.drawn != "table"]
    assert drawn and {*drawn} <= targets


@pytest.mark.parametrize(
    "changed",
    [{"run": "simcse.bert_bass.wiki1m"}, {"heading": "Average"}, {"grid": "jtcse_table99"}, {"heading": "figure: sweep"},
     {"heading": "setting: training.batch_size"}],
)  # fmt: skip
def test_a_missing_counterpart_is_noticed(study, targets, changed):
    cell = next(one for one in ledger.cells() if one.table == "jtcse_table2")
    assert is_there(cell, targets, study) and not is_there(cell._replace(**changed), targets, study)
