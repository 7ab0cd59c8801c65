"""The plan of preflight for the demo: every job once, papers as targets, errors in one line."""

import pytest

from tests.support.fake_gpu_machine import machine
from tests.support.snakemake_plans import DEMO, ROOT, copy_tree, planned_jobs, run, run_alone
from tests.support.verb_answers import parts_of
from workflow_scripts.graph.notes import note_call


def preflight(folder, *words):
    return run(folder, "-m", "workflow_scripts", "preflight", *words, PYTHONPATH=str(ROOT))


def rules_of(folder, *words):
    """The table of jobs by rule, in a folder without the results that a demo may have left in the repository."""
    asked = preflight(folder, "--json", *words, "--configfile", str(ROOT / DEMO))
    assert asked.returncode == 0, asked.stderr
    return jobs_by_rule(asked.stdout)


def jobs_by_rule(text):
    return parts_of(text)["jobs_by_rule"]


def test_every_job_is_counted_once_as_snakemake_counts_it(tmp_path):
    (tmp_path / "clone").mkdir()
    rows = rules_of(tmp_path)
    assert {row["rule"]: row["jobs"] for row in rows} == planned_jobs(copy_tree(tmp_path / "clone"))
    assert all(row["memory_gb"] > 0 and row["h_at_most"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("config", "scheduled", "asks"),
    [("{}", {}, 1), ("{on_gpu: [clustering]}", {}, None), ("{}", {"SLURM_JOB_ID": "7"}, None)],
)
def test_scored_pairs_are_encoded_on_a_gpu_of_this_machine(tmp_path, config, scheduled, asks):
    """A queue is not asked for one."""
    here = machine(tmp_path / "machine")
    place = {**here, "PYTHONPATH": f"{ROOT}:{here['PYTHONPATH']}", **scheduled}
    words = (
        "preflight",
        "--offline",
        "--json",
        "--configfile",
        str(ROOT / DEMO),
        "--config",
        f"evaluation={config}",
    )
    said = run_alone(tmp_path, "-m", "workflow_scripts", *words, **place)
    gpus = {row["rule"]: row["gpus_each"] for row in jobs_by_rule(said.stdout)}
    assert gpus["train_encoder"] == 1
    assert gpus["evaluate_sts"] == asks


def test_a_target_of_another_study_is_refused(tmp_path, monkeypatch):
    """Without --configfile, a verb asks for the study of the last run."""
    monkeypatch.chdir(tmp_path)
    note_call("demo", [ROOT / DEMO], {})
    (refused,) = (line for line in preflight(tmp_path, "simcse").stdout.splitlines() if "no rule" in line)
    assert " The study is the one of --configfile " in refused
    assert refused.endswith("config/demo.yaml.")


def test_a_paper_is_a_target_of_its_tables_and_figures(tmp_path):
    alone = {row["rule"]: row["jobs"] for row in rules_of(tmp_path, "extraction")}
    assert alone["tabulate_extraction"] == 1
    assert "make_table" not in alone


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (
            ("nothing", "--configfile", str(ROOT / DEMO)),
            "FAIL nothing: no rule makes it. Choose from: ",
        ),
        (
            ("--configfile", "nosuch.yaml"),
            "FAIL nosuch.yaml: No such file or directory. Check the path",
        ),
        (
            ("--configfile", str(ROOT / DEMO), "demo"),
            "FAIL demo: No such file or directory. Check the path",
        ),
    ],
)
def test_a_file_that_is_not_there_is_one_line(tmp_path, arguments, found):
    said = preflight(tmp_path, *arguments)
    assert said.returncode == 1, said
    assert found in said.stdout
    assert not said.stderr
    assert len(said.stdout.splitlines()) == 3


def test_code_that_is_noted_while_the_graph_grows_is_found(tmp_path):
    """In a folder where nothing ran yet, Snakemake meets a kind of job only after it has looked at others' inputs."""
    folder = copy_tree(tmp_path)
    runs = [
        "frozen_avg.minilm/seed0",
        "frozen_avg.minilm_mlm/seed0",
        "simcse_s2sent.minilm_mlm.wiki_extract/seed1",
    ]
    targets = [f"results/demo/scores/sts/lee/{run}.parquet" for run in runs]
    planned = planned_jobs(folder, "--", *targets)
    assert planned["build_frozen"] == 2
    assert planned["train_encoder"] == 1
    assert planned["evaluate_sts"] == 3


def test_what_a_command_line_gives_is_planned_too():
    """Nested settings among them, as those of a study's last run."""
    planning = (
        "from workflow_scripts.graph.notes import Call\n"
        "from workflow_scripts.verbs.plan import planned\n"
        "given = {'name': 'mine', 'training': {'max_gradient_norm': 7}, 'offline': True}\n"
        f"jobs = planned([], Call(['{DEMO}'], given))\n"
        "(one, *_) = [job for job in jobs if job.rule == 'train_encoder']\n"
        "print(one.outputs[0], one.settings['training']['max_gradient_norm'])\n"
    )
    asked = run(ROOT, "-c", planning)
    assert asked.returncode == 0, asked.stderr
    output, norm = asked.stdout.split()[-2:]
    assert output.startswith("results/mine/")
    assert norm == "7"
