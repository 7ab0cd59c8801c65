"""A table's numbers: by hand, against scipy, and with something missing."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.columns.training import METRICS
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.scores import Score, gap, score_table
from workflow_scripts.reporting.published import Printed, of_cells
from workflow_scripts.reporting.records import RunTable
from workflow_scripts.reporting.tables import ScoreFile, build
from workflow_scripts.settings.experiment import Experiment
from workflow_scripts.settings.significance import Config as Significance

SIGNIFICANCE = Significance(alpha=0.05, power=0.8, resamples=100, seed=0)
BASE, OURS, OTHER = "frozen_cls.mini", "simcse.mini.wiki", "s2sent.mini.wiki"
VALUES = {BASE: {0: 0.60}, OURS: {1: 0.70, 2: 0.73, 3: 0.72}, OTHER: {1: 0.71, 2: 0.73, 3: 0.75}}


def grid(baseline=BASE, **changes):
    column = {"heading": "A", "suite": "sts", "task": "a", "aggregation": "all", "metric": "spearman"}
    column |= {"scale": 100, "digits": 2}
    whole = {
        "title": "T",
        "source": "S",
        "seeds": [1, 2, 3],
        "baseline": baseline,
        "suites": {"sts": ["sts"]},
        "runs": [
            {"method": "frozen_cls", "encoder": "mini"},
            {"method": ["simcse", "s2sent"], "encoder": "mini", "corpus": "wiki"},
        ],
        "columns": [column, column | {"heading": "B", "task": "b"}],
    }
    return Experiment.parse(whole | changes, "experiments.t")


def files(values=VALUES, extra=lambda run, seed, value: [Score("b", "all", "spearman", value / 2, 50)]):
    return [
        ScoreFile(
            score_table(
                [Score("a", "all", "spearman", value, 100), *extra(run, seed, value)],
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


def built(experiment=None, given=None, published=None):
    return build(experiment or grid(), given or files(), published or {}, SIGNIFICANCE, "experiments.t")


def test_a_cell_is_mean_and_sample_sd_over_seeds_times_the_scale():
    found = cell(built(), OURS)
    assert found["mean"] == pytest.approx(100 * (0.70 + 0.73 + 0.72) / 3)
    assert found["sd"] == pytest.approx(100 * np.std([0.70, 0.73, 0.72], ddof=1))
    assert (found["seeds"], found["n"], found["note"]) == (3, 100, None)
    assert (found["repeats"], found["values"]) == ([1, 2, 3], pytest.approx([70, 73, 72]))
    assert (found["scale"], found["digits"], found["labels"]) == (100, 2, [f"label of {OURS}"])


def test_rows_come_in_the_order_of_the_grid_whatever_the_order_of_the_files():
    table, backwards = built(), built(given=files()[::-1])
    assert table.schema.equals(TABLE)
    assert list(dict.fromkeys(table["run"].to_pylist())) == [BASE, OURS, OTHER]
    assert table.equals(backwards)


def test_against_an_frozen_baseline_the_test_is_the_one_sample_t_test():
    found = cell(built(), OURS)
    assert found["difference"] == pytest.approx(found["mean"] - 60)
    assert found["p_value"] == pytest.approx(stats.ttest_1samp([70, 73, 72], 60).pvalue)
    assert 0 < found["detectable"] < found["difference"]


def test_against_a_trained_baseline_seeds_are_paired():
    found = cell(built(grid(baseline=OURS)), OTHER)
    assert found["difference"] == pytest.approx(100 * (0.73 - 2.15 / 3))
    assert found["p_value"] == pytest.approx(stats.ttest_rel([0.71, 0.73, 0.75], [0.70, 0.73, 0.72]).pvalue)


def test_a_run_that_is_made_of_trained_ones_is_paired_with_them_by_seed():
    """And has a spread of its own: it is not one number that every seed of the baseline is held against."""
    members = {"method": "frozen_cls", "encoder": "mini", "of_seeds": True}
    runs = [members, *grid().model_dump()["runs"][1:]]
    values = VALUES | {BASE: {1: 0.75, 2: 0.74, 3: 0.79}}
    found = cell(built(grid(baseline=OURS, runs=runs), files(values)), BASE)
    assert found["p_value"] == pytest.approx(stats.ttest_rel([0.75, 0.74, 0.79], [0.70, 0.73, 0.72]).pvalue)
    assert found["sd"] == pytest.approx(100 * np.std([0.75, 0.74, 0.79], ddof=1))


def test_only_seeds_that_both_have_are_compared():
    values = VALUES | {OTHER: {2: 0.73, 3: 0.75, 4: 0.10}}
    found = cell(built(grid(baseline=OURS), files(values)), OTHER)
    assert found["difference"] == pytest.approx(100 * ((0.73 - 0.73) + (0.75 - 0.72)) / 2)


def test_what_is_the_same_for_every_seed_is_not_tested():
    """Numbers of parameters differ, and no seed has a part in that."""
    counts = {run: dict.fromkeys((1, 2, 3), value) for run, value in ((OURS, 0.7), (OTHER, 0.6))}
    found = cell(built(grid(baseline=OURS), files(VALUES | counts)), OTHER)
    assert found["difference"] == pytest.approx(-10.0)
    assert found["p_value"] is None and found["detectable"] is None


def test_one_seed_gives_a_difference_and_neither_sd_nor_p():
    found = cell(built(given=files(VALUES | {OURS: {1: 0.7}})), OURS)
    assert found["difference"] == pytest.approx(10)
    assert (found["sd"], found["p_value"], found["detectable"]) == (None, None, None)


def test_an_frozen_run_stands_against_every_seed_of_a_trained_baseline():
    found = cell(built(grid(baseline=OURS)), BASE)
    assert found["p_value"] == pytest.approx(stats.ttest_1samp([70, 73, 72], 60).pvalue)
    assert found["difference"] < 0


def test_the_baseline_is_not_compared_with_itself_and_without_one_nothing_is_compared():
    assert cell(built(), BASE)["difference"] is None
    table = built(grid(baseline=None))
    assert table["difference"].null_count == table["p_value"].null_count == len(table)


def test_a_gap_keeps_its_reason_and_makes_every_average_over_it_a_gap():
    experiment = grid(
        columns=[
            *(column.model_dump() for column in grid().columns),
            {"heading": "Avg.", "mean_of": ["A", "B"], "digits": 2},
        ]
    )
    table = built(experiment, files(extra=lambda *_: [gap("b", "nobody has it")]))
    assert cell(table, OURS, "A")["mean"] is not None
    for heading, note in {"B": "nobody has it", "Avg.": "needs B"}.items():
        found = cell(table, OURS, heading)
        assert (found["mean"], found["seeds"], found["note"]) == (None, 0, note)
        assert found["difference"] is None


def test_an_average_is_taken_seed_by_seed():
    """The sd of an average is that of the seeds' averages, which is no average of sds."""
    experiment = grid(
        columns=[
            *(column.model_dump() for column in grid().columns),
            {"heading": "Avg.", "mean_of": ["A", "B"], "digits": 2},
        ]
    )
    opposite = files(extra=lambda run, seed, value: [Score("b", "all", "spearman", 1 - value, 50)])
    found = cell(built(experiment, opposite), OURS, "Avg.")
    assert found["mean"] == pytest.approx(50)
    assert found["sd"] == pytest.approx(0, abs=1e-9)
    assert cell(built(experiment, opposite), OURS, "A")["sd"] > 1


