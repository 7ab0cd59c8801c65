"""A stranger's path: another user than root, a fresh clone, no key, no data, and no network on the compute node."""

import os
from collections.abc import Iterator

import pytest

from tests.slurm.node import HOST_ADDRESS, Node, UnavailableError
from tests.slurm.stranger import Stranger
from tests.support.snakemake_plans import DEMO

pytestmark = pytest.mark.timeout(3900)  # each call has a limit of its own

NOBODY = "http://127.0.0.1:9"
SCORE = "results/demo/scores/sts/lee/frozen_avg.minilm/seed0.parquet"
"""The demo's smallest part: an encoder that is pooled and evaluated."""


@pytest.fixture(scope="module")
def stranger(node: Node) -> Iterator[Stranger]:
    """The user, with a clone and what a site fills in."""
    made: Stranger | None = None
    try:
        made = Stranger(f"semblance{os.getpid()}", node.folder)
        node.add_user(made.name)
        made.get_clone()
        yield made
    except UnavailableError as reason:
        pytest.skip(f"no stranger on this machine: {reason}")
    finally:
        if made is not None:
            made.remove()


def test_a_score_of_the_demo_is_made_through_the_queue(stranger, node):
    asked = (
        "python",
        "-m",
        "workflow_scripts",
        "preflight",
        "--configfile",
        DEMO,
        "--profile",
        "slurm",
        "--offline",
    )
    ready = stranger.run(*asked, HF_ENDPOINT=NOBODY)
    assert ready.returncode == 0, ready
    assert "to start at" in ready.stdout
    made = stranger.run(
        "snakemake", "--profile", "slurm", "--configfile", DEMO, "--", SCORE, HF_ENDPOINT=NOBODY
    )
    assert made.returncode == 0, made.stderr[-3000:]
    assert (stranger.clone / SCORE).owner() == stranger.name
    jobs = node.jobs(stranger.name)
    assert jobs
    assert {job.state for job in jobs} == {"COMPLETED"}
    explained = stranger.run("python", "-m", "workflow_scripts", "explain", SCORE)
    assert explained.returncode == 0
    assert "build_frozen" in explained.stdout


def test_jobs_reach_the_controller_and_nothing_else(stranger, node):
    asked = f"ping -c1 -W2 {HOST_ADDRESS} >/dev/null 2>&1 || (exec 3<>/dev/tcp/{HOST_ADDRESS}/{node.ports['port']}) && echo controller; "
    asked += "(exec 3<>/dev/tcp/1.1.1.1/443) 2>/dev/null && echo Internet; true"
    done = stranger.run("srun", "--time", "1", "bash", "-c", asked, cwd=stranger.home)
    assert done.stdout.split() == ["controller"], done
