"""A study of one's own makes what its own grid needs, laid over any of the studies here."""

from pathlib import Path

import pytest
import yaml

from tests.support.snakemake_plans import DEMO, copy_tree, planned_jobs, snakemake

GRID = {
    "title": "Mine",
    "source": "our own",
    "seeds": [1],
    "baseline": None,
    "suites": {"sts": ["mine"]},
    "runs": [{"method": "frozen_avg", "encoder": "minilm"}],
    "columns": [{"heading": "Spearman", "suite": "mine", "task": "lee", "aggregation": "all",
                 "metric": "spearman", "scale": 100, "digits": 2}],
}  # fmt: skip
OWN = {"suites": {"sts": {"mine": {"datasets": ["lee"], "max_tokens": 256}}}}
MADE = {
    "fetch_encoder": 1,
    "read_dataset": 1,
    "build_frozen": 1,
    "evaluate_sts": 1,
    "make_table": 1,
    "judge_claims": 1,
    "write_report": 1,
}
STUDIES = ["config/config.yaml", DEMO]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the repository with a grid of its user's."""
    folder = copy_tree(tmp_path_factory.mktemp("own"))
    (folder / "config/experiments/mine.yaml").write_text(yaml.safe_dump(GRID))
    return folder


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_of_its_own_grid_makes_nothing_else(tree, tmp_path, study):
    """A study that names only its own grid makes nothing else."""
    own = tmp_path / "own.yaml"
    own.write_text(yaml.safe_dump(OWN | {"experiments": ["mine"]}))
    planned = planned_jobs(tree, str(own), configfile=study)
    assert {rule: jobs for rule, jobs in planned.items() if rule != "draw_figures"} == MADE
    code, printed = snakemake(tree, "-n", "--configfile", study, str(own), "--", "extraction")
    assert code == 1
    assert "ConfigError: extraction: no rule makes it." in printed


def test_a_study_that_adds_its_own_grid_to_another_makes_both(tree, tmp_path):
    first, second = tmp_path / "first.yaml", tmp_path / "second.yaml"
    first.write_text(yaml.safe_dump(OWN | {"experiments+": ["mine"]}))
    second.write_text(yaml.safe_dump({"suites": {"sts": {"mine": {"datasets+": ["stsb_dev"]}}}}))
    planned = planned_jobs(tree, str(first), str(second))
    assert planned["make_table"] == 2
    assert planned["tabulate_extraction"] == 1
    assert planned["read_dataset"] == planned_jobs(tree)["read_dataset"] + 1