def with_columns(*more, **changes):
    return grid(columns=[*(column.model_dump() for column in grid().columns), *more], **changes)


def test_scores_of_trained_runs_on_their_development_set_are_noted():
    experiment = with_columns({"heading": "Avg.", "mean_of": ["A", "B"], "digits": 2})
    table = build(experiment, files(), {}, SIGNIFICANCE, "experiments.t", development="a")
    notes = {
        (run, heading): cell(table, run, heading)["note"]
        for run in (BASE, OURS)
        for heading in ("A", "B", "Avg.")
    }
    chosen = "of the set by which checkpoints were chosen"
    assert notes == dict.fromkeys(notes) | {(OURS, "A"): chosen, (OURS, "Avg."): chosen}


def test_an_average_over_fewer_seeds_says_so():
    """By hand: of OURS, seeds 1 and 3 have both columns: 70, 35 and 72, 36, with averages 52.5 and 54."""

    def lost(run, seed, value):
        return [gap("b", "lost") if seed == 2 else Score("b", "all", "spearman", value / 2, 50)]

    found = cell(
        built(with_columns({"heading": "Avg.", "mean_of": ["A", "B"], "digits": 2}), files(extra=lost)),
        OURS,
        "Avg.",
    )
    assert (found["mean"], found["seeds"]) == (pytest.approx(53.25), 2)
    assert found["note"] == "over 2 of 3 seeds, which B has"


