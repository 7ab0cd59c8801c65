"""A study of one's own makes what its own grid needs, laid over any of the studies here."""

from pathlib import Path
from shutil import copytree

import pytest
import yaml

from tests.planning import DEMO, ROOT, copy_tree, merged_config, planned_jobs, snakemake
from workflow_scripts.graph.configuration import load_config
from workflow_scripts.graph.extraction import Extraction
from workflow_scripts.graph.figures import Figures
from workflow_scripts.graph.study import Study, open_study

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
    assert {rule: jobs for rule, jobs in planned.items() if rule != "draw_figure"} == MADE
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


@pytest.mark.parametrize("study", [*STUDIES, "config/minilm.yaml"])
def test_the_studies_here_make_all_that_the_extraction_study_shows(study):
    config = merged_config(ROOT, study)
    shown = config["extraction"]["show"]
    made = Study(config, {}, {}, ROOT)
    tables = [f"<results>/tables/{name}.parquet" for name in shown["statistics"] + shown["tables"]]
    assert Extraction(made).tables == tables and tables
    pictures = [f"<results>/figures/extraction/{name}.svg" for name in shown["figures"]]
    assert Figures(made).pictures("extraction") == pictures and pictures


@pytest.mark.parametrize(
    ("name", "finding"),
    [
        ("all", "its tables and figures are made by the name all, which is a rule's. Rename the file."),
        ("model_cards_table1", "its tables and figures are made by the name model_cards, which is a rule's."),
        ("extraction_figure9", "its tables and figures are made by the name extraction, which is a rule's."),
        ("extraction_demo", "a table of the extraction study has that name. Rename the file."),
        ("extraction_variants", "a table of the extraction study has that name. Rename the file."),
    ],
)
def test_a_grid_cannot_take_the_name_of_a_rule_or_of_a_table_without_training(tmp_path, name, finding):
    copytree(ROOT / "config", tmp_path / "config")
    for part in ("rules", "resources", "Snakefile"):
        (tmp_path / part).symlink_to(ROOT / part)
    (tmp_path / f"config/experiments/{name}.yaml").write_text(yaml.safe_dump(GRID))
    config = load_config(ROOT, [ROOT / DEMO], OWN | {"experiments": ["demo", name]})
    with pytest.raises(SystemExit) as refused:
        open_study(config, tmp_path)
    assert str(refused.value).startswith(f"ConfigError: experiments/{name}.yaml: {finding}")
    assert "\n" not in str(refused.value)


def test_a_grid_cannot_take_the_name_of_the_extraction_study(tree):
    grid = tree / "config/experiments/extraction.yaml"
    grid.write_text(yaml.safe_dump(GRID))
    code, printed = snakemake(tree, "-n", "--configfile", DEMO)
    grid.unlink()
    assert code == 1
    assert "ConfigError: experiments/extraction.yaml: that name is the extraction study's. Rename" in printed
