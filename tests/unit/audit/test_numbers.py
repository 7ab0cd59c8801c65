"""How far two artefacts lie apart is said in cells, and in the largest and mean difference of numbers."""

import math

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import save_file

from tests.verbs import printed
from workflow_scripts.audit.diff import diff
from workflow_scripts.audit.numbers import Apart, apart
from workflow_scripts.provenance.artefacts import write_table


def written(path, columns):
    pq.write_table(pa.table(columns), path)
    return path


def columns_apart(tmp_path, a, b):
    return apart(written(tmp_path / "a.parquet", {"c": a}), written(tmp_path / "b.parquet", {"c": b}))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ([1.0, 2.0, 3.0], [1.0, 2.5, 2.0], (2, 3, 1.0, 0.75)),
        ([1, 2], [1, 5], (1, 2, 3.0, 3.0)),
        ([1.0, None], [1.0, 2.0], (1, 2, None, None)),
        ([0.0, None], [None, None], (1, 2, None, None)),
        (["x", "y"], ["x", "z"], (1, 2, None, None)),
        ([[1.0, 2.0], [3.0]], [[1.0, 4.0], [3.0]], (1, 3, 2.0, 2.0)),
        ([[1.0], [3.0]], [[1.0, 4.0], [3.0]], (1, 2, None, None)),
        ([math.nan, 1.0], [math.nan, 2.0], (1, 2, 1.0, 1.0)),
    ],
)
def test_a_column_is_compared_cell_by_cell(tmp_path, a, b, expected):
    assert columns_apart(tmp_path, a, b) == [Apart("c", *expected)]


@pytest.mark.parametrize("same", [[math.nan, 1.0], [None, "x"], [[1.0], None], [None, None]])
def test_equal_columns_are_not_named(tmp_path, same):
    assert columns_apart(tmp_path, same, same) == []


def test_of_tables_of_different_lengths_and_of_pages_nothing_is_said(tmp_path):
    assert columns_apart(tmp_path, [1.0], [1.0, 2.0]) == []
    assert apart(tmp_path / "a.svg", tmp_path / "b.svg") == []


def test_weights_are_compared_over_all_tensors_of_a_file(tmp_path):
    for name, weight in (("a", [1.0, 2.0, 3.0]), ("b", [1.0, 2.5, 2.0])):
        (tmp_path / name).mkdir()
        tensors = {
            "w": torch.tensor(weight, dtype=torch.bfloat16),
            "same": torch.ones(2),
            name: torch.ones(1),
        }
        save_file(tensors, tmp_path / name / "model.safetensors")
    records = [tmp_path / name / "record.json" for name in ("a", "b")]
    assert apart(*records) == [Apart("model.safetensors", 2, 5, 1.0, 0.75)]


def test_a_difference_says_by_how_much(root, study):
    record = study.made_by("make_table", ["tables/a.parquet"])
    for name, value in (("a", 56.52), ("b", 56.42)):
        write_table(root / f"{name}.parquet", pa.table({"run": ["x", "y"], "mean": [value, 1.0]}), record)
    (step,) = diff(root / "a.parquet", root / "b.parquet")
    (mean,) = step.numbers
    assert mean.name == "mean" and mean.largest == pytest.approx(0.1)
    _code, said = printed("diff", "a.parquet", "b.parquet")
    cells = [[cell.strip() for cell in line.split("│")] for line in said.splitlines()]
    assert [line for line in cells if line[0] == "mean"] == [["mean", "1", "2", "0.1", "0.1"]]
