"""The recipes of docs/adding for a method, a readout and an evaluation, followed to the letter in a copy."""

import shutil
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml

from tests.support import doc_blocks
from tests.support.snakemake_plans import DEMO, ROOT, copy_tree, planned_jobs, pretend_finished

PAGES = ROOT / "docs/adding"


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The project without results, with its tests."""
    shutil.copytree(ROOT / "tests", tmp_path / "tests", ignore=shutil.ignore_patterns("__pycache__"))
    return copy_tree(tmp_path)


@pytest.mark.slow
def test_a_method_is_added_as_its_page_says(clone):
    """A method is added as its page says and its own runs are all that starts."""
    pretend_finished(clone)
    assert planned_jobs(clone) == {}
    steps = doc_blocks.follow(PAGES / "method.md", clone)
    assert planned_jobs(clone) == {}
    (line,) = [step.text for step in steps if step.use == "read"]
    grid = clone / "config/experiments/demo.yaml"
    described = yaml.safe_load(grid.read_text())
    described["runs"] += yaml.safe_load(line)
    grid.write_text(yaml.safe_dump(described))
    planned = planned_jobs(clone, configfile=DEMO)
    trained = {"train_encoder": 2, "evaluate_sts": 2}
    assert {rule: count for rule, count in planned.items() if rule in trained} == trained
    assert not {"continue_mlm", "build_frozen", "split_corpus", "read_dataset"} & set(planned)


@pytest.mark.slow
def test_a_readout_is_added_as_its_page_says(clone):
    doc_blocks.follow(PAGES / "readout.md", clone)


@pytest.mark.slow
def test_an_evaluation_is_added_as_its_page_says(clone):
    """An evaluation is added as its page says and scores a run."""
    doc_blocks.follow(PAGES / "evaluation.md", clone)
    file = clone / "results/demo/scores/kendall/lee_order/frozen_avg.minilm/seed0.parquet"
    (row,) = pq.read_table(file).to_pylist()
    assert (row["task"], row["metric"], row["n"]) == ("lee", "kendall", 1225)
    assert row["value"] == pytest.approx(0.35, abs=0.05)  # Spearman is 0.508
