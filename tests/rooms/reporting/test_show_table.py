"""Tables as readers see them: in the terminal, as CSV, Markdown and LaTeX."""

import csv
import io
import re
import shlex
import shutil
from pathlib import Path

import pandas
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.rooms.reporting.conftest import SIGNIFICANCE, command
from tests.support.doc_blocks import steps
from tests.support.snakemake_plans import ROOT, expanded
from tests.support.toy_sheets import COLUMN, RUNS, row, sheet
from tests.support.training_jobs import begin_here
from tests.support.verb_answers import data, printed
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.base import Score, gap, score_table
from workflow_scripts.provenance.artefacts import job_record, read_record, write_table
from workflow_scripts.reporting.cells import number, p_equation, p_text, score_text
from workflow_scripts.reporting.sheets import in_rows, in_terminal, latex, to_csv
from workflow_scripts.verbs.printing import Answer, markdown, print_answer
from workflow_scripts.verbs.show import told_apart

MINUS = "\N{MINUS SIGN}"
SIMCSE = "simcse.minilm_mlm.wiki_extract"


@pytest.mark.parametrize(
    ("shown", "text"),
    [
        (number(1.005, 1), "1.0"),
        (number(-1.26, 1), f"{MINUS}1.3"),
        (number(-0.001, 2), "0.00"),
        (number(0.001, 2, signed=True), "0.00"),
        (number(3, 1, signed=True), "+3.0"),
        (score_text(None, None, 2), "gap"),
        (score_text(58.1, None, 2), "58.10"),
        (score_text(58.1, 0.136, 2), "58.10 ± 0.14"),
        (p_equation(0.0421), "p = .042"),
        (p_equation(0.0004), "p < .001"),
        (p_equation(1.0), "p = 1.000"),
        (p_text(0.0421), ".042"),
        (p_text(0.0004), "<.001"),
        (p_text(None), ""),
    ],
)
def test_numbers_are_printed_as_papers_do_with_true_minus_signs(shown, text):
    assert shown == text


