"""The demo's graph, its trainings cut to a few steps, through a real queue by the command of the README."""

from pathlib import Path

import pytest

from tests.slurm.conftest import give_profile
from tests.support.short_demo import CONFIGS, SMOKE
from tests.support.snakemake_plans import copy_tree

pytestmark = pytest.mark.timeout(3900)  # each wait has a limit of its own


@pytest.fixture(scope="module")
def finished(start, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder where the graph has run."""
    folder = copy_tree(tmp_path_factory.mktemp("demo"))
    give_profile(folder)
    (folder / "config/smoke.yaml").write_text(SMOKE)
    code, printed = start(folder, "--configfile", *CONFIGS).ended(seconds=3600)
    assert code == 0, printed[-3000:]
    return folder


def test_the_graph_runs_to_its_report(finished, node):
    assert (finished / "results/demo/report.html").exists()
    states = {job.state for job in node.jobs() if job.name.startswith("rule_")}
    assert states == {"COMPLETED"}


def test_what_a_rule_asks_for_reaches_the_queue(finished, node):
    """GPU, memory, time and partition of a training, twice the time for two encoders; no GPU for others."""
    trainings = [job for job in node.jobs() if job.name.startswith("rule_train_encoder")]
    assert trainings
    assert {(job.partition, job.gpus, job.memory, job.limit, job.cpus) for job in trainings} == {
        ("gpu", 1, "16000M", limit, 1) for limit in ("8:00:00", "16:00:00")
    }
    (counting,) = (job for job in node.jobs() if job.name.startswith("rule_count_tokens"))
    assert (counting.partition, counting.gpus, counting.memory, counting.limit) == (
        "main",
        0,
        "4000M",
        "15:00",
    )


def test_small_jobs_share_a_place_in_the_queue(finished, node):
    """Four runs a job; cores and memory add up, and the time is that of the longest: two hours for two encoders."""
    evaluations = [job for job in node.jobs() if job.name.startswith("rule_evaluations")]
    made = list((finished / "results/demo/scores").glob("*/*/*/seed?.parquet"))
    assert len(made) == 13
    assert len(evaluations) <= 8
    assert max((job.cpus, job.gpus, job.limit) for job in evaluations) == (4, 0, "2:00:00")
    assert not [job for job in node.jobs() if job.name.startswith("rule_evaluate_sts")]