def test_a_ratio_is_taken_seed_by_seed():
    """B is half of A for every seed, so the sd of A over B is 0 while both have one."""
    table = built(with_columns({"heading": "A / B", "ratio_of": ["A", "B"], "digits": 2}))
    found = cell(table, OURS, "A / B")
    assert (found["mean"], found["seeds"], found["n"]) == (pytest.approx(2), 3, 100)
    assert found["sd"] == pytest.approx(0, abs=1e-9)
    assert (found["task"], found["metric"]) == ("A over B", "spearman")


def test_a_gain_is_the_difference_to_the_baseline_seed_by_seed():
    """By hand: .71 - .70, .73 - .73 and .75 - .72, in points; OURS itself is compared with nothing."""
    table = built(with_columns({"heading": "gain", "gain_of": "A", "digits": 2}, baseline=OURS))
    found = cell(table, OTHER, "gain")
    assert found["mean"] == pytest.approx((1 + 0 + 3) / 3)
    assert found["sd"] == pytest.approx(np.std([1, 0, 3], ddof=1))
    assert found["task"] == "A less that of the baseline"
    itself = cell(table, OURS, "gain")
    assert (itself["mean"], itself["note"]) == (None, "nothing that it is compared with")


def test_a_gain_over_a_frozen_baseline_is_that_of_every_seed():
    found = cell(built(with_columns({"heading": "gain", "gain_of": "A", "digits": 2})), OURS, "gain")
    assert (found["mean"], found["seeds"]) == (pytest.approx((10 + 13 + 12) / 3), 3)


def test_a_gain_is_over_the_seeds_of_the_difference_where_the_baseline_has_gaps():
    """It has seed 1 alone, which is no value for the others: .71 - .70."""
    given = files(VALUES | {OURS: {1: 0.70}})
    table = built(with_columns({"heading": "gain", "gain_of": "A", "digits": 2}, baseline=OURS), given)
    gain = cell(table, OTHER, "gain")
    assert (gain["mean"], gain["seeds"]) == (pytest.approx(1.0), 1)
    assert cell(table, OTHER)["difference"] == pytest.approx(1.0)


def test_a_ratio_over_nothing_is_a_gap():
    given = files(extra=lambda run, seed, value: [Score("b", "all", "spearman", 0.0, 50)])
    table = built(with_columns({"heading": "A / B", "ratio_of": ["A", "B"], "digits": 2}), given)
    found = cell(table, OURS, "A / B")
    assert (found["mean"], found["seeds"], found["note"]) == (None, 0, "B is 0")


