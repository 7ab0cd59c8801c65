"""What a reader sees of a table: in the terminal and as CSV."""

import csv
import io
import os
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from tests.jobs import begin_here
from tests.unit.reporting.conftest import SIGNIFICANCE, command, inside
from tests.verbs import data, printed
from workflow_scripts.audit.lock import printed as printed_numbers
from workflow_scripts.audit.printing import latex_of
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.scores import Score, gap, score_table
from workflow_scripts.provenance.artefacts import job_record, read_record, write_table
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.reporting.layout import View, lay_out, view_of
from workflow_scripts.reporting.numbers import number, p_equation, score_text
from workflow_scripts.reporting.terminal import Printed, to_csv

MINUS = "\N{MINUS SIGN}"
COLUMN = {"suite": "sts", "task": "a", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
RUNS = ("frozen_cls.mini", "simcse.mini.wiki")


def view(rows=None, headings=("A",), alpha=0.05):
    rows = rows or [row(run, name) for run in RUNS for name in headings]
    return View("lab", "A title", "A paper", alpha, "lab.yaml", rows, headings, {})


def sheet(*arguments, **named):
    return lay_out(view(*arguments, **named))


def row(run, heading="A", **changes):
    tested = {"baseline": RUNS[0], "difference": 8.125, "p_value": 0.0421, "detectable": 9.5}
    trained = tested if run != RUNS[0] else {}
    values = {"run": run, "heading": heading, "mean": 58.1049, "sd": 0.14, "seeds": 2, "n": 1225}
    return dict.fromkeys(TABLE.names) | values | {"labels": []} | COLUMN | trained | changes


def as_printed(sheet, width=100):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(Printed(sheet))
    return console.file.getvalue()


@pytest.mark.parametrize(
    ("value", "digits", "signed", "text"),
    [
        (1.005, 1, False, "1.0"),
        (-1.26, 1, False, f"{MINUS}1.3"),
        (-0.001, 2, False, "0.00"),
        (0.001, 2, True, "0.00"),
        (3, 1, True, "+3.0"),
    ],
)
def test_numbers_have_true_minus_signs_and_zero_has_none(value, digits, signed, text):
    assert number(value, digits, signed=signed) == text


def test_scores_and_p_values_are_printed_as_papers_do():
    assert score_text(None, None, 2) == "gap"
    assert score_text(58.1, None, 2) == "58.10"
    assert score_text(58.1, 0.136, 2) == "58.10 ± 0.14"
    assert [p_equation(p) for p in (0.0421, 0.0004, 1.0)] == ["p = .042", "p < .001", "p = 1.000"]


OTHERS = ("frozen_cls.large", "simcse.large.wiki")
TWO_BASELINES = [
    row(RUNS[0]), row(RUNS[1]), row(OTHERS[0], baseline=None, difference=None, p_value=None),
    row(OTHERS[1], baseline=OTHERS[0], difference=-1.0),
]  # fmt: skip
LOST = row(RUNS[1], mean=None, sd=None, seeds=0, note="STS16 is not there", difference=None)
LABELS = ["MiniLM for BERT", "gap: datasets.sts16: no source is available"]
READ = {
    "score, star, difference, p and seeds": (
        None, 0.05,
        ["58.10 ± 0.14*", "+8.12, p = .042", "* p < .05, two-sided", f" {RUNS[1]} 2 ",
         f"below it the difference to {RUNS[0]}"],
        ["base"],
    ),
    "a star follows alpha": (None, 0.01, ["58.10 ± 0.14"], ["*"]),
    "rows with different baselines name theirs by letter": (
        TWO_BASELINES, 0.05,
        [f"base: A is {RUNS[0]}, B is {OTHERS[0]}", "below it the difference to the run that column base names",
         f" {RUNS[0]} (A) ", f" {RUNS[1]} A ", f" {OTHERS[0]} (B) ", f" {OTHERS[1]} B "],
        [],
    ),
    "a gap is a word with a footnote and not a number": (
        [row(RUNS[0]), LOST], 0.05, ["gap [1]", "[1] STS16 is not there"], ["None", "nan"],
    ),
    "every substitution is marked on the runs that it reached": (
        [row(RUNS[0], labels=LABELS[:1]), row(RUNS[1], labels=[*LABELS[:1], "a surrogate"])], 0.05,
        ["frozen_cls.mini (a) ", "simcse.mini.wiki (a,b)", "(a) substitution: MiniLM for BERT",
         "(b) substitution: a surrogate"],
        [],
    ),
    "a missing dataset is a gap and no substitution": (
        [row(run, labels=LABELS) for run in RUNS], 0.05,
        ["gap: datasets.sts16: no source is available", "(a) substitution: MiniLM for BERT"],
        ["substitution: gap", "(b)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "alpha", "said", "unsaid"), READ.values(), ids=READ)
def test_a_reader_is_told(rows, alpha, said, unsaid):
    text = " ".join(as_printed(sheet(rows, alpha=alpha)).split())
    assert [part for part in said if " ".join(part.split()) not in text] == []
    assert [part for part in unsaid if part in text] == []


def test_a_note_that_a_whole_column_shares_stands_at_its_heading():
    shared = sheet([row(run, note="lee, score > 4") for run in RUNS])
    assert shared.heads[0].notes == [1]
    assert all(cell.notes == [] for line in shared.lines for cell in line.cells)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_column_is_cut_however_narrow_the_terminal(width):
    headings = [f"heading{index}" for index in range(9)]
    text = as_printed(sheet(headings=headings), width)
    assert all(text.count(heading) == 1 for heading in headings)
    assert text.count("58.10 ± 0.14") == 2 * len(headings)
    assert "…" not in text


def test_text_from_data_is_no_markup_for_the_terminal():
    hostile = "[red]not red[/red] :smile: [/]"
    text = as_printed(sheet([row(run, hostile, labels=[hostile]) for run in RUNS], [hostile]))
    assert text.count(hostile) == 2


def test_the_csv_is_rounded_to_the_printed_digits_and_the_same_every_time():
    text = to_csv([view()])
    found = list(csv.DictReader(io.StringIO(text)))
    assert (found[1]["experiment"], found[1]["mean"], found[1]["difference"]) == ("lab", "58.1", "8.12")
    assert (found[1]["p_value"], found[1]["seeds"], found[0]["difference"]) == ("0.042", "2", "")
    assert [one["baseline"] for one in found] == ["", RUNS[0]]  # other rows may be compared with another run
    noise = [row(run, mean=58.1049 + change) for run, change in zip(RUNS, (1e-9, -1e-9), strict=True)]
    assert to_csv([view(noise)]) == text


def test_a_spreadsheet_computes_nothing_from_the_csv():
    rows = [row(run, note="=cmd()", labels=["@SUM(A1)"], mean=-1.5) for run in RUNS]
    found = next(csv.DictReader(io.StringIO(to_csv([view(rows)]))))
    assert (found["note"], found["labels"], found["mean"]) == ("'=cmd()", "'@SUM(A1)", "-1.5")


def test_a_table_is_printed_for_documents_of_markdown_and_latex(finished):
    table = finished / "tables/lab.parquet"
    code, markdown = printed("show", table, "--markdown")
    heads = [cell.strip() for cell in markdown.splitlines()[0].split("|")[1:-1]]
    assert code == 0 and heads[:2] == ["run", "seeds"] and len(heads) == 2 + 4
    (row,) = [
        line for line in markdown.splitlines() if line.startswith("| simcse.minilm_mlm.wiki_extract | ")
    ]
    assert row.count(" | ") == 5 and " ± " in row and "\n\n- mean ± standard deviation" in markdown
    latex = printed("show", table, "--latex")[1].splitlines()
    assert latex[0] == r"\begin{tabular}{lrrrrr}" and latex[1] == r"\toprule"
    (row,) = [line for line in latex if line.startswith(r"simcse.minilm\_mlm.wiki\_extract & ")]
    assert row.endswith(r" \\") and r" $\pm$ " in row and row.count("&") == 5


def test_a_study_shows_all_its_tables(finished):
    _code, said = printed("show", finished)
    assert "substitution: all-MiniLM-L6-v2 stands in for BERT-base" in said
    assert len(printed("show", finished, "--csv")[1].splitlines()) == 1 + 4 * 4
    code, found = data("show", finished)
    assert code == 0 and found["lab"][0]["run"]
    with pytest.raises(DataError, match="a folder without tables"):
        printed("show", finished / "tables")


def test_what_latex_would_read_as_its_own_is_escaped():
    assert latex_of([{"a_b": "50% & {x}", "n": 3}]).splitlines()[2:5] == [
        r"a\_b & n \\", r"\midrule", r"50\% \& \{x\} & 3 \\"
    ]  # fmt: skip


def test_measured_columns_are_shown_with_the_table_and_kept_out_of_the_csv(tmp_path):
    """The job itself lays them out; the rest is the same experiment without them."""
    measured = COLUMN | {
        "heading": "ms",
        "aggregation": "ivf",
        "metric": "retrieval_ms",
        "measured": True,
        "scale": 1,
    }
    experiment = {
        "title": "A title", "source": "A paper", "seeds": [1], "baseline": None, "suites": {"search": ["sts"]},
        "runs": [{"method": "frozen_cls", "encoder": "mini"}],
        "columns": [measured, COLUMN | {"heading": "A"}],
    }  # fmt: skip
    settings = {"experiment": experiment, "significance": SIGNIFICANCE}
    with inside(tmp_path):
        scores = {
            "table": Score("a", "all", "spearman", 0.5, 7),
            "times": Score("a", "ivf", "retrieval_ms", 1.25, 7),
        }
        outputs = {"table": "results/s/tables/t.parquet", "times": "benchmarks/s/tabulate_times/t.parquet"}
        for part, rule in (("table", "make_table"), ("times", "tabulate_times")):
            file = Path(f"{part}.parquet")
            made = job_record("evaluate_cost", settings={}, inputs={}, outputs=[file])
            write_table(file, score_table([scores[part]], run=RUNS[0], seed="0", suite="sts"), made)
            Path(outputs[part]).parent.mkdir(parents=True)
            line = command(rule, settings, experiment="t", scores=[file], published=[], table=outputs[part])
            begin_here(*line)
            assert read_record(Path(outputs[part])).rule == rule
        _code, shown = printed("show", outputs["table"])
        assert "1.25 " in shown and "50.00" in shown
        heads = printed("show", outputs["table"], "--markdown")[1].splitlines()[0]
        assert heads.replace(" ", "") == "|run|seeds|ms|A|"  # in the order of the grid
        assert "[1] measured on this machine" in shown
        kept = csv.DictReader(io.StringIO(printed("show", outputs["table"], "--csv")[1]))
        assert [row["heading"] for row in kept] == ["A"]


@pytest.fixture
def score_files(tmp_path):
    """Scores of two runs, the first with a gap and a label."""
    files = []
    for run, value, label in (("frozen.a", 0.50814, ["a stand-in"]), ("frozen.b", 22713216.0, [])):
        with inside(tmp_path):
            file = Path(f"{run}.parquet")
            made = job_record("evaluate_sts", settings={}, inputs={}, outputs=[file], labels=label)
            scores = [Score("lee", "all", "spearman", value, 1225), gap("=sts", "not there")]
            write_table(file, score_table(scores[: 2 if label else 1], run=run, seed="0", suite="s"), made)
        files.append(tmp_path / file)
    return files


def shown_by(*arguments):
    line = [sys.executable, "-m", "workflow_scripts", "show", *arguments]
    wide = os.environ | {"COLUMNS": "160"}
    return subprocess.run(line, cwd=ROOT, env=wide, capture_output=True, text=True, check=False)


def test_scores_are_printed_a_row_each_with_gaps_and_labels(score_files):
    lines = shown_by(*score_files).stdout.splitlines()
    cells = [line.split() for line in lines]
    assert ["frozen.a", "0", "s", "lee", "all", "spearman", "0.50814", "1,225"] in cells
    assert ["frozen.a", "0", "s", "=sts", "gap", "0", "not", "there"] in cells
    assert ["frozen.b", "0", "s", "lee", "all", "spearman", "22,713,216", "1,225"] in cells
    assert lines[-1] == "Substitution: a stand-in."


def test_scores_as_csv_are_what_the_files_hold(score_files):
    rows = list(csv.DictReader(io.StringIO(printed("show", *score_files, "--csv")[1])))
    assert [(row["run"], row["task"], row["value"]) for row in rows] == [
        ("frozen.a", "lee", "0.50814"),
        ("frozen.a", "'=sts", ""),
        ("frozen.b", "lee", "22713216.0"),
    ]


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["notes.txt"], "not written by this pipeline. Give a study"),
        (["somebody.parquet"], ""),
        (["results/demo/tables/demo.parquet"], "no such file. snakemake makes it, with the --configfile"),
        (
            ["{study}/figures/lab/learning_curves.parquet"],
            "cut off, or not written by this pipeline. Give a study",
        ),
        (["{study}/figures/lab/record.json"], "cut off, or not written by this pipeline. Give a study"),
        (["{study}/tables/lab.parquet", "{scores}", "--csv"], "--csv: "),
    ],
)
def test_what_is_not_shown_ends_in_one_line_that_deletes_nothing(
    finished, score_files, tmp_path, monkeypatch, paths, message
):
    monkeypatch.chdir(tmp_path)
    for mine in ("notes.txt", "somebody.parquet"):
        Path(mine).write_text("mine")
    with pytest.raises(DataError) as refused:
        printed("show", *(path.format(study=finished, scores=score_files[0]) for path in paths))
    assert message in str(refused.value) and "Delete" not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


def test_a_lock_has_the_numbers_with_their_printed_digits(finished):
    table = finished / "tables/lab.parquet"
    numbers = printed_numbers(table)
    rows = {f"{row['run']}, {row['heading']}": row["mean"] for row in view_of(table).rows}
    assert numbers.keys() == {name for name, mean in rows.items() if mean is not None}
    assert len(numbers) > 10 and numbers == {
        name: f"{rows[name]:.{len(text.partition('.')[2])}f}".replace("-", MINUS)
        for name, text in numbers.items()
    }
