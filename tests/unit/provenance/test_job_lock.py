"""Of one job two may not run at a time, but several processes may share one."""

import fcntl
import os
import subprocess
import sys

import pytest

from workflow_scripts.provenance.closure import ROOT

ACQUIRE = "from workflow_scripts.provenance import job; job._acquire_job_lock()"


@pytest.fixture
def log(tmp_path):
    """The log of a job that is running."""
    log = tmp_path / "job.log"
    lock = (tmp_path / "job.log.lock").open("w")
    fcntl.flock(lock, fcntl.LOCK_EX)
    yield log
    lock.close()


def start(log, **environment):
    """The error of another process that writes into the same log."""
    with log.open("w") as out:
        ended = subprocess.run(
            [sys.executable, "-c", ACQUIRE],
            stdout=out,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            env=os.environ | environment,
            text=True,
            check=False,
        )
    return ended.stderr


def test_a_second_start_of_a_job_is_refused(log):
    assert "this job is running already" in start(log)


def test_the_other_processes_of_a_training_on_several_gpus_are_not(log):
    assert "this job is running already" in start(log, RANK="0")
    assert start(log, RANK="1") == ""
