"""Blocks of a grid's columns that list tasks, against the same columns written out."""

import pytest

from workflow_scripts.graph.runs import numbered_columns, one_column_a_task

SHARED = {"suite": "sts", "aggregation": "all", "metric": "spearman", "scale": 100, "digits": 2}
MEAN = {"heading": "mean", "mean_of": ["sts12", "STS-B"], "digits": 2}


@pytest.mark.parametrize(
    ("tasks", "written"),
    [
        (["sts12", "sts13"], {"sts12": "sts12", "sts13": "sts13"}),
        ({"STS-B": "stsb_test", "A": "sts12"}, {"STS-B": "stsb_test", "A": "sts12"}),
    ],
)
def test_tasks_are_columns_in_their_order_numbered_by_their_block(tasks, written):
    grid = {"title": "T", "columns": [SHARED | {"tasks": tasks}, MEAN]}
    columns = [SHARED | {"heading": heading, "task": task} for heading, task in written.items()]
    assert list(numbered_columns(grid)) == [*((0, column) for column in columns), (1, MEAN)]
    assert one_column_a_task(grid) == {"title": "T", "columns": [*columns, MEAN]}
