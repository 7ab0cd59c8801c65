"""A study that nobody has asked for says what is planned, before any job starts."""

import pytest

from tests.support.snakemake_plans import ROOT, copy_tree, run, study_in
from workflow_scripts.graph.unasked import NamedJob, unasked_study

FILE = "results/paper/datasets/stsb_dev.parquet"
DEMO = "For the demo, which takes minutes, add --configfile config/demo.yaml"


@pytest.fixture(scope="module")
def study():
    return study_in(ROOT, [])


def test_the_jobs_of_the_papers_are_counted_with_their_time(study, tmp_path, monkeypatch):
    """15,625 steps of SimCSE, each 12.2 ms: a million sentences in batches of 64."""
    monkeypatch.chdir(tmp_path)
    jobs = [
        NamedJob("train_encoder", {"run": "simcse.bert_base.wiki1m", "seed": str(seed)}) for seed in (1, 2)
    ]
    said = unasked_study(study, [], [*jobs, NamedJob("evaluate_sts", jobs[0].wildcards)])
    assert said == (
        "No --configfile is given, so this is the study paper; jobs planned: 3 (6 min 21 s on one H200 (docs/cluster.md) "
        f"for 2 trainings, if a step is one of SimCSE). {DEMO}"
    )


def test_a_study_asked_for_or_with_results_is_no_surprise(study, tmp_path, monkeypatch):
    """A study that was asked for or has results is no surprise."""
    monkeypatch.chdir(tmp_path)
    assert unasked_study(study, [], [])
    assert unasked_study(study, ["config/mine.yaml"], []) == ""
    (tmp_path / "results/paper").mkdir(parents=True)
    assert unasked_study(study, [], []) == ""


@pytest.mark.parametrize("command", [("snakemake", "--dry-run", "--"), ("workflow_scripts", "stale")])
def test_snakemake_and_verbs_say_so_once_before_any_job(tmp_path, command):
    tree = copy_tree(tmp_path)
    module, *words = command

    def asked():
        done = run(tree, "-m", module, *words, FILE)
        return done.stdout + done.stderr  # a dry run prints to stdout

    warned = asked()
    assert warned.count("No --configfile is given, so this is the study paper; jobs planned: 1. For") == 1
    assert warned.count(DEMO) == 1
    given = run(
        tree,
        "-m",
        "snakemake",
        "--dry-run",
        "--configfile",
        "config/demo.yaml",
        "--",
        "results/demo/datasets/lee.parquet",
    )
    assert given.returncode == 0
    assert DEMO not in given.stdout + given.stderr
    (tree / "results/paper").mkdir(parents=True)
    assert DEMO not in asked()


def test_a_quiet_run_prints_none_of_the_projects_lines(tmp_path):
    """``--quiet all`` holds for the lines of this project, too; removing a lock reads the study and runs no job."""
    tree = copy_tree(tmp_path)
    command = ("-m", "snakemake", "--unlock", "--configfile", "config/demo.yaml")
    assert "Study demo, from config/demo.yaml" in run(tree, *command).stderr
    quiet = run(tree, *command, "--quiet", "all")
    own = "Using workflow specific profile"  # Snakemake prints it whatever is asked
    assert [line for line in quiet.stderr.splitlines() if not line.startswith(own)] == []
    assert (quiet.returncode, quiet.stdout) == (0, "")
