"""Blocks of a grid's columns that list tasks, against the same columns written out."""

from workflow_scripts.graph.runs import numbered_columns, one_column_a_task

SHARED = {"suite": "sts", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
MEAN = {"heading": "mean", "mean_of": ["sts12", "STS-B"], "digits": 2}


def grid(*columns):
    runs = [{"method": "frozen_avg", "encoder": "minilm"}]
    return {"title": "T", "source": "our own", "seeds": [1], "baseline": None, "suites": {"sts": ["sts"]},
            "runs": runs, "columns": list(columns)}  # fmt: skip


def test_a_list_of_tasks_is_a_column_of_each_headed_by_its_name():
    listed = grid(SHARED | {"tasks": ["sts12", "sts13"]}, MEAN)
    assert one_column_a_task(listed) == grid(
        {"heading": "sts12", "task": "sts12"} | SHARED, {"heading": "sts13", "task": "sts13"} | SHARED, MEAN
    )
    assert listed == grid(SHARED | {"tasks": ["sts12", "sts13"]}, MEAN)


def test_headings_may_be_given_to_tasks_in_their_order():
    given = grid(SHARED | {"tasks": {"STS-B": "stsb_test", "A": "sts12"}})
    assert one_column_a_task(given) == grid(
        {"heading": "STS-B", "task": "stsb_test"} | SHARED, {"heading": "A", "task": "sts12"} | SHARED
    )


def test_columns_are_numbered_by_their_block():
    columns = numbered_columns(grid(SHARED | {"tasks": ["sts12", "sts13"]}, MEAN))
    assert [(number, column["heading"]) for number, column in columns] == [
        (0, "sts12"),
        (0, "sts13"),
        (1, "mean"),
    ]
