"""A table's numbers: by hand, against scipy, and with something missing."""

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.scores import Score, gap, score_table
from workflow_scripts.evaluation.significance import Config as Significance
from workflow_scripts.reporting.experiment import Experiment
from workflow_scripts.reporting.tables import Published, ScoreFile, build, read_published
from workflow_scripts.schemas import TABLE

SIGNIFICANCE = Significance(alpha=0.05, power=0.8, permutations=1000, resamples=100, seed=0)
BASE, OURS, OTHER = "untrained_cls.mini", "simcse.mini.wiki", "s2sent.mini.wiki"
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
            {"method": "untrained_cls", "encoder": "mini"},
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


def test_rows_come_in_the_order_of_the_grid_whatever_the_order_of_the_files():
    table, backwards = built(), built(given=files()[::-1])
    assert table.schema.equals(TABLE)
    assert list(dict.fromkeys(table["run"].to_pylist())) == [BASE, OURS, OTHER]
    assert table.equals(backwards)


def test_against_an_untrained_baseline_the_test_is_the_one_sample_t_test():
    found = cell(built(), OURS)
    assert found["difference"] == pytest.approx(found["mean"] - 60)
    assert found["p_value"] == pytest.approx(stats.ttest_1samp([70, 73, 72], 60).pvalue)
    assert 0 < found["detectable"] < found["difference"]


def test_against_a_trained_baseline_seeds_are_paired():
    found = cell(built(grid(baseline=OURS)), OTHER)
    assert found["difference"] == pytest.approx(100 * (0.73 - 2.15 / 3))
    assert found["p_value"] == pytest.approx(stats.ttest_rel([0.71, 0.73, 0.75], [0.70, 0.73, 0.72]).pvalue)


def test_only_seeds_that_both_have_are_compared():
    values = VALUES | {OTHER: {2: 0.73, 3: 0.75, 4: 0.10}}
    found = cell(built(grid(baseline=OURS), files(values)), OTHER)
    assert found["difference"] == pytest.approx(100 * ((0.73 - 0.73) + (0.75 - 0.72)) / 2)


def test_one_seed_gives_a_difference_and_neither_sd_nor_p():
    found = cell(built(given=files(VALUES | {OURS: {1: 0.7}})), OURS)
    assert found["difference"] == pytest.approx(10)
    assert (found["sd"], found["p_value"], found["detectable"]) == (None, None, None)


def test_an_untrained_run_stands_against_every_seed_of_a_trained_baseline():
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


def test_labels_stay_with_the_runs_they_reached():
    assert cell(built(), OURS)["labels"] == [f"label of {OURS}"]


def test_an_aggregation_that_a_source_cannot_give_is_a_gap_that_says_so():
    column = grid().columns[0].model_dump() | {"aggregation": "wmean"}
    found = cell(built(grid(columns=[column])), OURS)
    assert (found["mean"], found["note"]) == (None, "a has no aggregation wmean; has all")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"task": "sts21"}, "suite sts has no scores of sts21; has a, b"),
        ({"metric": "sperman"}, "task a has no metric sperman; has spearman"),
        ({"suite": "sst"}, "suite sst has no scores of a; has no tasks"),
    ],
)
def test_a_column_that_nothing_fills_is_an_error_that_names_it(change, message):
    column = grid().columns[0].model_dump() | change
    with pytest.raises(ConfigError, match=f"experiments.t.columns, A: {message}"):
        built(grid(columns=[column]))


def test_a_baseline_outside_the_grid_is_an_error():
    with pytest.raises(ConfigError, match=r"experiments\.t\.baseline: simcse\.large is no run of the grid"):
        built(grid(baseline="simcse.large"))


def test_a_run_without_scores_is_an_error():
    with pytest.raises(DataError, match=f"no scores of run {OTHER} on sts"):
        built(given=files({run: VALUES[run] for run in (BASE, OURS)}))


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


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (
            [{"heading": "Avg.", "mean_of": ["A", "C"], "digits": 2}],
            "averages .'A', 'C'., no columns of scores",
        ),
        ([grid().columns[0].model_dump()] * 2, "a heading stands twice"),
    ],
)
def test_headings_of_a_grid_are_checked(columns, message):
    with pytest.raises(ConfigError, match=message):
        grid(columns=columns)


def test_a_headline_must_be_a_heading():
    assert grid(headline="B").headline_column().heading == "B"
    assert grid().headline_column().heading == "A"
    with pytest.raises(ConfigError, match="C is no heading"):
        grid(headline="C")


def test_published_numbers_stand_in_their_cells():
    content = f"source,heading,row,run,value\nTable 1,A,BERT,{OURS},76.25\nTable 1,,BERT large,,78.00\n"
    numbers = read_published({"published/t.csv": content.encode()}, grid())
    assert numbers == {(OURS, "A"): Published(76.25, "Table 1")}
    table = built(published=numbers)
    assert (cell(table, OURS)["published"], cell(table, OURS)["published_source"]) == (76.25, "Table 1")
    assert table["published"].null_count == len(table) - 1


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (f"run,heading,value\n{OURS},A,1\n", "source"),
        (f"run,heading,value,source\n{OURS},C,1,x\n", "heading C: not in the grid"),
        (f"run,heading,value,source\n{OURS},A,1,x\n{OURS},A,2,x\n", "stands twice"),
        (f"run,heading,value,source\n{OURS},A,n/a?,x\n", "n/a?"),
    ],
)
def test_published_files_that_do_not_fit_are_refused(content, message):
    with pytest.raises(DataError, match=f"published/t.csv: .*{message}".replace("?", r"\?")):
        read_published({"published/t.csv": content.encode()}, grid())


def test_two_papers_for_one_cell_are_refused():
    content = f"run,heading,value,source\n{OURS},A,1,x\n".encode()
    with pytest.raises(DataError, match=r"second\.csv: .*stands twice"):
        read_published({"first.csv": content, "second.csv": content}, grid())
