"""From anywhere: another working directory, and a workflow that uses this one as a module."""

import json

import pytest
import yaml

from tests.support.snakemake_plans import DEMO, ROOT, copy_tree, planned_jobs, run, snakemake

CALLS = {
    "a call from elsewhere": ("-s", str(ROOT / "Snakefile")),
    "--directory": ("-s", str(ROOT / "Snakefile"), "--directory", "elsewhere"),
}
MODULE = """
configfile: "config.yaml"

module sentences:
    snakefile: "{snakefile}"
    config: config["sentences"]

use rule * from sentences as sentences_*

rule all:
    default_target: True
    input: rules.sentences_all.input
"""
FETCHED = "encoders/minilm/record.json"


@pytest.fixture(scope="module")
def at_home(tmp_path_factory):
    folder = copy_tree(tmp_path_factory.mktemp("clone"))
    code, printed = snakemake(folder, "--cores", "1", "--configfile", DEMO, "--", f"results/demo/{FETCHED}")
    assert code == 0, printed
    return folder


@pytest.mark.parametrize("call", CALLS)
def test_the_graph_is_the_same_from_elsewhere(at_home, tmp_path, call):
    jobs = planned_jobs(tmp_path, *CALLS[call], configfile=str(at_home / DEMO))
    assert jobs
    assert jobs["fetch_encoder"] == 1
    (at_home / "results").rename(at_home / "kept")
    try:
        assert jobs == planned_jobs(at_home)
    finally:
        (at_home / "kept").rename(at_home / "results")


def test_a_job_makes_the_same_elsewhere_whatever_lies_there(at_home, tmp_path):
    (tmp_path / "elsewhere").mkdir()
    for module in ("safetensors", "statistics"):
        (tmp_path / f"elsewhere/{module}.py").write_text("raise SystemExit('a file of the working folder')")
    asked = ["--configfile", str(ROOT / DEMO), "--", f"results/demo/{FETCHED}"]
    code, printed = snakemake(tmp_path, "--cores", "1", *CALLS["--directory"], *asked)
    assert code == 0, printed
    (made,) = tmp_path.rglob(FETCHED)
    made, other = (
        json.loads(file.read_text())["record"] for file in (made, at_home / "results/demo" / FETCHED)
    )
    parts = ("key", "inputs", "outputs")  # who made it, and from which commit, stands beside them
    assert {part: made[part] for part in parts} == {part: other[part] for part in parts}


@pytest.fixture
def around(tmp_path):
    """A workflow whose configuration gives the module what the demo's overlay gives."""
    given = yaml.safe_load((ROOT / DEMO).read_text()) | {"name": "mine"}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"sentences": given}))
    (tmp_path / "Snakefile").write_text(MODULE.format(snakefile=ROOT / "Snakefile"))
    return tmp_path


def test_a_workflow_uses_this_one_as_a_module(around, at_home):
    code, printed = snakemake(around, "-n")
    assert code == 0, printed
    assert "results/mine/report.html" in printed
    made = run(around, "-m", "snakemake", "--cores", "1", f"results/mine/{FETCHED}")
    assert made.returncode == 0, made.stderr
    weights = "encoders/minilm/model.safetensors"
    here, there = (folder / weights for folder in (around / "results/mine", at_home / "results/demo"))
    assert here.read_bytes() == there.read_bytes()


def test_a_mistake_in_a_modules_configuration_is_a_line(around):
    config = yaml.safe_load((around / "config.yaml").read_text())
    config["sentences"]["experimnts+"] = ["simcse"]
    (around / "config.yaml").write_text(yaml.safe_dump(config))
    code, printed = snakemake(around, "-n")
    assert code == 1
    assert (
        "config of the module: experimnts+: no earlier file contains this list. Did you mean experiments?"
        in printed
    )
