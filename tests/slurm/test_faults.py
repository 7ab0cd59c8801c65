"""Faults of a queue: each is a clear line, costs no finished work, and a rerun continues."""

import signal
import subprocess
from pathlib import Path

import pytest

from tests.slurm.conftest import give_profile, jobs_of
from tests.slurm.node import Node, wait_for

pytestmark = pytest.mark.timeout(3900)  # each wait has a limit of its own

WAIT = 300
"""Seconds for a job to begin or end; a busy machine takes a minute to start Snakemake three times."""

JOB = """
import sys, time
from pathlib import Path
from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.job import begin

kind, place = sys.argv[1:]
Path("code.json").write_text("{}")
files = {"wildcards": {}, "inputs": {"code": "code.json"}, "outputs": {}, "operational": {"workplace": {"cache": None, "cache_gigabytes": 1, "answer_store": "", "data_root": None, "offline": False}}}


def note(what):
    with Path(f"{kind}.noted").open("a") as file:
        file.write(f"{what}\\n")


with one_line_errors():
    begin("job", {"cached": True, "portable": False, "settings": {}, "packages": {}, "files": files})
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


def test_a_job_that_was_cancelled_is_tried_again(node: Node, start, tmp_path):
    folder = make_study(tmp_path, cancelled=5)
    driver = start(folder, "--restart-times", "1")
    wait_for((folder / "cancelled.noted").exists, WAIT, "the job that is to be cancelled")
    (running,) = jobs_of(node, "rule_cancelled")
    subprocess.run(["scancel", str(running.number)], check=True)
    code, printed = driver.ended()
    assert code == 0, printed
    assert "CANCELLED" in printed
    assert [job.state for job in jobs_of(node, "rule_cancelled")] == ["CANCELLED", "COMPLETED"]
    assert (folder / "cancelled.txt").read_text() == "done"


@pytest.fixture(scope="module")
def faulty(node: Node, start, tmp_path_factory) -> tuple[Path, int, str]:
    """Two jobs, each hit by a fault in its first try: out of memory, out of time."""
    longer = "lambda wildcards, attempt: 1 if attempt == 1 else 10"
    folder = make_study(tmp_path_factory.mktemp("faulty"), large=5, slow=longer)
    return folder, *start(folder, "--restart-times", "1").ended()


def test_a_job_out_of_time_is_tried_again(faulty, node):
    folder, _code, printed = faulty
    assert [job.state for job in jobs_of(node, "rule_slow")] == ["TIMEOUT", "COMPLETED"]
    assert (folder / "slow.txt").read_text() == "done"
    assert "TIMEOUT" in printed


def test_a_job_out_of_memory_says_so_and_stops_no_other(faulty, node, start):
    """The job fails at every attempt, and SLURM's log has the limit. With more memory a rerun completes."""
    folder, code, printed = faulty
    assert code == 1
    tries = jobs_of(node, "rule_large")
    assert len(tries) == 2
    assert {job.state for job in tries} <= {"FAILED", "OUT_OF_MEMORY"}
    assert not (folder / "large.txt").exists()
    logs = "".join(log.read_text() for log in (folder / "logs/slurm/rule_large").rglob("*.log"))
    assert "exceeded memory limit" in logs
    assert "logs/slurm/rule_large" in printed
    code, printed = start(folder, "--set-resources", "large:mem=3GB").ended()
    assert code == 0, printed
    assert len(jobs_of(node, "rule_slow")) == 2  # finished work stays


def test_jobs_of_a_killed_driver_are_used_by_the_next_run(node, start, tmp_path):
    """Jobs of a killed driver go on and are used by the next run."""
    folder = make_study(tmp_path, kept=5)
    (folder / "hold").touch()
    killed = start(folder)
    wait_for((folder / "kept.noted").exists, WAIT, "the job")
    killed.process.send_signal(signal.SIGKILL)
    killed.process.wait()
    code, printed = start(folder).ended()
    assert code == 1, printed
    assert "LockException" in printed
    assert start(folder, "--unlock").ended()[0] == 0
    (folder / "hold").unlink()
    wait_for(lambda: jobs_of(node, "rule_kept")[0].state == "COMPLETED", WAIT, "the job to end")
    code, printed = start(folder).ended()
    assert code == 0, printed
    assert len(jobs_of(node, "rule_kept")) == 1
