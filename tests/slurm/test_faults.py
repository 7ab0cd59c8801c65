"""What goes wrong in a queue: each fault is a clear line, costs no finished work, and a rerun goes on."""

import re
import signal
import subprocess
from pathlib import Path

import pytest

from tests.slurm.conftest import ASKS_THE_QUEUE, give_profile, jobs_of
from tests.slurm.node import Node, wait_for

WAIT = 300
"""Seconds for a job to begin or end; a busy machine takes a minute to start Snakemake three times."""

JOB = """
import sys, time
from pathlib import Path
from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.job import begin

kind, place = sys.argv[1:]
Path("code.json").write_text("{}")
files = {"wildcards": {}, "inputs": {"code": "code.json"}, "outputs": {}, "operational": {}}


def note(what):
    with Path(f"{kind}.noted").open("a") as file:
        file.write(f"{what}\\n")


with one_line_errors():
    begin("job", {"settings": {}, "packages": {}, "files": files})
    first = not Path(f"{kind}.noted").exists()
    note("began")
    if kind in ("cancelled", "slow") and first:
        time.sleep(300)
    if kind.startswith("failing"):
        sys.exit(1)
    if kind == "large":
        held = b"x" * 1_200_000_000
        time.sleep(15)
    while Path("hold").exists():
        time.sleep(0.1)
    Path(place).write_text("done")
    note("ended")
"""
RULE = """
rule {name}:
    output: "{name}.txt"
    log: "logs/{name}.log"
    resources: mem="800MB", runtime={minutes}
    shell: "python job.py {name} {{output}} >{{log}} 2>&1"
"""


def make_study(folder: Path, **minutes: int | str) -> Path:
    """A workflow of independent jobs, each with its limit in minutes or what computes it, under the project's own profile."""
    targets = ", ".join(f'"{name}.txt"' for name in minutes)
    rules = [RULE.format(name=name, minutes=limit) for name, limit in minutes.items()]
    (folder / "Snakefile").write_text(f"rule all:\n    input: {targets}\n{''.join(rules)}")
    (folder / "job.py").write_text(JOB)
    give_profile(folder)
    return folder


@pytest.fixture(scope="module")
def faulty(node: Node, start, tmp_path_factory) -> tuple[Path, int, str]:
    """Three jobs, each hit by a fault in its first try: cancelled, out of memory, out of time."""
    folder = make_study(
        tmp_path_factory.mktemp("faulty"),
        cancelled=5,
        large=5,
        slow="lambda wildcards, attempt: 1 if attempt == 1 else 10",
    )
    driver = start(folder, "--restart-times", "1")
    wait_for((folder / "cancelled.noted").exists, WAIT, "the job that is to be cancelled")
    (running,) = jobs_of(node, "rule_cancelled")
    subprocess.run(["scancel", str(running.number)], check=True)
    return folder, *driver.ended()


@pytest.mark.parametrize(("name", "state"), [("cancelled", "CANCELLED"), ("slow", "TIMEOUT")])
def test_a_job_that_was_cancelled_or_ran_out_of_time_is_tried_again(faulty, node, name, state):
    folder, _code, printed = faulty
    assert [job.state for job in jobs_of(node, f"rule_{name}")] == [state, "COMPLETED"]
    assert (folder / f"{name}.txt").read_text() == "done"
    assert state in printed


def test_a_job_out_of_memory_says_so_and_stops_no_other(faulty, node, start):
    """It fails as often as it is tried; SLURM's log has the limit. With more memory a rerun completes."""
    folder, code, printed = faulty
    assert code == 1
    tries = jobs_of(node, "rule_large")
    assert len(tries) == 2 and {job.state for job in tries} <= {"FAILED", "OUT_OF_MEMORY"}
    assert not (folder / "large.txt").exists()
    logs = "".join(log.read_text() for log in (folder / "logs/slurm/rule_large").rglob("*.log"))
    assert "exceeded memory limit" in logs
    assert "logs/slurm/rule_large" in printed
    code, printed = start(folder, "--set-resources", "large:mem=3GB").ended()
    assert code == 0, printed
    assert len(jobs_of(node, "rule_cancelled")) == 2  # finished work stays


def test_jobs_of_a_killed_driver_are_not_queued_again(node, start, tmp_path):
    """They go on, and the next run when they have ended."""
    folder = make_study(tmp_path, kept=5)
    (folder / "Snakefile").write_text(ASKS_THE_QUEUE + (folder / "Snakefile").read_text())
    (folder / "hold").touch()
    killed = start(folder)
    wait_for((folder / "kept.noted").exists, WAIT, "the job")
    killed.process.send_signal(signal.SIGKILL)
    killed.process.wait()
    code, printed = start(folder).ended()
    assert code == 1 and "LockException" in printed, printed
    assert start(folder, "--unlock").ended()[0] == 0
    code, printed = start(folder).ended()
    (running,) = jobs_of(node, "rule_kept")
    assert code == 1
    assert f"queue: still there from an earlier run: {running.number} running rule_kept. Wait" in printed
    (folder / "hold").unlink()
    wait_for(lambda: jobs_of(node, "rule_kept")[0].state == "COMPLETED", WAIT, "the job to end")
    code, printed = start(folder).ended()
    assert code == 0, printed
    assert len(jobs_of(node, "rule_kept")) == 1


def test_a_group_that_sbatch_refuses_says_why(node, start, tmp_path):
    """What no node has is a line before anything is submitted; what a second try asks for is left to sbatch's own words."""
    folder = make_study(tmp_path, failing=5, failing_too=5)
    text = ASKS_THE_QUEUE + (folder / "Snakefile").read_text().replace(
        "resources: ", "group: 'pair'\n    resources: "
    )
    (folder / "Snakefile").write_text(text.replace('"800MB"', '"200GB"'))
    code, printed = start(folder, "--group-components", "pair=2").ended()
    assert code == 1
    refusal = r"group pair: sbatch refuses .*--mem 400000 .*: Requested node configuration is not available; "
    assert re.search(refusal, printed), printed
    assert not jobs_of(node, "rule_pair")
    growing = 'lambda wildcards, attempt: "800MB" if attempt == 1 else "200GB"'
    (folder / "Snakefile").write_text(text.replace('"800MB"', growing))
    code, printed = start(folder, "--restart-times", "1", "--group-components", "pair=2").ended()
    assert code == 1
    assert "group pair failed: SLURM sbatch failed. The error message was 'sbatch: error: " in printed, (
        printed
    )
