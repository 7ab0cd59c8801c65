"""Every number that the five papers print has a run or a reason, in the repository as it is."""

from fractions import Fraction

import pytest

from tests.planning import study_in
from tests.verbs import printed
from workflow_scripts.extraction.blocks import names
from workflow_scripts.graph.figures import Figures
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.coverage import lines
from workflow_scripts.reporting.extraction import places
from workflow_scripts.settings.extraction.cells import Names
from workflow_scripts.settings.extraction.statistics import DIGITS, Statistics
from workflow_scripts.settings.extraction.tables import ExtractionTable
from workflow_scripts.tools import coverage

AT_LEAST = {"s2sent": 0.95, "layerattpooler": 0.95, "three_r": 0.95, "jtcse": 0.85, "extraction": 0.95}


@pytest.fixture(scope="module")
def study():
    return study_in(ROOT, [])


@pytest.fixture(scope="module")
def ledgers():
    return coverage.ledgers()


def test_every_printed_number_has_a_run_or_a_reason_and_most_have_a_run(ledgers):
    """``lines`` raises at the first with neither."""
    found = {line.paper: line for line in lines(coverage.cells(), ledgers, []) if line.name == "all"}
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


def extraction_cells(config):
    """Table, row and heading of every cell of the extraction study's tables."""
    extraction = config["extraction"]
    for name, block in extraction["tables"].items():
        table = ExtractionTable.parse(block, name)
        shown = places(table, Names.parse(names(config, block), name))
        yield from ((name, place.run, place.column) for place in shown)
    for name, block in extraction["statistics"].items():
        for row in Statistics.parse(block, name).rows:
            run = ", ".join(filter(None, (row.name, row.split)))
            yield from ((name, run, heading) for heading in DIGITS)


@pytest.fixture(scope="module")
def targets(study):
    """Every cell, figure and setting that a number can be printed as."""
    of_grids = [(name, run, column["heading"])
                for name, grid in study.grids.items() for run in study.runs_of(name) for column in grid["columns"]]  # fmt: skip
    figures = Figures(study)
    drawn = [(grid, "", f"figure: {figure}") for grid in figures.experiments for figure in figures.of(grid)]
    return {*of_grids, *drawn, *extraction_cells(study.config)}


def is_there(cell, targets, study):
    if not cell.heading.startswith("setting: "):
        run = "" if cell.heading.startswith("figure: ") else cell.run
        return (cell.grid, run, cell.heading) in targets
    value = study.settings[cell.run] if cell.run in study.runs_of(cell.grid) else None
    for key in cell.heading.removeprefix("setting: ").split("."):
        value = value and value[key]
    return value is not None and Fraction(str(value)) == Fraction(str(cell.value))


def test_what_the_ledger_names_is_there(study, targets, ledgers):
    named = [cell for cell in coverage.cells() if cell.target is not None]
    assert [cell for cell in named if not is_there(cell, targets, study)] == []
    panels = [panel for ledger in ledgers.values() for panel in ledger.panels if panel.grid]
    drawn = [(panel.grid, "", f"figure: {panel.drawn}") for panel in panels if panel.drawn != "table"]
    assert drawn and {*drawn} <= targets


@pytest.mark.parametrize(
    "changed",
    [{"run": "simcse.bert_bass.wiki1m"}, {"heading": "Average"}, {"grid": "jtcse_table99"}, {"heading": "figure: sweep"},
     {"heading": "setting: training.batch_size"}, {"run": "x", "heading": "setting: training.batch_size"}],
)  # fmt: skip
def test_a_counterpart_that_is_not_there_is_missed(study, targets, changed):
    cell = next(one for one in coverage.cells() if one.table == "jtcse_table2")
    assert is_there(cell, targets, study) and not is_there(cell._replace(**changed), targets, study)


def test_the_laboratory_has_measured_cells_of_the_extraction_study():
    found = coverage.in_laboratory()
    assert ("extraction_table6", "avg.", "T0") in found
    assert ("extraction_table6", "-biases", "T0") in found  # '-biases in the CSV
    assert ("extraction_table3", "STS12", "C") not in found  # a gap


def test_the_verb_prints_every_paper_or_a_line_a_table(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setenv("COLUMNS", "160")
    code, short = printed("coverage", "--short")
    for text in ("S2Sent", "LayerAttPooler", "3R", "JTCSE", "Extracting Sentence Embeddings", "1,919"):
        assert text in short
    monkeypatch.setenv("COLUMNS", "80")
    code, whole = printed("coverage")
    assert code == 0 and len(whole.splitlines()) > 80 and "…" not in whole
    assert len(short.splitlines()) < 20


def test_the_page_of_the_papers_has_the_counts_of_the_command(ledgers):
    shown = [" ".join(line.split()) for line in (ROOT / "docs/papers.md").read_text().splitlines()]
    for line in lines(coverage.cells(), ledgers, coverage.in_laboratory()):
        if line.name == "all":
            title = coverage.coverage.PAPERS[line.paper]
            assert f"{title} {line.printed:,} {line.mapped:,} {line.measured:,}" in shown
