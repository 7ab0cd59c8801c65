"""From anywhere: another working directory, and a workflow that uses this one as a module."""

import json
from pathlib import Path

import pytest
import yaml

from tests.planning import DEMO, ROOT, copy_tree, planned_jobs, run, snakemake
from workflow_scripts.graph.place import open_place

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
    assert jobs and jobs["fetch_encoder"] == 1
    (at_home / "results").rename(at_home / "kept")
    try:
        assert jobs == planned_jobs(at_home)
    finally:
        (at_home / "kept").rename(at_home / "results")


@pytest.mark.parametrize("call", CALLS)
def test_a_job_makes_the_same_elsewhere_whatever_lies_there(at_home, tmp_path, call):
    place = tmp_path / "elsewhere" if "--directory" in CALLS[call] else tmp_path
    place.mkdir(exist_ok=True)
    for module in ("safetensors", "statistics"):
        (place / f"{module}.py").write_text("raise SystemExit('a file of the working folder')")
    code, printed = snakemake(
        tmp_path,
        "--cores",
        "1",
        *CALLS[call],
        "--configfile",
        str(ROOT / DEMO),
        "--",
        f"results/demo/{FETCHED}",
    )
    assert code == 0, printed
    (made,) = tmp_path.rglob(FETCHED)
    made, other = (
        json.loads(file.read_text())["record"] for file in (made, at_home / "results/demo" / FETCHED)
    )
    parts = ("key", "inputs", "outputs")  # who made it, and from which commit, stands beside them
    assert {part: made[part] for part in parts} == {part: other[part] for part in parts}


def test_a_run_leaves_word_of_its_configuration(at_home):
    """By which `watch` shows the study as it was run."""
    noted = json.loads((at_home / ".snakemake/studies/demo.json").read_text())
    assert noted == {"configfiles": [DEMO], "config": {}}


def test_a_file_of_the_clone_is_an_input_by_its_own_name(tmp_path):
    """Records name it, so that they are the same wherever a study is made; what is there already stays."""
    (tmp_path / "resources/prompts").mkdir(parents=True)
    code, printed = snakemake(
        tmp_path,
        "-n",
        "-s",
        str(ROOT / "Snakefile"),
        "--configfile",
        str(ROOT / DEMO),
        "--",
        "results/demo/report.html",
    )
    assert code == 0, printed
    assert (tmp_path / "resources/report/report.html.j2").samefile(ROOT / "resources/report/report.html.j2")
    assert not (tmp_path / "resources/prompts").is_symlink()


def keep_environment(monkeypatch):
    """Put back after a test what ``open_place`` sets for jobs."""
    for name in ("PYTHONPATH", "PYTHONSAFEPATH"):
        monkeypatch.setenv(name, "")


def test_another_clones_files_take_the_place_of_the_first_ones(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keep_environment(monkeypatch)
    for clone in ("first", "second"):
        (tmp_path / clone / "resources/prompts").mkdir(parents=True)
        (tmp_path / clone / "Snakefile").touch()
        open_place(tmp_path / clone)
        assert Path("resources/prompts").samefile(tmp_path / clone / "resources/prompts")


def test_a_link_of_the_users_own_stays(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    keep_environment(monkeypatch)
    for folder in ("mine", "clone/resources/prompts", "resources"):
        (tmp_path / folder).mkdir(parents=True)
    Path("resources/prompts").symlink_to(tmp_path / "mine")
    open_place(tmp_path / "clone")
    assert Path("resources/prompts").samefile("mine")


def test_tools_plan_where_the_results_are(tmp_path):
    said = run(tmp_path, "-m", "workflow_scripts", "plan", "--configfile", str(ROOT / DEMO), "--json",
               PYTHONPATH=str(ROOT))  # fmt: skip
    assert said.returncode == 0, said.stderr
    assert any(row["rule"] == "continue_mlm" for row in json.loads(said.stdout)["by rule"])


def test_the_audit_plans_where_the_results_are(tmp_path):
    (tmp_path / "list.yaml").write_text("[1, 2]")
    asked = ("-m", "workflow_scripts", "stale", "--configfile")
    said = run(tmp_path, *asked, str(ROOT / DEMO), PYTHONPATH=str(ROOT))
    assert "missing: results/demo/report.html" in said.stdout, said.stderr
    said = run(tmp_path, *asked, "list.yaml", PYTHONPATH=str(ROOT))
    assert "WorkflowError: Config file must be given as JSON or YAML with keys at top level." in said.stderr


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
    assert (around / "results/mine" / weights).read_bytes() == (
        at_home / "results/demo" / weights
    ).read_bytes()


def test_a_mistake_in_a_modules_configuration_is_a_line(around):
    config = yaml.safe_load((around / "config.yaml").read_text())
    config["sentences"]["experimnts+"] = ["simcse"]
    (around / "config.yaml").write_text(yaml.safe_dump(config))
    code, printed = snakemake(around, "-n")
    assert code == 1
    assert (
        "config of the module: experimnts+: no file below has such a list. Did you mean experiments?"
        in printed
    )
