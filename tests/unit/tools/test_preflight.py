"""Preflight: green where a study can run, red with a remedy where it cannot."""

import os
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import pytest

from tests.planning import DEMO, ROOT, run
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.queue import PLUGIN_CALLS
from workflow_scripts.planning.graph import Graph, Job
from workflow_scripts.settings.start import Size
from workflow_scripts.tools.preflight import (
    check_profile,
    disk,
    folders,
    gpu_gigabytes,
    local_rules,
    memory,
    packages,
    python,
)

BERT, BERT_LARGE, LLAMA = Size(12, 768), Size(24, 1024), Size(32, 4096)


class Study:
    """Runs named as their encoder; ``fetched_later`` has no size yet, and ``fused`` joins one with a known one."""

    runs: ClassVar = {
        name: SimpleNamespace(encoder=name)
        for name in ("bert", "bert_large", "llama", "fetched_later", "fused", "with_adapters")
    }
    sizes = SimpleNamespace(
        behind={
            "bert": [BERT], "bert_large": [BERT_LARGE], "llama": [LLAMA], "with_adapters": [LLAMA],
            "fetched_later": [None], "fused": [BERT, None],
        }.__getitem__
    )  # fmt: skip

    def method(self, run):
        return (
            {"module": "llm2vec", "weights": "bfloat16"} if run == "with_adapters" else {"module": "simcse"}
        )


def memory_of(gigabytes, *runs, complaint="", adapted=()):
    jobs = [Job("train_encoder", {"run": run, "seed": "1"}, {}, [], [], 1, 60) for run in runs]
    jobs += [Job("continue_mlm", {"encoder": encoder}, {}, [], [], 1, 60) for encoder in adapted]
    return memory(Graph(jobs), Study(), gigabytes, complaint)


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
    assert memory_of(80.0, "bert", "bert_large").remedy == ""
    line = memory_of(80.0, "bert", "llama")
    assert "80 GB; 107.4 GB and its activations for llama 1" in line.found
    assert line.remedy
    assert memory_of(None, "bert").found.startswith("no GPU here")
    assert "107.4 GB and its activations for llama" in memory_of(80.0, adapted=["bert", "llama"]).found
    assert memory_of(80.0).found == "no training is left to do"


def test_adapters_beside_frozen_weights_take_the_weights_alone():
    line = memory_of(80.0, "with_adapters")
    assert line.found == "80 GB; the largest training takes 26.8 GB and its activations for with_adapters 1"
    assert not line.remedy


def test_a_training_of_an_encoder_that_nobody_can_size_is_not_counted_as_nothing():
    unsized = "of 2, as fetched_later 1, nobody can say before the encoder is fetched"
    line = memory_of(80.0, "bert", "fetched_later", "fused")
    assert line.found.endswith(f"takes 2.2 GB and its activations for bert 1; {unsized}")
    line = memory_of(80.0, "fetched_later", "fused")
    assert line.found == f"what trainings take is not known; {unsized}"


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("printf '81559\\n16384\\n'", (17.179869184, "")),  # 16,384 MiB
        ("echo 'No devices were found'", (None, "No devices were found")),
        ("echo '[N/A]'", (None, "[N/A]")),
        ("echo 'NVIDIA-SMI has failed' >&2; exit 9", (None, "NVIDIA-SMI has failed")),
    ],
)
def test_a_gpu_that_says_nothing_of_its_memory_is_none(tmp_path, monkeypatch, said, found):
    tool = tmp_path / "nvidia-smi"
    tool.write_text(f"#!/bin/sh\n{said}\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert gpu_gigabytes() == found


def test_a_gpu_whose_tool_fails_is_told_with_what_it_said():
    line = memory_of(None, "bert", complaint="NVIDIA-SMI has failed")
    assert line.found.startswith("nvidia-smi does not say (NVIDIA-SMI has failed); the largest takes 2.2 GB")


@pytest.fixture(scope="module")
def preflight():
    def asked(*arguments, **environment):
        return run(ROOT, "-m", "workflow_scripts", "preflight", *arguments, **environment)

    return asked


@pytest.fixture
def login_node(tmp_path):
    """A PATH with SLURM's commands, of a cluster whose nodes have less than 32 GB."""
    refusal = "*'--mem 32000'*) echo 'allocation failure: no such nodes' >&2; exit 1"
    said = {"sbatch": f'case "$*" in {refusal};; esac', "scontrol": "echo 'MinJobAge = 300 sec'"}
    for command in PLUGIN_CALLS:
        script = tmp_path / command
        script.write_text(f"#!/bin/sh\n{said.get(command, ':')}\n")
        script.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def test_the_demo_can_run_here(preflight, login_node):
    """And where there is a cluster that was not asked, that is said."""
    answer = preflight("--configfile", DEMO, PATH=login_node)
    assert answer.returncode == 0, answer.stdout
    lines = answer.stdout.splitlines()
    assert len(lines) < 13 and all(line.startswith("ok ") for line in lines[:-1])
    assert lines[-2:] == ["ok cluster: not asked; --profile slurm asks it", "It can run here to its end."]


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


def test_what_a_group_asks_for_together_is_checked(preflight, login_node):
    answer = preflight("--configfile", DEMO, "--profile", "slurm", PATH=login_node)
    assert answer.returncode == 1, answer.stdout
    said = "sbatch refuses --mem 32000: no such nodes. Name a partition with larger nodes in slurm/partitions.yaml"
    assert f"group evaluations: {said}" in answer.stdout


def test_a_profile_that_is_not_there_is_a_line(preflight):
    answer = preflight("--configfile", DEMO, "--profile", "slrum")
    assert answer.returncode == 2
    assert answer.stderr.strip() == (
        "ConfigError: --profile slrum: no folder slrum with a config.yaml here. Did you mean slurm?"
    )


def test_a_profile_is_named_where_it_lies(tmp_path, monkeypatch):
    """In another working directory, that of the clone by its path; config holds no profile."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ConfigError, match=rf"Known: {ROOT}/slurm\.$"):
        check_profile("slurm")
    (tmp_path / "config").mkdir()
    (tmp_path / "config/config.yaml").touch()
    with pytest.raises(ConfigError, match=rf"Known: {ROOT}/slurm\.$"):
        check_profile("conf")


def test_a_rule_that_a_loop_names_makes_no_other_a_local_one(tmp_path):
    (tmp_path / "rules").mkdir()
    text = "rule {}:\n    input: []\n    localrule: True\n\n\nrule {}:\n    input: []\n\n\nfor name in names:\n\n    rule:\n{}"
    loop = "        name: name\n        localrule: True\n"
    (tmp_path / "rules/a.smk").write_text(text.format("read", "train", loop))
    assert local_rules(tmp_path) == {"read"}