def test_a_ratio_or_gain_of_a_mean_is_that_of_the_mean():
    mean = {"heading": "Avg.", "mean_of": ["A", "B"], "digits": 2}
    ratio = {"heading": "r", "ratio_of": ["Avg.", "A"], "digits": 2}
    gain = {"heading": "g", "gain_of": "Avg.", "digits": 2}
    table = built(with_columns(ratio, gain, mean))
    assert cell(table, OURS, "r")["mean"] == pytest.approx(0.75)
    assert cell(table, OURS, "g")["mean"] == pytest.approx(0.75 * (10 + 13 + 12) / 3)


def test_a_path_shows_a_metric_of_training_at_one_step():
    def history(run, seed, value):
        rows = [
            {"step": step, "metric": metric, "value": value + step / 100}
            for step in (1, 2, 3)
            for metric in ("threshold", "other")
        ]
        return RunTable(run, seed, pa.Table.from_pylist(rows, schema=METRICS))

    histories = [history(OURS, seed, seed / 10) for seed in (2, 1, 3)]
    paths = [{"heading": f"c {step}", "path_of": "threshold", "step": step, "digits": 3} for step in (2, 4)]
    table = build(with_columns(*paths), files(), {}, SIGNIFICANCE, "experiments.t", histories)
    found = cell(table, OURS, "c 2")
    assert (found["mean"], found["seeds"], found["n"]) == (pytest.approx(0.22), 3, 1)
    assert (found["suite"], found["task"], found["metric"]) == ("training", "step 2", "threshold")
    for run, heading, step in ((OURS, "c 4", 4), (OTHER, "c 2", 2)):
        gap_of = cell(table, run, heading)
        assert (gap_of["mean"], gap_of["note"]) == (None, f"its training has no threshold of step {step}")


def test_an_aggregation_that_a_source_cannot_give_is_a_gap_that_says_so():
    column = grid().columns[0].model_dump() | {"aggregation": "wmean"}
    found = cell(built(grid(columns=[column])), OURS)
    assert (found["mean"], found["note"]) == (None, "a has no aggregation wmean; has all")


MEASURED = {"heading": "ms", "suite": "sts", "task": "a", "aggregation": "batch:2", "metric": "latency_ms"}
MEASURED |= {"measured": True, "scale": 1, "digits": 1}


def with_times():
    columns = [column.model_dump() for column in grid().columns]
    return grid(columns=[columns[0], MEASURED, columns[1]])


def test_measured_columns_are_a_table_of_their_own_and_say_so():
    experiment = with_times()
    times = files(extra=lambda run, seed, value: [Score("a", "batch:2", "latency_ms", 3.0, 20, "cpu")])
    table = built(experiment.part(measured=True), times)
    assert set(table["heading"].to_pylist()) == {"ms"}
    found = cell(table, OURS, "ms")
    assert (found["mean"], found["seeds"], found["difference"]) == (3.0, 3, 0.0)
    assert found["note"] == "measured on this machine; cpu"
    assert built(experiment.part(measured=False)).equals(built())


def blocks(**ours):
    trained = {"encoder": "mini", "corpus": "wiki"}
    return [
        {"method": "frozen_cls", "encoder": "mini"},
        {"method": "simcse", **trained},
        {"method": "s2sent", **trained, **ours},
    ]


def test_each_row_is_tested_against_the_baseline_of_its_block():
    table = built(grid(runs=blocks(baseline=OURS)))
    assert [cell(table, run)["baseline"] for run in (BASE, OURS, OTHER)] == [None, BASE, OURS]
    assert cell(table, OTHER) == cell(built(grid(baseline=OURS)), OTHER)
    assert cell(table, OURS) == cell(built(), OURS)


def test_seeds_scored_on_different_data_are_refused():
    given = files()
    short = given[-1].scores.to_pylist()
    short[0]["n"] = 99
    given[-1] = given[-1]._replace(scores=pa.Table.from_pylist(short, schema=given[-1].scores.schema))
    with pytest.raises(DataError, match=r"different data, n \[99, 100\]"):
        built(given=given)


