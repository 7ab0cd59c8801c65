"""Requests that this cluster does not meet: each a line within seconds, with rule and remedy, and nothing is queued."""

import re
from contextlib import nullcontext
from pathlib import Path

import pytest

from tests.slurm.conftest import ASKS_THE_QUEUE, give_profile
from tests.slurm.node import ACCOUNT, Node

WRONG = {
    "large": 'mem="300GB"',
    "another_gpu": 'gpu=1, gpu_model="none", slurm_partition="gpu"',
    "another_partition": 'slurm_partition="none"',
    "long": "runtime=1441",
    "right": f'gpu=1, gpu_model="pretended", mem="256GB", runtime=1440, slurm_account="{ACCOUNT}"',
}
RULE = """
rule {name}:
    output: "{name}.txt"
    resources: {resources}
    shell: "touch {{output}}"
"""


@pytest.fixture(scope="module")
def refused(node: Node, start, tmp_path_factory):
    """Runs jobs with these resources; what is printed, once it has ended within seconds and queued nothing."""

    def run(silent: bool = False, **resources: str) -> str:
        folder: Path = tmp_path_factory.mktemp("wrong")
        give_profile(folder)
        rules = [RULE.format(name=name, resources=asked) for name, asked in resources.items()]
        targets = ", ".join(f'"{name}.txt"' for name in resources)
        target = f"rule all:\n    input: {targets}\n"
        (folder / "Snakefile").write_text(f"{ASKS_THE_QUEUE}\n{target}{''.join(rules)}")
        before = len(node.jobs())
        with node.silent() if silent else nullcontext():
            code, printed = start(folder).ended(seconds=60)
        assert code == 1, printed
        assert len(node.jobs()) == before
        return printed

    return run


def test_memory_gpu_partition_and_time_are_a_line_each(refused):
    printed = refused(**WRONG)
    found = dict(
        line.removeprefix("ConfigError: ").split(": ", 1)
        for line in printed.splitlines()
        if "rule " in line and ". Set " in line
    )
    asked = {name: re.search(r"sbatch refuses (.*): ([^:;]*);|$", line)[0] for name, line in found.items()}
    unavailable = "Requested node configuration is not available"
    assert "--mem 300000 " in asked["rule large"] and unavailable in asked["rule large"]
    assert "--gpus=none:1: " in asked["rule another_gpu"] and unavailable in asked["rule another_gpu"]
    assert "-p none " in asked["rule another_partition"]
    assert ": Invalid partition name specified;" in asked["rule another_partition"]
    assert found["rule long"].startswith(
        "asks for 24 h, and the limit of its partition is 24 h. Set its runtime"
    )
    assert len(found) == 4


def test_an_account_is_a_line(refused):
    printed = refused(only='slurm_account="none"')
    assert "slurm_account: accounting knows no account none; root has" in printed


def test_a_controller_that_is_silent_is_a_line(refused):
    """Within the time-outs of the executor plugin's own questions, which come first, and of this one."""
    printed = refused(silent=True, only="runtime=5")
    assert "SLURM: scontrol: " in printed and "Wait until slurmctld is up" in printed
