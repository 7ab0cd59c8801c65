"""Preflight: green where a study can run, red with a remedy where it cannot."""

import os

import pytest

from tests.planning import DEMO, ROOT, run
from workflow_scripts.graph.queue import PLUGIN_CALLS
from workflow_scripts.tools.preflight import disk_findings, local_rules, package_findings


def test_a_package_of_another_version_is_named(tmp_path):
    lock = tmp_path / "requirements.lock"
    lock.write_text("# pinned\npytest==0.1\nno-such-package==1.0\n")
    (line,) = package_findings(lock)
    assert line == (
        f"packages: pytest {pytest.__version__}, pinned 0.1; no-such-package not installed, pinned 1.0. "
        "Run pip install -r requirements.lock in .venv."
    )
    lock.write_text(f"pytest=={pytest.__version__}\n")
    assert not list(package_findings(lock))


def test_a_full_disk_is_red():
    assert not list(disk_findings(10.0, 20.0))
    assert "20 GB free, about 1,000 GB planned. Free some" in next(disk_findings(1000.0, 20.0))


@pytest.fixture(scope="module")
def preflight():
    def asked(*arguments, **environment):
        return run(ROOT, "-m", "workflow_scripts", "preflight", *arguments, **environment)

    return asked


@pytest.fixture
def login_node(tmp_path):
    """A PATH with SLURM's commands, of a cluster whose nodes have less than 32 GB."""
    refusal = "*'--mem 32000'*) echo 'allocation failure: no such nodes' >&2; exit 1"
    said = {
        "sbatch": f'case "$*" in {refusal};; esac',
        "scontrol": "echo 'PartitionName=main Default=YES MaxTime=UNLIMITED MinJobAge = 300'",
    }
    for command in PLUGIN_CALLS:
        script = tmp_path / command
        script.write_text(f"#!/bin/sh\n{said.get(command, ':')}\n")
        script.chmod(0o755)
    return f"{tmp_path}:{os.environ['PATH']}"


def test_the_demo_can_run_here(preflight):
    answer = preflight("--configfile", DEMO)
    assert answer.returncode == 0, answer.stdout
    *lines, said = answer.stdout.splitlines()
    assert len(lines) == 4 and all(line.startswith("ok ") for line in lines)
    assert said == "It can run here to its end."


def test_every_mistake_of_a_configuration_is_a_red_line(preflight, tmp_path):
    overlay = tmp_path / "overlay.yaml"
    overlay.write_text("answers: /x\nextraction: {bias_list: brt}\n")
    answer = preflight("--configfile", DEMO, str(overlay))
    assert answer.returncode == 1
    red = [line for line in answer.stdout.splitlines() if line.startswith("no ")]
    assert [line.split(": ")[0] for line in red] == ["no answers", "no extraction.bias_list"]
    assert red[1].endswith("Did you mean bert?")


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["dmo"], "no dmo: no rule makes it. Did you mean demo?"),
        (["--profile", "slrum"], "no snakemake's dry run"),
    ],
)
def test_what_snakemake_cannot_plan_is_a_red_line(preflight, arguments, found):
    answer = preflight(*arguments, "--configfile", DEMO)
    assert answer.returncode == 1 and found in answer.stdout, answer


@pytest.mark.slow
def test_what_a_group_asks_for_together_is_checked(preflight, login_node):
    answer = preflight("--configfile", DEMO, "--profile", "slurm", PATH=login_node)
    assert answer.returncode == 1, answer.stdout
    assert "no group evaluations: sbatch refuses " in answer.stdout
    assert ": no such nodes; the cluster has partitions main. Set what" in answer.stdout


def test_a_rule_that_a_loop_names_makes_no_other_a_local_one(tmp_path):
    (tmp_path / "rules").mkdir()
    text = "rule {}:\n    input: []\n    localrule: True\n\n\nrule {}:\n    input: []\n\n\nfor name in names:\n\n    rule:\n{}"
    loop = "        name: name\n        localrule: True\n"
    (tmp_path / "rules/a.smk").write_text(text.format("read", "train", loop))
    assert local_rules(tmp_path) == {"read"}
