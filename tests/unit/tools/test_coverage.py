"""Every number that the five papers print has a run or a reason, in the repository as it is."""

import pyarrow as pa
import pytest

from tests.verbs import printed
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.graph.ledger import ledger_findings
from workflow_scripts.planning.graph import study_in
from workflow_scripts.provenance.artefacts import job_record, write_table
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.coverage import lines
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


def test_what_the_ledger_names_is_there(study, ledgers):
    assert list(ledger_findings(coverage.cells(), ledgers.values(), study)) == []


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"run": "simcse.bert_bass.wiki1m"}, "jtcse_table2 has no run simcse.bert_bass.wiki1m or no heading"),
        ({"heading": "Average"}, "or no heading Average. Correct the row."),
        ({"grid": "jtcse_table99"}, "jtcse_table99 has no run"),
        ({"heading": "figure: sweep"}, "jtcse_table2 has no figure sweep; has "),
        ({"grid": "jtcse_table99", "heading": "figure: sweep"}, "has no such grid"),
        (
            {"heading": "setting: training.batch_size"},
            "has training.batch_size 64. Correct the run or the row.",
        ),
        ({"run": "x", "heading": "setting: training.batch_size"}, "jtcse_table2 has no run x."),
    ],
)
def test_a_counterpart_that_is_not_there_is_named(study, changed, message):
    cell = next(one for one in coverage.cells() if one.table == "jtcse_table2")
    assert list(ledger_findings([cell], [], study)) == []
    (finding,) = ledger_findings([cell._replace(**changed)], [], study)
    assert finding.startswith("jtcse_table2: BERT-base, AllegroReviews, SimCSE: ") and message in finding


def test_a_setting_that_is_printed_is_the_runs(study):
    (cell,) = [
        one
        for one in coverage.cells()
        if one[:4] == ("layerattpooler_table4", "BERT-base, Equation 7", "CLS_Last", "learning rate")
    ]
    assert (cell.value, cell.heading) == ("3e-5", "setting: training.learning_rate")
    assert list(ledger_findings([cell], [], study)) == []
    (finding,) = ledger_findings([cell._replace(value="1e-5")], [], study)
    assert "simcse.bert_base.wiki1m.every100 has training.learning_rate 3e-05" in finding


def test_a_cell_is_measured_where_a_table_has_a_value(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    row = dict.fromkeys(TABLE.names) | {"heading": "mean", "labels": []}
    rows = [row | {"run": "simcse.x", "mean": 76.2}, row | {"run": "gap.x"}]
    for path in ("results/paper/tables/t.parquet", "benchmarks/paper/tabulate_times/times.parquet"):
        place = tmp_path / path
        place.parent.mkdir(parents=True)
        record = job_record("make_table", settings={}, inputs={}, outputs=[place])
        write_table(place, pa.Table.from_pylist(rows, schema=TABLE), record)
    drawn = tmp_path / "results/paper/figures/g/sweep.svg"
    drawn.parent.mkdir(parents=True)
    drawn.write_text("<svg/>")
    assert coverage.measured(tmp_path / "results/paper") == {
        ("t", "simcse.x", "mean"),
        ("times", "simcse.x", "mean"),
        ("t", "", "table"),
        ("times", "", "table"),
        ("g", "", "sweep"),
    }


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
    for line in lines(coverage.cells(), ledgers, [coverage.in_laboratory()]):
        if line.name == "all":
            title = coverage.coverage.PAPERS[line.paper]
            assert f"{title} {line.printed:,} {line.mapped:,} {line.measured[0]:,}" in shown
