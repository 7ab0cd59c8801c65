"""The requests that SLURM tests before anything is submitted, and its words."""

import pytest

from tests.support.snakemake_plans import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.verbs import preflight
from workflow_scripts.verbs.plan import PlannedJob
from workflow_scripts.verbs.preflight import Site, requests_of, site_of, slurm_answers

SMALL = {"mem_mb": 2000, "runtime": 30, "_cores": 1}
SITE = Site({"evaluate_sts": "evaluations"}, {"evaluations": 4}, [])


def jobs(rule, *asked):
    return [PlannedJob(rule, {}, {}, [], [], queued=one) for one in asked]


def test_each_distinct_request_is_made_once():
    """Each distinct request is made once and jobs of this machine make none."""
    asked = [
        *jobs("a", SMALL, SMALL),
        *jobs("b", SMALL, SMALL | {"gpu": 2}),
        *jobs("c", SMALL | {"downloads": 1}),
    ]
    assert requests_of(asked, SITE) == {
        ("--time=30", "--mem=2000", "--cpus-per-task=1"): {"rule a", "rule b"},
        ("--time=30", "--mem=2000", "--cpus-per-task=1", "--gpus=2"): {"rule b"},
    }


def test_a_group_asks_for_the_sum_of_its_largest_jobs():
    large = {"mem_mb": 12_000, "runtime": 120, "_cores": 2}
    (request,) = requests_of(jobs("evaluate_sts", *[SMALL] * 5, large), SITE)
    assert request == ("--time=120", "--mem=18000", "--cpus-per-task=5")
    (alone,) = requests_of(jobs("evaluate_sts", SMALL), SITE)
    assert alone == ("--time=30", "--mem=2000", "--cpus-per-task=1")


def test_the_delivered_profile_is_read_as_snakemake_does(monkeypatch, tmp_path):
    """The profile as it is delivered is read as Snakemake reads it."""
    monkeypatch.chdir(ROOT)
    found = site_of("slurm")
    assert found.groups["evaluate_sts"] == "evaluations"
    assert found.components["evaluations"] == 4
    assert site_of("profiles/default") is None
    (tmp_path / "config.yaml").write_text(
        "executor: slurm\njobs: 1\nslurm-partition-config: partitions.yaml\n"
    )
    (tmp_path / "partitions.yaml").write_text("partitions:\n  main {max_runtime: 1440}\n")
    with pytest.raises(ConfigError, match=r"/partitions\.yaml\.partitions\.main .*block of keys"):
        site_of(str(tmp_path))


@pytest.fixture
def sbatch(tmp_path, monkeypatch):
    """A function that puts a program of that name onto an otherwise empty PATH."""
    monkeypatch.setenv("PATH", str(tmp_path))

    def write(text):
        (tmp_path / "sbatch").write_text(f"#!/bin/sh\n{text}\n")
        (tmp_path / "sbatch").chmod(0o755)

    return write


ASKED = {("--mem=2000",): {"rule b", "rule a"}, ("--mem=32000",): {"group evaluations"}}


def test_the_words_of_sbatch_are_shown_with_a_remedy(sbatch):
    """The words of sbatch are shown with the request and a remedy if it refuses."""
    refusal = "echo 'sbatch: error: allocation failure: no such nodes.' >&2; exit 1"
    sbatch(f'case "$*" in *--mem=32000*) {refusal};; esac\necho "sbatch: Job 7 to start at noon" >&2')
    assert [*slurm_answers(ASKED)] == [
        (True, "rule a, rule b: sbatch --mem=2000: Job 7 to start at noon"),
        (
            False,
            "group evaluations: sbatch --mem=32000: error: allocation failure: no such nodes. Change its resources in "
            "set-resources of slurm/config.yaml, or its partition in slurm/partitions.yaml.",
        ),
    ]


def test_without_slurm_or_its_answer_there_is_one_line(sbatch, monkeypatch):
    ((good, line),) = slurm_answers(ASKED)
    assert not good
    assert line.startswith("SLURM: no sbatch on the PATH. Run this on a login node")
    monkeypatch.setattr(preflight, "SECONDS", 0.2)
    sbatch("while :; do :; done")
    ((good, line),) = slurm_answers(ASKED)
    assert not good
    assert line == "SLURM: sbatch did not answer within 0.2 s. Wait until slurmctld is up."
