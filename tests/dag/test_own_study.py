"""A study of one's own makes what its own grid needs, laid over any of the studies here."""

from pathlib import Path

import pytest
import yaml

from tests.planning import DEMO, ROOT, copy_tree, merged_config, planned_jobs, snakemake
from workflow_scripts.graph.configuration import load_config

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
    "pool_encoder": 1,
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


def written(folder: Path, name: str, content: dict) -> str:
    (folder / f"{name}.yaml").write_text(yaml.safe_dump(content))
    return str(folder / f"{name}.yaml")


@pytest.mark.parametrize("study", STUDIES)
def test_a_study_that_names_its_own_grid_alone_makes_nothing_else(tree, tmp_path, study):
    own = written(tmp_path, "own", OWN | {"experiments": ["mine"]})
    planned = planned_jobs(tree, own, configfile=study)
    assert {rule: jobs for rule, jobs in planned.items() if rule != "draw_figures"} == MADE
    code, printed = snakemake(tree, "-n", "--configfile", study, own, "--", "extraction")
    assert code == 1 and "ConfigError: extraction: no rule makes it." in printed


def test_lists_that_two_files_add_to_plan_what_they_plan_written_out(tree, tmp_path):
    first = written(tmp_path, "first", OWN | {"experiments+": ["mine"]})
    second = written(tmp_path, "second", {"suites": {"sts": {"mine": {"datasets+": ["weather"]}}},
                                          "datasets": {"weather": merged_config(ROOT, DEMO)["datasets"]["lee"]}})  # fmt: skip
    config = load_config(tree, [tree / DEMO, first, second])
    whole = written(tmp_path, "whole", {**config, "name": "demo"})
    assert config["experiments"] == ["demo", "extraction", "mine"]
    assert config["suites"]["sts"]["mine"]["datasets"] == ["lee", "weather"]
    planned = planned_jobs(tree, first, second)
    assert planned == planned_jobs(tree, whole)
    assert planned["make_table"] == 2 and planned["tabulate_extraction"] == 1
