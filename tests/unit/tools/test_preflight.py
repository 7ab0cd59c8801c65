"""Preflight: green where a study can run, red with a remedy where it cannot."""

from pathlib import Path

import pytest

from tests.planning import DEMO, ROOT, run
from workflow_scripts.planning.estimates import Estimator
from workflow_scripts.planning.graph import Graph, Job
from workflow_scripts.planning.rates import read_rates
from workflow_scripts.tools.preflight import disk, folders, memory, packages, python

RATES = read_rates(ROOT / "config/rates.yaml")


def graph(*encoders):
    jobs = [
        Job("train_encoder", {"run": f"simcse.{name}", "seed": "1"}, {}, [f"results/x/encoders/{name}/record.json"],
            [f"results/x/runs/simcse.{name}/seed1/model/record.json"], 1, 60)
        for name in encoders
    ]  # fmt: skip
    fetched = [
        Job("fetch_encoder", {"encoder": name}, {}, [], [f"results/x/encoders/{name}/record.json"], 0, 30)
        for name in encoders
    ]
    return Graph([*fetched, *jobs])


def memory_of(gigabytes, *encoders):
    planned = graph(*encoders)
    return memory(planned, Estimator(planned, RATES, ROOT), RATES, gigabytes)


def test_another_python_is_red(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nrequires-python = ">=3.11,<3.13"\n')
    assert not python((3, 12, 1), tmp_path / "pyproject.toml").remedy
    assert "3.13.0; the project wants" in python((3, 13, 0), tmp_path / "pyproject.toml").found
    assert python((3, 13, 0), tmp_path / "pyproject.toml").remedy


def test_a_package_of_another_version_is_red(tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text("# pinned\npytest==0.1\nno-such-package==1.0\n")
    line = packages(lock)
    assert f"pytest {pytest.__version__}, pinned 0.1" in line.found
    assert "no-such-package not installed, pinned 1.0" in line.found
    assert line.remedy
    lock.write_text(f"pytest=={pytest.__version__}\n")
    assert not packages(lock).remedy


def test_a_full_disk_is_red():
    assert not disk(10.0, 20.0).remedy
    assert "20 GB free, about 1,000 GB planned" in disk(1000.0, 20.0).found
    assert disk(1000.0, 20.0).remedy


def test_a_folder_that_cannot_be_written_is_red(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("os.access", lambda path, mode: Path(path).name != "logs")
    (tmp_path / "logs").mkdir()
    (line,) = folders({"answers": "answers/answers.sqlite"})
    assert line.found == "logs cannot be written." and line.remedy


def test_a_training_that_no_gpu_holds_is_red():
    assert memory_of(80.0, "bert_base", "bert_large").remedy == ""
    line = memory_of(80.0, "bert_base", "llama2_7b_mntp")
    assert "80 GB; 107.8 GB and its activations for simcse.llama2_7b_mntp 1" in line.found
    assert line.remedy
    assert memory_of(None, "bert_base").found.startswith("no GPU here")


@pytest.fixture(scope="module")
def preflight():
    def asked(*arguments, **environment):
        return run(ROOT, "-m", "workflow_scripts.tools.preflight", *arguments, **environment)

    return asked


def test_the_demo_can_run_here(preflight):
    answer = preflight("--configfile", DEMO)
    assert answer.returncode == 0, answer.stdout
    lines = answer.stdout.splitlines()
    assert len(lines) < 12 and all(line.startswith("ok ") for line in lines)


def test_every_mistake_of_a_configuration_is_a_red_line(preflight, tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("answers: /x\nextraction: {bias_list: brt}\n")
    answer = preflight("--configfile", DEMO, str(overlay))
    assert answer.returncode == 1
    red = [line for line in answer.stdout.splitlines() if line.startswith("no ")]
    assert [line.split(": ")[0] for line in red] == ["no answers", "no extraction.bias_list"]
    assert red[1].endswith("Did you mean bert?")


def test_an_overlay_that_is_no_yaml_is_named_with_its_line(preflight, tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("training:\n  epochs: !one 1\n")
    answer = preflight("--configfile", DEMO, str(overlay))
    assert answer.returncode == 1
    assert f"no {overlay}:2: could not determine a constructor for the tag '!one'" in answer.stdout


def test_an_unknown_target_is_a_red_line(preflight):
    answer = preflight("dmo", "--configfile", DEMO)
    assert answer.returncode == 1 and "no dmo: no rule makes it. Did you mean demo?" in answer.stdout