OTHERS = ("frozen_cls.large", "simcse.large.wiki")
TWO_BASELINES = [
    row(RUNS[0]), row(RUNS[1]), row(OTHERS[0], baseline=None, difference=None, p_value=None),
    row(OTHERS[1], baseline=OTHERS[0], difference=-1.0),
]  # fmt: skip
LOST = row(RUNS[1], mean=None, sd=None, seeds=0, note="STS16 is not there", difference=None, p_value=None)
LABELS = ["MiniLM for BERT", "gap: datasets.sts16: no source is available"]
READ = {
    "score, star, difference, p and seeds": (
        None, 0.05,
        ["58.10 ± 0.14*", "+8.12, p = .042", "* p < .05, two-sided", f" {RUNS[1]} 2 ",
         f"and the difference to {RUNS[0]}"],
        ["base"],
    ),
    "two seeds are counted and said not to be tested": (
        [row(RUNS[0], seeds=1, sd=None), row(RUNS[1], p_value=None, detectable=None)], 0.05,
        ["mean ± standard deviation over seeds", "no difference is tested: runs have 1 or 2 seeds, a test needs 3"],
        ["p ="],
    ),
    "one seed has no deviation": (
        [row(RUNS[0], seeds=1, sd=None), row(RUNS[1], seeds=1, sd=None, p_value=None)], 0.05,
        ["one value a cell", "no difference is tested: runs have 1 seed, a test needs 3"],
        ["±"],
    ),
    "a star follows alpha": (None, 0.01, ["58.10 ± 0.14"], ["*"]),
    "rows with different baselines name theirs": (
        TWO_BASELINES, 0.05,
        ["and the difference to the run in column base", f"{RUNS[1]} {RUNS[0]} ", f"{OTHERS[1]} {OTHERS[0]} "],
        [],
    ),
    "a gap is a word with a footnote and not a number": (
        [row(RUNS[0]), LOST], 0.05, ["gap [1]", "[1] STS16 is not there"], ["None", "nan"],
    ),
    "a note that a whole column shares stands at its heading": (
        [row(run, note="score > 4") for run in RUNS], 0.05, ["A [1]", "[1] score > 4"], ["0.14 [1]", "0.14* [1]"],
    ),
    "every substitution is marked on the runs that it reached": (
        [row(RUNS[0], labels=LABELS[:1]), row(RUNS[1], labels=[*LABELS[:1], "a surrogate"])], 0.05,
        ["frozen_cls.mini (a) ", "simcse.mini.wiki (a,b)", "(a) MiniLM for BERT",
         "(b) a surrogate"],
        [],
    ),
    "a missing dataset is a gap and no substitution": (
        [row(run, labels=LABELS) for run in RUNS], 0.05,
        ["gap: datasets.sts16: no source is available", "(a) MiniLM for BERT"],
        ["(a) gap", "(b)"],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("rows", "alpha", "said", "unsaid"), READ.values(), ids=READ)
def test_a_reader_is_told(rows, alpha, said, unsaid):
    text = " ".join(in_terminal(sheet(rows, alpha=alpha), 100).split())
    assert [part for part in said if " ".join(part.split()) not in text] == []
    assert [part for part in unsaid if part in text] == []


def test_text_from_data_is_no_markup_for_the_terminal(capsys):
    hostile = "[red]not red[/red] :smile: [/]"
    rows = [row(run, hostile, labels=[hostile]) for run in RUNS]
    print_answer(Answer(parts=[in_terminal(sheet(rows, [hostile]), 100)]), as_json=False)
    assert capsys.readouterr().out.count(hostile) == 2


def test_the_csv_is_rounded_to_the_printed_digits():
    rows = [row(RUNS[0]), row(RUNS[1], note="why", labels=["a stand-in"], mean=-58.1049)]
    found = list(csv.DictReader(io.StringIO(to_csv([sheet(rows)]))))
    expected = {
        "experiment": "lab", "mean": "-58.1", "difference": "8.12", "p_value": "0.042", "seeds": "2",
        "baseline": RUNS[0], "note": "why", "labels": "a stand-in",
    }  # fmt: skip
    assert {name: found[1][name] for name in expected} == expected
    assert found[0]["difference"] == found[0]["baseline"] == ""
    noise = [one | {"mean": one["mean"] + 1e-9} for one in rows]
    assert to_csv([sheet(noise)]) == to_csv([sheet(rows)])


def test_a_study_shows_its_tables_in_every_form(finished):
    table = finished / "tables/lab.parquet"
    assert "(a) all-MiniLM-L6-v2 stands in for BERT-base" in printed("show", finished)[1]
    assert len(printed("show", finished, "--csv")[1].splitlines()) == 1 + 4 * 4
    assert data("show", finished)[1]["cells"][0]["run"]
    markdown = printed("show", table, "--markdown")[1]
    title, blank, heads = markdown.splitlines()[:3]
    assert title.startswith("**")
    assert blank == ""
    assert heads == "| run | seeds | STS12 | STS16 [1] | STS-B | Avg. |"
    assert len(re.findall(rf"^\| {SIMCSE} \(a,b\) \| 3 \| .* ± .* \|$", markdown, re.MULTILINE)) == 1
    assert "\n\n- mean ± standard deviation" in markdown
    text = printed("show", finished, "--latex")[1]
    comment = text.splitlines()[0]
    assert comment == f"% python -m workflow_scripts show {table} --latex"
    assert printed("show", *comment.split()[5:])[1] == text
    assert r"run & seeds & STS12 & STS16 {[}1{]} & STS-B & Avg. \\" in text
    assert re.search(r" & \d+\.\d\d \$\\pm\$ 0\.\d\d{\*} \(\+", text)


HOSTILE = r"[a] 50% & {x}_$1^2~#\*"


def test_a_papers_value_is_in_every_form_as_in_the_csv():
    one = sheet([row(RUNS[0], published=57.5, published_source="Table 1"), row(RUNS[1])])
    text = "58.10 ± 0.14; paper 57.50"
    assert [cells[-1] for cells in in_rows(one)[1:]] == [text, "58.10 ± 0.14* (+8.12)"]
    assert text.replace("±", r"$\pm$") in latex(one, "")
    assert "57.5" in to_csv([one])
    assert "paper 57.50" in in_terminal(one, 100)


@pytest.mark.parametrize(
    ("written", "printed"),
    [
        ("score >= 0.6, p<=.05", r"score $\geq$ 0.6, p$\leq$.05"),
        ("a < b > c = d", "a $<$ b $>$ c = d"),
        ("--to, a---b", "-{}-to, a-{}-{}-b"),
    ],
)
def test_comparisons_have_the_signs_of_papers(written, printed):
    text = latex(sheet([row("a", labels=[f"substitution: {written}"])], title=written), "show")
    assert text.count(printed) == 2  # title and substitution


def test_signs_and_breaks_of_a_text_end_no_cell_of_markdown():
    """As in GitHub's tables, a vertical line within a cell has a backslash."""
    assert markdown(["P(a|b)"], ["1\n2|3"]) == "| P(a\\|b) |\n| --- |\n| 1 2\\|3 |\n"


def test_signs_of_latex_are_escaped_in_every_text():
    escaped = r"{[}a{]} 50\% \& \{x\}\_\$1\textasciicircum{}2\textasciitilde{}\#\textbackslash{}{*}"
    rows = [row(run, HOSTILE, labels=[HOSTILE], note=HOSTILE) for run in RUNS]
    text = latex(sheet(rows, [HOSTILE], title=HOSTILE, shown={RUNS[1]: HOSTILE}), "show 'a\nb%'")
    assert text.splitlines()[0] == "% show 'a b%'"
    assert HOSTILE not in text
    assert text.count(escaped) == 5  # title, heading, run, substitution and note


def test_a_column_may_have_the_name_of_another():
    alike = latex(sheet([row(run, "seeds") for run in RUNS], ["seeds"]), "")
    lines = [line for line in alike.splitlines() if " & " in line]
    assert lines[0] == r"run & seeds & seeds \\"
    assert {line.count("&") for line in lines} == {2}


def test_measured_columns_are_kept_out_of_the_csv(tmp_path, monkeypatch):
    """The job itself lays them out; the rest is the same experiment without them."""
    monkeypatch.chdir(tmp_path)
    timed = {"heading": "ms", "aggregation": "ivf", "metric": "retrieval_ms", "measured": True, "scale": 1}
    experiment = {
        "title": "A title", "source": "A paper", "seeds": [1], "baseline": None, "suites": {"search": ["sts"]},
        "runs": [{"method": "frozen_cls", "encoder": "mini"}],
        "columns": [COLUMN | timed, COLUMN | {"heading": "A"}],
    }  # fmt: skip
    settings = {"experiment": expanded(experiment), "significance": SIGNIFICANCE}
    table, times = "results/s/tables/t.parquet", "benchmarks/s/tabulate_times/t.parquet"
    scores = [Score("a", "all", "spearman", 0.5, 7), Score("a", "ivf", "retrieval_ms", 1.25, 7)]
    for rule, output, score in zip(("make_table", "tabulate_times"), (table, times), scores, strict=True):
        file = score_file(RUNS[0], [score])
        begin_here(*command(rule, settings, experiment="t", scores=[file], published=[], table=output))
    text = printed("show", table)[1]
    assert "1.25 " in text
    assert "50.00" in text
    assert "[1] measured on this machine" in text
    assert (
        "| run | seeds | ms [1] | A |" in printed("show", table, "--markdown")[1]
    )  # in the order of the grid
    kept = csv.DictReader(io.StringIO(printed("show", table, "--csv")[1]))
    assert [row["heading"] for row in kept] == ["A"]


def score_file(run, scores):
    """Scores of a run below the working directory."""
    file = Path(f"{run}.parquet")
    made = job_record("evaluate_sts", settings={}, inputs={}, outputs=[file])
    write_table(file, score_table(scores, run=run, seed="0", suite="sts"), made)
    return file


@pytest.mark.parametrize(
    ("paths", "message"),
    [
        (["notes.txt"], "not an artefact: it has no record. Choose a file"),
        (["{study}/tables/lba.parquet"], "results/demo/tables/lab.parquet? Or make it: `cd "),
        (["{study}/../dmeo/tables/lab.parquet"], "results/demo? Or make it: `cd "),
        (["demmo"], "Did you mean results/demo? Or make it: `snakemake --cores all --configfile CONFIG`"),
        (["results/demo/tables/lb.parquet"], "Choose from: results/demo/tables/other.parquet. Or make it: `"),
        (["results/demo/tables/othr"], "Did you mean results/demo/tables/other.parquet? Or make it: `"),
        (["{study}", "--columns", "Avg"], "--columns Avg: no such column. Did you mean Avg.?"),
        (["{study}", "--reverse"], "--reverse: nothing is sorted. Add --sort COLUMN."),
        (
            ["{study}", "--to", "x.svg"],
            "--to x.svg: only learning curves are written to a file. Name trainings",
        ),
        (["{study}", "{study}/runs/x"], "/results/demo: a table next to trainings such as"),
        (["{study}/runs/simcse.minilm_mlm"], "no history of a training, and no record below"),
        (["{study}/runs/simcse.minilm_mlm"], f"/results/demo/runs/{SIMCSE}? Or make it: `cd "),
        (
            ["results/demo/runs/unfinished"],
            "results lists one. Make it: `snakemake --cores all --configfile CONFIG -- ",
        ),
        (
            ["{study}/runs/" + SIMCSE, "--to", "x.gif"],
            "--to x.gif: unknown format '.gif'. Name a file that ends in",
        ),
        (["{study}/tables"], "a folder without tables"),
        (["{study}/figures/lab/record.json"], "made by draw_figures, not a table. Choose a study"),
        (
            ["{study}/figures/lab/cosine_density.parquet"],
            "data of a figure, not a table. Read it with pandas.read_parquet.",
        ),
        (["{scores}"], "made by evaluate_sts, not a table. Choose a study"),
    ],
)
def test_a_wrong_call_ends_in_one_line_that_deletes_nothing(finished, tmp_path, monkeypatch, paths, message):
    monkeypatch.chdir(tmp_path)
    Path("notes.txt").write_text("mine")
    Path("results/demo/runs/unfinished/seed1").mkdir(parents=True)
    Path("results/demo/tables").mkdir()
    Path("results/demo/tables/other.parquet").touch()
    scores = score_file("frozen", [gap("sts", "not there")])
    with pytest.raises((ConfigError, DataError)) as refused:
        printed("show", *(path.format(study=finished, scores=scores) for path in paths))
    assert message in str(refused.value)
    assert "Delete" not in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1


# Several


@pytest.fixture
def two_studies(finished, tmp_path, monkeypatch):
    """The tables of two studies of one grid; in the second, SimCSE is five points better."""
    monkeypatch.chdir(tmp_path)
    first, second = (Path(place, "tables/lab.parquet") for place in ("results/demo", "other/results/second"))
    shutil.copytree(finished, first.parent.parent)
    cells = pq.read_table(first)
    better = [
        row["mean"] + 5 if row["run"] == SIMCSE and row["mean"] is not None else row["mean"]
        for row in cells.to_pylist()
    ]
    column = cells.schema.get_field_index("mean")
    write_table(second, cells.set_column(column, "mean", pa.array(better)), read_record(first))
    return first, second


def test_tables_of_two_studies_are_one(two_studies):
    text = printed("show", *two_studies, "--latex")[1]
    words = shlex.split(text.splitlines()[0])
    assert words[5:] == [*map(str, two_studies), "--latex"]
    assert printed("show", *words[5:])[1] == text
    named = re.findall(rf"^{re.escape(SIMCSE).replace('_', '._')} ([^&]*) &", text, re.MULTILINE)
    assert named == ["(demo) (a,b)", "(second) (a,b)"]
    assert len(re.findall(r"^\w.* & .* & ", text, re.MULTILINE)) == 1 + 4 + 1
    beside = printed("show", *two_studies, "--by", "run", "--columns", "STS12", "--markdown")[1]
    assert beside.splitlines()[2] == "| run | seeds | STS12 (demo) | STS12 (second) |"
    assert beside.count(SIMCSE) == 1
    for same in (two_studies[0], two_studies[0].absolute(), "results/../results/demo/tables/lab.parquet"):
        assert printed("show", two_studies[0], same) == printed("show", two_studies[0])


def test_json_has_the_cells_that_are_printed(two_studies):
    rows = data("show", *two_studies, "--sort", "STS12", "--top", "1", "--columns", "STS12")[1]["cells"]
    (best,) = rows
    cells = pq.read_table(two_studies[1]).to_pylist()
    (expected,) = [row for row in cells if row["run"] == SIMCSE and row["heading"] == "STS12"]
    changed = {"run": f"{SIMCSE} (second)", "study": "second", "table": "lab"}
    assert best == expected | changed


def test_learning_curves_of_two_studies_are_one_figure(two_studies):
    """The points of the second are those of its files, by pandas."""
    history = Path("results/demo/runs", SIMCSE, "seed1/history.parquet")
    again = Path("other/results/second/runs", SIMCSE, "seed1/history.parquet")
    write_table(again, pq.read_table(history), read_record(history))
    code, said = data("show", history.parent / "model", again.parent, "--to", "both.svg")
    picture = Path("both.svg").read_text()
    runs = [f"{SIMCSE} ({study})" for study in ("demo", "second")]
    assert 'style="background: white"' in picture
    assert code == 0
    assert said["verdict"] == f"both.svg: 2 trainings of {', '.join(runs)}"
    for text in (*runs, "optimiser steps", "Training loss", "Development score"):
        assert f">{text}</text>" in picture
    scored = pandas.read_parquet(history).dropna(subset="dev_score")
    points = [
        (row["step"], row["value"])
        for row in said["points"]
        if row["metric"] == "dev_score" and row["run"] == runs[1]
    ]
    assert points
    assert points == [*zip(scored["step"], scored["dev_score"], strict=True)]
    for name in ("both.pdf", "both.png"):
        assert data("show", history, "--to", name)[0] == 0
        assert Path(name).stat().st_size > 10_000


def test_a_run_without_training_has_no_curve(finished, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = Path("results/demo/runs/frozen/seed0/model")
    model.mkdir(parents=True)
    for place in (model, model.parent, model.parent.parent):
        with pytest.raises(DataError, match=r"frozen.*: not trained, so without a learning curve"):
            printed("show", place)
    code, said = printed("show", model, finished / "runs" / SIMCSE)
    assert code == 0
    assert said.startswith(f"not trained, so without a learning curve: {model.parent}\nlearning_curves.svg: ")


def test_any_file_of_a_training_leads_to_its_curve(two_studies):
    """Several files of one seed, however they are written, are one training."""
    seed = Path("results/demo/runs", SIMCSE, "seed1")
    of_seed = printed("show", seed)
    for given in (seed / "model", seed / "metrics.parquet", seed / "model/no_such_file", seed.absolute()):
        assert printed("show", seed, given) == of_seed
    assert of_seed == (0, f"learning_curves.svg: 1 training of {SIMCSE}\n")


def test_a_damaged_table_beside_a_training_is_one_line(two_studies):
    """The names of runs are those of the study's tables."""
    two_studies[0].write_bytes(two_studies[0].read_bytes()[:100])
    with pytest.raises(DataError, match=r"lab\.parquet: damaged; its record cannot be read\. Make it again"):
        printed("show", f"results/demo/runs/{SIMCSE}")


def test_tables_are_told_apart_by_the_shortest_text(tmp_path):
    def labels(*names):
        study, table = (lambda path: path.parts[-3]), (lambda path: path.stem)
        return [*told_apart(map(Path, names), study, table).values()]

    assert labels("results/a/tables/t.parquet", "results/b/tables/t.parquet") == ["a", "b"]
    assert labels("results/a/tables/t.parquet", "results/a/tables/u.parquet") == ["t", "u"]
    same = ["results/a/tables/t.parquet", "other/results/a/tables/t.parquet"]
    assert labels(*same) == same


def test_the_documented_lines_of_pandas_give_the_wide_table(two_studies, capsys):
    """The lines of pandas in the documentation give the wide table."""
    shutil.copy(two_studies[0], "results/demo/tables/demo.parquet")
    pages = steps((ROOT / "docs/your_own_study.md").read_text())
    (lines,) = [step.text for step in pages if step.use == "script" and "pivot" in step.text]
    assert len([line for line in lines.splitlines() if line]) == 3
    exec(lines)
    head, _, *rows = capsys.readouterr().out.splitlines()
    cells = pq.read_table(two_studies[0]).to_pylist()
    wide = {(row["run"], row["heading"]): row["mean"] for row in cells}
    headings = head.split()[1:]
    assert {*headings} == {heading for _, heading in wide}
    for run, *values in map(str.split, rows):
        for heading, value in zip(headings, values, strict=True):
            mean = wide[run, heading]
            assert value == "NaN" if mean is None else float(value) == pytest.approx(mean, abs=0.0051)