def test_two_values_for_one_seed_are_refused():
    with pytest.raises(DataError, match="two values for one seed"):
        built(given=[*files(), files()[-1]])


def test_published_numbers_stand_in_their_cells():
    content = (
        "source,heading,row,column,run,value,grid\n"
        f"Table 1,A,BERT,A,{OURS},76.25,t\nTable 1,,BERT large,A,,78.00,\nTable 1,A,BERT,A,{OURS},75.00,another\n"
        f"Table 1,figure: sweep,BERT,A,{OURS},75.00,t\n"
    )
    numbers = of_cells({"published/t.csv": content.encode()}, grid().cells(), "t")
    assert numbers == {(OURS, "A"): Printed("t", "", "BERT", "A", 76.25, "t", OURS, "A", "Table 1")}
    table = built(published=numbers)
    assert (cell(table, OURS)["published"], cell(table, OURS)["published_source"]) == (76.25, "Table 1")
    assert table["published"].null_count == len(table) - 1


NAMES = "row,column,grid,run,heading,value,source\n"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"row,column,grid,run,heading,value\nr,c,t,{OURS},A,1\n", "source"),
        (f"row,column,run,heading,value,source\nr,c,{OURS},A,1,x\n", "grid"),
        (f"{NAMES}r,c,t,{OURS},C,1,x\n", "r, c: .*heading C: not in the grid"),
        (f"{NAMES}r,c,t,{OURS},A,1,x\nr,d,t,{OURS},A,2,x\n", "r, d: has two values"),
        (f"{NAMES}r,c,t,{OURS},A,n/a?,x\n", r"row 1: value n/a\? is no number"),
        ("{NAMES}r,c,t,\u00e9,A,1,x\n".encode("latin-1"), "no CSV in UTF-8"),
        (f"{NAMES}r,c,t,{OURS},A,,x\n", "r, c: has no value"),
        (f"{NAMES},t,r,c,{OURS},A,1,x\n", "row 1 has more cells than the header"),
    ],
)
def test_published_files_that_do_not_fit_are_refused(content, message):
    content = content if isinstance(content, bytes) else content.encode()
    with pytest.raises(DataError, match=f"^(published/t.csv|t): .*{message}"):
        of_cells({"published/t.csv": content}, grid().cells(), "t")


def test_two_numbers_for_one_cell_are_refused_unless_they_agree():
    first, second = (f"{NAMES}r,c,t,{OURS},A,{value},x\n".encode() for value in (1, 2))
    with pytest.raises(DataError, match="second: r, c: has two values"):
        of_cells({"first.csv": first, "second.csv": second}, grid().cells(), "t")
    numbers = of_cells({"first.csv": first, "second.csv": first.replace(b",x", b",y")}, grid().cells(), "t")
    assert numbers[OURS, "A"][4:] == (1, "t", OURS, "A", "x")


@pytest.mark.parametrize(
    ("more", "changes", "message"),
    [
        ([{"heading": "r", "ratio_of": ["A", "C"], "digits": 2}], {}, "ratio_of: C is not defined"),
        ([{"heading": "g", "gain_of": "C", "digits": 2}], {}, "gain_of: C is not defined"),
        ([MEASURED, {"heading": "m", "mean_of": ["A", "ms"], "digits": 2}], {}, "mean_of: ms is not defined"),
        ([MEASURED], {"headline": "ms"}, "headline: ms is not defined"),
        ([grid().columns[0].model_dump()], {}, "heading: another column has that heading"),
    ],
)
def test_columns_of_a_grid_are_checked(more, changes, message):
    with pytest.raises(ConfigError, match=message):
        with_columns(*more, **changes)


def test_a_run_without_scores_is_an_error():
    with pytest.raises(DataError, match=f"no scores of run {OTHER} on sts"):
        built(given=files({run: VALUES[run] for run in (BASE, OURS)}))
