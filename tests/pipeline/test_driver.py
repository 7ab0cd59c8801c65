"""Snakemake killed, jobs left behind: no job runs twice at a time, and a rerun completes."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.support.snakemake_plans import ROOT, run

SNAKEFILE = """
from workflow_scripts.graph.console import report_failures

report_failures()

rule all:
    input: "b.txt"
rule first:
    output: "a.txt"
    log: "logs/first.log"
    shell: "python job.py a.txt >{log} 2>&1"
rule second:
    input: "a.txt"
    output: "b.txt"
    log: "logs/second.log"
    shell: "python job.py b.txt >{log} 2>&1"
"""
JOB = """
import os, sys, time
from pathlib import Path
from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.job import begin
place = Path(sys.argv[1])
Path("code.json").write_text("{}")
files = {"wildcards": {}, "inputs": {"code": "code.json"}, "outputs": {}, "operational": {"workplace": {"cache": None, "cache_gigabytes": 1, "answer_store": "", "data_root": None, "offline": False}}}
with one_line_errors():
    begin("job", {"cached": True, "portable": False, "settings": {}, "packages": {}, "files": files})
    with Path("started").open("a") as file:
        file.write(f"{place} {os.getpid()}\\n")
    while Path("hold").exists():
        time.sleep(0.05)
    place.write_text("done")
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "Snakefile").write_text(SNAKEFILE)
    (tmp_path / "job.py").write_text(JOB)
    (tmp_path / "hold").touch()
    shutil.copytree(ROOT / "profiles", tmp_path / "profiles")
    yield tmp_path
    (tmp_path / "hold").unlink(missing_ok=True)  # for which a job waits that outlives a failed test


def ended(folder, *options):
    """Exit code and output of a whole run."""
    done = run(folder, "-m", "snakemake", "--cores", "1", *options, PYTHONPATH=str(ROOT))
    return done.returncode, done.stdout + done.stderr


def wait_for(condition):
    for _ in range(1200):
        if condition():
            return
        time.sleep(0.1)
    raise AssertionError("waited two minutes")


def started(folder):
    """Process ids of the jobs that began, once there is one."""
    wait_for(lambda: (folder / "started").exists() and (folder / "started").read_text().endswith("\n"))
    return [int(line.split()[1]) for line in (folder / "started").read_text().splitlines()]


def test_a_job_that_outlives_snakemake_is_not_run_a_second_time(folder):
    """Kill -9 of Snakemake leaves the job running; the next run says so, and completes once the job has ended."""
    command = [sys.executable, "-m", "snakemake", "--cores", "1"]
    driver = subprocess.Popen(command, cwd=folder, env=os.environ | {"PYTHONPATH": str(ROOT)})
    (orphan,) = started(folder)
    driver.kill()
    driver.wait()
    assert Path(f"/proc/{orphan}").exists()
    assert ended(folder, "--unlock")[0] == 0
    code, printed = ended(folder)
    assert code == 1
    assert f"this job is already running, process {orphan} on " in printed
    assert "Traceback" not in printed
    assert len(started(folder)) == 1
    (folder / "hold").unlink()
    wait_for(lambda: not Path(f"/proc/{orphan}").exists())
    code, printed = ended(folder)
    assert code == 0, printed
    assert (folder / "b.txt").read_text() == "done"
