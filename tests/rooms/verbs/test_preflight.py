"""Preflight: green where a study can run, red with a remedy where it cannot."""

import math

import pytest

from tests.support.snakemake_plans import DEMO, ROOT, copy_tree, run
from tests.support.verb_answers import parts_of
from workflow_scripts.provenance import cards
from workflow_scripts.verbs.preflight import disk_errors, gpus_for, package_errors


def test_a_package_of_another_version_is_named(tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text("# pinned\npytest==0.1\nno-such-package==1.0\n")
    (line,) = map(str, package_errors(lock))
    assert line == (
        f"packages: pytest {pytest.__version__}, pinned 0.1; no-such-package not installed, pinned 1.0. "
        "Run pip install -r requirements.lock in .venv."
    )
    lock.write_text(f"pytest=={pytest.__version__}\n")
    assert not list(package_errors(lock))


def test_a_full_disk_is_red():
    assert not list(disk_errors(10.0, 20.0))
    assert "20 GB free, about 1,000 GB planned. Free 980 GB" in str(next(disk_errors(1000.0, 20.0)))


@pytest.fixture(scope="module")
def preflight(tmp_path_factory):
    """The verb in a copy of the repository without results, which `make demo` leaves in the repository itself."""
    tree = copy_tree(tmp_path_factory.mktemp("preflight"))
    (tree / "requirements.lock").symlink_to(ROOT / "requirements.lock")
    return lambda *arguments: run(tree, "-m", "workflow_scripts", "preflight", *arguments)


def test_the_demo_can_run_here(preflight):
    answer = preflight("--configfile", DEMO)
    assert answer.returncode == 0, answer.stdout
    *tables, packages, configuration, needs, disk, time, said = answer.stdout.splitlines()
    assert time.startswith("TIME ")
    assert all(line.startswith("ok   ") for line in (packages, configuration, needs, disk))
    assert said == "It can run here to its end."
    assert any("package:" in line for line in tables)


def test_a_first_run_has_no_times(preflight, monkeypatch):
    """The trainings of the demo ask for a GPU if there is one."""
    monkeypatch.setenv(cards.VISIBLE, "")
    said = preflight("--offline", "--json", "--configfile", DEMO)
    parts = parts_of(said.stdout)
    assert len(parts["time_by_rule"]) > 10
    assert parts["time_in_all"] == []
    assert {(row["seconds"], row["source"]) for row in parts["time_by_rule"]} == {(None, "unknown")}
    (note,) = parts["notes_on_times"]
    assert " on one H200 (docs/cluster.md) for 13 trainings" in note["line"]
    text = preflight("--offline", "--configfile", DEMO).stdout
    assert "GPU hours" not in text
    assert "GPU time" not in text
    wrong = preflight("--cores", "none")
    assert wrong.returncode == 2
    assert "--cores: 'none'. Write a number, 1 or more, or all." in wrong.stderr


def test_every_mistake_of_a_configuration_is_a_red_line(preflight, tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("exemplar_pools: [tooy]\nextraction: {encoder: minilmm}\n")
    answer = preflight("--configfile", DEMO, str(overlay))
    assert answer.returncode == 1
    red = [line for line in answer.stdout.splitlines() if line.startswith("FAIL ")]
    assert [line.split(": ")[:2] for line in red] == [
        [f"FAIL {overlay}:1", "exemplar_pools"],
        [f"FAIL {overlay}:2", "extraction.encoder"],
    ]
    assert red[1].endswith("Did you mean minilm?")


def test_trainings_that_do_not_fit_are_red_with_the_place(preflight, tmp_path, monkeypatch):
    """17,111 rows less 240 that are held out; no GPU is visible."""
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("training: {gpus: 2}\nmethods:\n  jtcse: {training: {batch_size: 20000}}\n")
    monkeypatch.setenv(cards.VISIBLE, "")
    answer = preflight("--offline", "--configfile", DEMO, str(overlay))
    assert answer.returncode == 1
    gpus, batch = [line for line in answer.stdout.splitlines() if line.startswith("FAIL ")]
    assert gpus.startswith(f"FAIL {overlay}:1: training.gpus (")
    assert gpus.endswith("): 2, but jobs see 0 GPUs here. Set it to 1, or add the --profile of a cluster.")
    assert batch == (
        f"FAIL {overlay}:3: methods.jtcse.training.batch_size (jtcse.demo_twin.wiki_extract): 20000, "
        "but wiki_extract has at most 16871 rows. Set it to 16871 or less."
    )


def test_the_gpus_of_a_cluster_are_not_known(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.setattr(cards, "visible", lambda: ["GPU-1"])
    monkeypatch.setattr(cards, "is_scheduled", lambda: False)
    assert gpus_for(None) == gpus_for("profiles/default") == 1
    assert gpus_for("slurm") == math.inf
    monkeypatch.setattr(cards, "is_scheduled", lambda: True)
    assert gpus_for(None) == math.inf
