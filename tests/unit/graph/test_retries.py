"""What a new try asks for, by what SLURM has written of those before it."""

import os
import re

import pytest

from tests.planning import ROOT
from tests.unit.graph.test_memory import Study
from workflow_scripts.graph.memory import Memory
from workflow_scripts.graph.retries import LOGS, killed_for_memory
from workflow_scripts.graph.workloads import Workloads

KILLED = (
    "slurmstepd: error: StepId=12.0 exceeded memory limit (472436736 > 471859200), being killed",
    "slurmstepd: error: Detected 1 oom_kill event in StepId=12.batch. Some of the step tasks have been OOM Killed.",
    "slurmstepd: error: Detected 3 oom-kill event(s) in StepId=12.0 cgroup.",
)
ENDED = "slurmstepd: error: *** JOB 12 ON gpu1 CANCELLED AT 2026-11-22T12:00:00 DUE TO TIME LIMIT ***"


class Wildcards:
    """As Snakemake's: values in their order, names with values, and each by its name."""

    def __init__(self, **values):
        self._values = values
        self.__dict__ |= values

    def __iter__(self):
        return iter(self._values.values())

    def items(self):
        return self._values.items()


JOB = Wildcards(run="small", seed="1")


@pytest.fixture
def log(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)

    def write(number, text, wildcards="small_1"):
        file = LOGS / "rule_train_encoder" / wildcards / f"{number}.log"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"much else\n{text}\n")
        os.utime(file, (number, number))

    return write


@pytest.mark.parametrize("line", KILLED)
def test_a_try_that_was_killed_for_its_memory_doubles_the_next(log, line):
    log(1, line)
    assert killed_for_memory(JOB, 2) == 1
    request = Memory(Study(), Workloads(Study())).training(16)
    assert (request(JOB), request(JOB, attempt=2)) == ("16GB", "32GB")
    assert Memory.usual(4)(JOB, attempt=2) == "8GB"
    log(2, line)
    assert request(JOB, attempt=3) == "64GB"


@pytest.mark.parametrize(("seed", "tries"), [("1", 1), ("12", 0), ("2", 0)])
def test_a_group_that_was_killed_for_its_memory_has_its_jobs_ask_for_more(tmp_path, monkeypatch, seed, tries):
    """Its log names all jobs in it, as Snakemake prints them."""
    monkeypatch.chdir(tmp_path)
    file = LOGS / "group_scores" / "8d0e" / "1.log"
    file.parent.mkdir(parents=True)
    jobs = "".join(f"    jobid: 0\n    wildcards: run={run}, seed=1\n" for run in ("large", "small"))
    file.write_text(f"{jobs}    resources: mem_mb=4000\n{KILLED[0]}\n")
    assert killed_for_memory(Wildcards(run="small", seed=seed), 2) == tries


def test_another_reason_another_job_and_an_older_run_change_nothing(log):
    log(1, KILLED[0])  # of a run before, which has been mended since
    log(2, ENDED)
    log(3, KILLED[0], wildcards="large_1")
    assert killed_for_memory(JOB, 2) == 0
    assert killed_for_memory(JOB, 1) == 0


def test_without_slurm_nothing_is_known(log):
    assert killed_for_memory(JOB, 3) == 0


def test_the_memory_of_every_rule_grows():
    rules = "".join(path.read_text() for path in (ROOT / "rules").glob("*.smk"))
    asked = re.findall(r"^ +mem=(.*)$", rules, flags=re.MULTILINE)
    assert len(asked) > 30 and all(request.startswith("MEMORY.") for request in asked)
