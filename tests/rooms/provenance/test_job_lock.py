"""A job runs once at a time, possibly in several processes."""

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
    wait = f"{ACQUIRE}; import sys; print('held', file=sys.stderr, flush=True); sys.stdin.read()"
    with (
        log.open("w") as out,
        subprocess.Popen(
            [sys.executable, "-c", wait],
            stdin=subprocess.PIPE,
            stdout=out,
            stderr=subprocess.PIPE,
            cwd=ROOT,
            text=True,
        ) as running,
    ):
        assert running.stderr.readline() == "held\n"
        yield log
        running.communicate("")


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


def test_a_second_start_is_refused_but_not_other_processes_of_a_training(log):
    assert "this job is running already" in start(log)
    assert "this job is running already" in start(log, RANK="0")
    assert start(log, RANK="1") == ""
