"""Requests that this cluster does not meet, in the words of its sbatch, and nothing is queued."""

import pytest

from tests.slurm import node as nodes
from tests.slurm.node import ACCOUNT, PREFIX, Node
from workflow_scripts.verbs.plan import PlannedJob
from workflow_scripts.verbs.preflight import Site, requests_of, slurm_answers

UNAVAILABLE = "Requested node configuration is not available"
ASKED = {
    "right": (
        {"gpu": 1, "gpu_model": "pretended", "mem_mb": 256_000, "runtime": 1440, "slurm_account": ACCOUNT},
        "",
    ),
    "large": ({"mem_mb": 300_000}, UNAVAILABLE),
    "another_gpu": ({"gpu": 1, "gpu_model": "none"}, UNAVAILABLE),
    "another_partition": ({"slurm_partition": "none"}, "invalid partition specified"),
    "another_account": ({"slurm_account": "none"}, "Invalid account or account/partition combination"),
}


def test_each_bad_request_is_refused_with_a_reason(node: Node):
    """Memory, GPU, partition and account are each refused with a reason."""
    jobs = [PlannedJob(rule, {}, {}, [], [], queued=asked) for rule, (asked, _) in ASKED.items()]
    before = node.jobs()
    said = [*slurm_answers(requests_of(jobs, Site({}, {}, ["main", "gpu"])))]
    for (rule, (_, refusal)), (good, line) in zip(ASKED.items(), said, strict=True):
        assert good == (not refusal), line
        assert line.startswith(f"rule {rule}: sbatch --")
        assert (refusal or " to start at ") in line, line
    assert node.jobs() == before


@pytest.mark.parametrize(("folder", "taken"), [(f"{PREFIX}killed", False), ("site", True)])
def test_a_killed_session_of_tests_is_no_cluster(tmp_path, monkeypatch, folder, taken):
    """A killed session of these tests is no cluster of this machine."""
    link, config = tmp_path / "slurm.conf", tmp_path / folder / "slurm.conf"
    monkeypatch.setattr(nodes, "ETC", link)
    assert not nodes.is_taken()
    config.parent.mkdir()
    config.touch()
    link.symlink_to(config)
    assert nodes.is_taken() == taken
