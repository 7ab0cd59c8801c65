"""A table's numbers: by hand, against scipy, and with something missing."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from workflow_scripts.columns import HISTORY, METRICS, SCORES, TABLE
from workflow_scripts.data.printed import Printed, cell_numbers
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.base import Score, gap, score_table
from workflow_scripts.reporting.records import RunTable
from workflow_scripts.reporting.tables import best_runs, build
from workflow_scripts.settings.grids import GridBlock
from workflow_scripts.settings.report import Significance

SIGNIFICANCE = Significance(alpha=0.05, power=0.8, resamples=100, seed=0)
BASE, OURS, OTHER = "frozen_cls.mini", "simcse.mini.wiki", "s2sent.mini.wiki"
VALUES = {BASE: {0: 0.60}, OURS: {1: 0.70, 2: 0.73, 3: 0.72}, OTHER: {1: 0.71, 2: 0.73, 3: 0.75}}
SCORE = {"suite": "sts", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
A, B = {"heading": "A", "task": "a", **SCORE}, {"heading": "B", "task": "b", **SCORE}
MEAN = {"heading": "Avg.", "mean_of": ["A", "B"], "digits": 2}
RATIO = {"heading": "A / B", "ratio_of": ["A", "B"], "digits": 2}
GAIN = {"heading": "gain", "gain_of": "A", "digits": 2}
MEASURED = {"heading": "ms", "suite": "sts", "task": "a", "aggregation": "batch:2", "metric": "latency_ms"}
MEASURED |= {"measured": True, "scale": 1, "digits": 1}
TRAINED = {"encoder": "mini", "corpus": "wiki"}


def grid(*columns, **changes):
    whole = {"title": "T", "source": "S", "seeds": [1, 2, 3], "baseline": BASE, "suites": {"sts": ["sts"]}}
    runs = [{"method": "frozen_cls", "encoder": "mini"}, {"method": ["simcse", "s2sent"], **TRAINED}]
    return GridBlock.strictly(whole | {"runs": runs, "columns": [A, B, *columns]} | changes).experiment


def half(value, seed):
    return Score("b", "all", "spearman", value / 2, 50)


def files(values=VALUES, extra=half):
    return [
        (
            score_table(
                [Score("a", "all", "spearman", value, 100), extra(value, seed)],
                run=run,
                seed=str(seed),
                suite="sts",
            ),
            [f"label of {run}"],
        )
        for run, seeds in values.items()
        for seed, value in seeds.items()
    ]


def cell(table, run, heading="A"):
    return next(row for row in table.to_pylist() if (row["run"], row["heading"]) == (run, heading))


def built(experiment=None, given=None, published=None, **more):
    return build(
        experiment or grid(), given or files(), published or {}, SIGNIFICANCE, "experiments.t", **more
    )


SD, PAIRED = np.std([70, 73, 72], ddof=1), stats.ttest_rel([71, 73, 75], [70, 73, 72]).pvalue
ONE_SAMPLE = stats.ttest_1samp([70, 73, 72], 60).pvalue
OF_SEEDS = [
    {"method": "frozen_cls", "encoder": "mini", "per_seed": True},
    {"method": ["simcse", "s2sent"], **TRAINED},
]
HAS_SEEDS = VALUES | {BASE: {1: 0.75, 2: 0.74, 3: 0.79}}
COUNTS = VALUES | {OURS: dict.fromkeys((1, 2, 3), 0.7), OTHER: dict.fromkeys((1, 2, 3), 0.6)}
UNTESTED = {"sd": None, "p_value": None, "detectable": None}
BY_HAND = {
    "mean and sample sd over seeds, times the scale": (
        grid(), files(), (OURS, "A"),
        {"mean": 215 / 3, "sd": SD, "seeds": 3, "n": 100, "note": None, "repeats": [1, 2, 3], "values": [70, 73, 72],
         "scale": 100, "digits": 2, "labels": [f"label of {OURS}"]},
    ),
    "a frozen baseline: one-sample t-test": (
        grid(), files(), (OURS, "A"), {"difference": 215 / 3 - 60, "p_value": ONE_SAMPLE, "baseline": BASE},
    ),
    "a frozen run against every seed of its baseline": (
        grid(baseline=OURS), files(), (BASE, "A"), {"difference": 60 - 215 / 3, "p_value": ONE_SAMPLE},
    ),
    "a trained baseline: paired by seed": (
        grid(baseline=OURS), files(), (OTHER, "A"), {"difference": 73 - 215 / 3, "p_value": PAIRED},
    ),
    "a run that is made of trained ones has their seeds": (
        grid(baseline=OURS, runs=OF_SEEDS), files(HAS_SEEDS), (BASE, "A"),
        {"p_value": stats.ttest_rel([75, 74, 79], [70, 73, 72]).pvalue, "sd": np.std([75, 74, 79], ddof=1)},
    ),
    "seeds that both have": (
        grid(baseline=OURS), files(VALUES | {OTHER: {2: 0.73, 3: 0.75, 4: 0.10}}), (OTHER, "A"), {"difference": 1.5},
    ),
    "what is the same for every seed is not tested, as parameters": (
        grid(baseline=OURS), files(COUNTS), (OTHER, "A"), UNTESTED | {"difference": -10, "sd": 0},
    ),
    "one seed": (grid(), files(VALUES | {OURS: {1: 0.7}}), (OURS, "A"), UNTESTED | {"difference": 10}),
    "the baseline itself": (grid(), files(), (BASE, "A"), {"difference": None, "baseline": None}),
    "no baseline": (grid(baseline=None), files(), (OTHER, "A"), {"difference": None, "p_value": None}),
    "the baseline of a block": (
        grid(runs=[{"method": "frozen_cls", "encoder": "mini"}, {"method": "simcse", **TRAINED},
                   {"method": "s2sent", **TRAINED, "baseline": OURS}]),
        files(), (OTHER, "A"), {"baseline": OURS, "p_value": PAIRED},
    ),
    "a gap and its reason": (
        grid(MEAN), files(extra=lambda *_: gap("b", "nobody has it")), (OURS, "B"),
        {"mean": None, "seeds": 0, "note": "nobody has it", "difference": None},
    ),
    "an average over a gap": (
        grid(MEAN), files(extra=lambda *_: gap("b", "nobody has it")), (OURS, "Avg."),
        {"mean": None, "seeds": 0, "note": "needs B", "difference": None},
    ),
    "an average seed by seed, whose sd is no average of sds": (
        grid(MEAN), files(extra=lambda value, _: Score("b", "all", "spearman", 1 - value, 50)), (OURS, "Avg."), {"mean": 50, "sd": 0, "n": 150, "task": "mean of A, B"},
    ),
    "an average over the seeds 1 and 3: of 52.5 and 54": (
        grid(MEAN), files(extra=lambda value, seed: gap("b", "lost") if seed == 2 else half(value, seed)), (OURS, "Avg."),
        {"mean": 53.25, "seeds": 2, "note": "over 2 of 3 seeds, which B has"},
    ),
    "a ratio seed by seed": (
        grid(RATIO), files(), (OURS, "A / B"),
        {"mean": 2, "sd": 0, "seeds": 3, "n": 100, "task": "A over B", "metric": "spearman", "scale": None},
    ),
    "a ratio over nothing": (
        grid(RATIO), files(extra=lambda *_: Score("b", "all", "spearman", 0.0, 50)), (OURS, "A / B"),
        {"mean": None, "seeds": 0, "note": "B is 0"},
    ),
    "a ratio of a mean": (
        grid({"heading": "r", "ratio_of": ["Avg.", "A"], "digits": 2}, MEAN), files(), (OURS, "r"), {"mean": 0.75},
    ),
    "a gain of a mean": (
        grid({"heading": "g", "gain_of": "Avg.", "digits": 2}, MEAN), files(), (OURS, "g"), {"mean": 0.75 * 35 / 3},
    ),
    "a gain seed by seed: .71 - .70, .73 - .73 and .75 - .72": (
        grid(GAIN, baseline=OURS), files(), (OTHER, "gain"),
        {"mean": 4 / 3, "sd": np.std([1, 0, 3], ddof=1), "task": "A less that of the baseline"},
    ),
    "a gain without a baseline": (
        grid(GAIN, baseline=OURS), files(), (OURS, "gain"), {"mean": None, "note": "no baseline"},
    ),
    "a gain over a frozen baseline": (grid(GAIN), files(), (OURS, "gain"), {"mean": 35 / 3, "seeds": 3}),
    "a gain over a baseline with seed 1 alone, which is no value for the others": (
        grid(GAIN, baseline=OURS), files(VALUES | {OURS: {1: 0.70}}), (OTHER, "gain"), {"mean": 1, "seeds": 1},
    ),
    "an aggregation that a source cannot give": (
        grid(columns=[A | {"aggregation": "wmean"}]), files(), (OURS, "A"),
        {"mean": None, "note": "a has no aggregation wmean; has all"},
    ),
    "a measured column": (
        grid(MEASURED).part(measured=True),
        files(extra=lambda *_: Score("a", "batch:2", "latency_ms", 3.0, 20, "cpu")), (OURS, "ms"),
        {"mean": 3, "seeds": 3, "difference": 0, "note": "measured on this machine; cpu"},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("experiment", "given", "place", "expected"), BY_HAND.values(), ids=BY_HAND)
def test_a_cell_is_as_worked_out_by_hand(experiment, given, place, expected):
    found = cell(built(experiment, given), *place)
    for name, value in expected.items():
        text = value is None or isinstance(value, str) or value == [f"label of {OURS}"]
        assert found[name] == (value if text else pytest.approx(value, abs=1e-9)), name


def test_rows_come_in_the_order_of_the_grid():
    """Rows come in the order of the grid whatever the order of the files."""
    table = built()
    assert table.schema.equals(TABLE)
    assert table.equals(built(given=files()[::-1]))
    assert list(dict.fromkeys(table["run"].to_pylist())) == [BASE, OURS, OTHER]
    assert built(grid(MEASURED).part(measured=False)).equals(table)
    chosen = {
        (row["run"], row["heading"])
        for row in built(grid(MEAN), development=["a"]).to_pylist()
        if row["note"]
    }
    assert chosen == {(run, heading) for run in (OURS, OTHER) for heading in ("A", "Avg.")}  # CHOSEN_BY


def test_scores_of_a_checkpoint_that_few_pairs_chose_have_a_note():
    """A hundred pairs are enough; a run that is not trained chose nothing."""
    table = built(grid(MEAN), pairs={OURS: 3, OTHER: 100}).to_pylist()
    noted = {(row["run"], row["heading"]) for row in table if row["note"]}
    assert noted == {(OURS, row["heading"]) for row in table if row["run"] == OURS and row["seeds"]}
    assert cell(built(pairs={OURS: 3}), OURS)["note"] == "its checkpoint was chosen by 3 pairs"


def test_a_path_shows_a_metric_of_training_at_one_step():
    steps, metrics = [1, 1, 2, 2, 3, 3], ["threshold", "other"] * 3
    values = {seed: [seed / 10 + step / 100 for step in steps] for seed in (2, 1, 3)}
    histories = [
        RunTable(OURS, seed, pa.table([steps, metrics, of_seed], schema=METRICS))
        for seed, of_seed in values.items()
    ]
    paths = [{"heading": f"c {step}", "path_of": "threshold", "step": step, "digits": 3} for step in (2, 4)]
    table = built(grid(*paths), histories=histories)
    found, expected = cell(table, OURS, "c 2"), {"seeds": 3, "n": 1, "suite": "training", "task": "step 2"}
    assert found["mean"] == pytest.approx(0.22)
    assert found["metric"] == "threshold"
    assert {name: found[name] for name in expected} == expected
    for run, heading, step in ((OURS, "c 4", 4), (OTHER, "c 2", 2)):
        assert cell(table, run, heading)["note"] == f"its training has no threshold of step {step}"


def test_a_run_that_cannot_be_made_is_a_row_of_gaps():
    """The other rows are those of the table without it; what is compared with it has no difference."""
    given = files({run: seeds for run, seeds in VALUES.items() if run != OURS})
    table = built(grid(MEAN, RATIO, GAIN, baseline=OURS), given, gaps={OURS: "no corpus"}, development=["a"])
    assert len(table) == 3 * 5
    for heading in ("A", "B", "Avg.", "A / B", "gain"):
        found = cell(table, OURS, heading)
        empty = {"mean": None, "seeds": 0, "n": 0, "values": [], "difference": None}
        assert {name: found[name] for name in empty} == empty
        assert found["note"] == "no corpus"
        assert found["labels"] == ["gap: no corpus"]
    others = built(grid(MEAN, RATIO, GAIN, baseline=None))
    for heading in ("A", "Avg.", "A / B"):
        assert cell(table, OTHER, heading)["values"] == cell(others, OTHER, heading)["values"]
        assert cell(table, OTHER, heading)["difference"] is None
    assert cell(table, OTHER, "gain")["mean"] is None


def test_a_table_whose_runs_all_cannot_be_made_is_made_of_gaps():
    table = built(given=[(SCORES.empty_table(), [])], gaps=dict.fromkeys((BASE, OURS, OTHER), "no data root"))
    assert len(table) == 6
    assert set(table["note"].to_pylist()) == {"no data root"}


def test_a_cell_has_the_labels_of_the_suites_that_it_shows():
    """A substitution in one suite says nothing about the scores of another."""
    more = [
        (
            score_table([Score("c", "", "accuracy", 0.5, 10)], run=run, seed=str(seed), suite="texts"),
            ["fewer texts"],
        )
        for run, seeds in VALUES.items()
        for seed in seeds
    ]
    other = {
        "heading": "C",
        "task": "c",
        "suite": "texts",
        "aggregation": "",
        "metric": "accuracy",
        "scale": 100,
        "digits": 1,
    }
    asked = grid(
        other,
        MEAN,
        {"heading": "both", "mean_of": ["A", "C"], "digits": 1},
        suites={"sts": ["sts"], "clustering": ["texts"]},
    )
    table = built(asked, [*files(), *more])
    assert cell(table, OURS, "A")["labels"] == cell(table, OURS, "Avg.")["labels"] == [f"label of {OURS}"]
    assert cell(table, OURS, "C")["labels"] == ["fewer texts"]
    assert cell(table, OURS, "both")["labels"] == ["fewer texts", f"label of {OURS}"]


def test_seeds_of_different_data_are_refused():
    *before, (last, labels) = files()
    shorter = last.set_column(
        last.schema.get_field_index("n"), "n", pa.array([99, 50], last.schema.field("n").type)
    )
    with pytest.raises(DataError, match=r"experiments.t.columns, A: .*different data, n \[99, 100\]"):
        built(given=[*before, (shorter, labels)])


NAMES = "row,column,grid,run,heading,value,source\n"


def test_published_numbers_are_in_their_cells():
    lines = [
        f"BERT,A,t,{OURS},A,76.25,Table 1",
        "BERT large,A,,,,78.00,Table 1",
        f"BERT,A,another,{OURS},A,75.00,x",
        f"BERT,A,t,{OURS},figure: sweep,75.00,x",
        f"c,d,t,{OURS},A,76.25,y",
    ]
    numbers = cell_numbers({"published/t.csv": (NAMES + "\n".join(lines)).encode()}, grid().cells(), "t")
    assert numbers == {(OURS, "A"): Printed("t", "", "BERT", "A", 76.25, "t", OURS, "A", "Table 1")}
    shown = [row for row in built(published=numbers).to_pylist() if row["published"] is not None]
    found = [(row["run"], row["heading"], row["published"], row["published_source"]) for row in shown]
    assert found == [(OURS, "A", 76.25, "Table 1")]


def test_numbers_of_other_grids_are_shown_in_their_cells():
    """Numbers of other grids are shown in cells of their run and heading."""
    lines = [f"r,c,paper,{OURS},A,76.25,x", "r,d,paper,other,A,70,x", f"r,c,t,{OURS},A,1,x"]
    contents = {"published/t.csv": (NAMES + "\n".join(lines)).encode()}
    numbers = cell_numbers(contents, grid().cells(), "t", ["paper"])
    assert {key: number.value for key, number in numbers.items()} == {(OURS, "A"): 76.25}
    with pytest.raises(
        DataError, match=r"^experiments\.t: printed_in: papre has no printed number .* Remove it"
    ):
        cell_numbers(contents, grid().cells(), "t", ["paper", "papre"])


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"row,column,grid,run,heading,value\nr,c,t,{OURS},A,1\n", "source"),
        (f"row,column,run,heading,value,source\nr,c,{OURS},A,1,x\n", "grid"),
        (f"{NAMES}r,c,t,{OURS},C,1,x\n", "r, c: .*heading C: not in the grid"),
        (f"{NAMES}r,c,t,{OURS},A,1,x\nr,d,t,{OURS},A,2,x\n", "r, d: has two values"),
        (f"{NAMES}r,c,t,{OURS},A,n/a?,x\n", r"row 1: value 'n/a\?' is not a number"),
        (f"{NAMES}r,c,t,\u00e9,A,1,x\n", "not CSV in UTF-8"),
        (f"{NAMES}r,c,t,{OURS},A,,x\n", "r, c: has no value"),
        (f"{NAMES},t,r,c,{OURS},A,1,x\n", "row 1 has more cells than the header"),
        ("", "the header has no row, column, grid"),
        (f"value,{NAMES}1,r,c,t,{OURS},A,2,x\n", "column 'value' occurs twice"),
        *(
            (f"{NAMES}r,c,t,{OURS},A,{value},x\n", f"row 1: value '{value}' is not a number")
            for value in ("nan", "-inf", "1_0")
        ),
    ],
)
def test_published_files_that_do_not_fit_are_refused(content, message):
    with pytest.raises(DataError, match=f"^(published/t.csv|t): .*{message}"):
        cell_numbers({"published/t.csv": content.encode("latin-1")}, grid().cells(), "t")


def history(run, seed, *dev_scores):
    rows = [
        {"step": step, "loss": 1.0, "learning_rate": 0.1, "gradient_norm": 1.0, "dev_score": score}
        for step, score in enumerate(dev_scores, start=1)
    ]
    return RunTable(run, seed, pa.Table.from_pylist(rows, schema=HISTORY))


def test_a_block_shows_its_best_run_and_says_so():
    """Means over seeds of the best evaluations are .5 and .55; the worse run has the better score on the test set."""
    blocks = [
        {"method": "frozen_cls", "encoder": "mini"},
        {"method": ["simcse", "s2sent"], **TRAINED, "show_best": True},
    ]
    experiment = grid(runs=blocks)
    histories = [
        history(OTHER, 1, 0.2, None, 0.5),
        history(OTHER, 2, 0.5, 0.1),
        history(OURS, 1, 0.6, 0.3),
        history(OURS, 2, 0.5),
    ]
    best = best_runs(experiment, histories)
    assert best == {OURS: "the best of 2 runs by the development score, 0.5500"}
    table = built(experiment, best=best)
    assert table["run"].unique().to_pylist() == [BASE, OURS]
    assert best[OURS] in cell(table, OURS)["note"]
    assert best[OURS] not in (cell(table, BASE)["note"] or "")


def test_without_a_training_no_run_is_the_best():
    """Where all runs of a block are gaps, their rows stay."""
    experiment = grid(runs=[{"method": ["simcse", "s2sent"], **TRAINED, "show_best": True}], baseline=None)
    assert best_runs(experiment, []) == {}
