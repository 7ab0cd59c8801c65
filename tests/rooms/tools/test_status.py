"""What a study is doing: what runs, what has failed and why, how far trainings are, how long the rest may take."""

import os
import subprocess
import sys
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from tests.planning import DEMO, ROOT
from tests.verbs import data, printed
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.place import note_call
from workflow_scripts.graph.queue import Queued, target_of
from workflow_scripts.planning.graph import Graph, PlannedJob
from workflow_scripts.tools import status

HOST = status.socket.gethostname()


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def job(rule, name):
    return PlannedJob(rule, {"run": name}, {}, [], [f"results/demo/{rule}/{name}/scores.parquet"],
               log=f"logs/demo/{rule}/{name}.log", times=f"benchmarks/demo/{rule}/{name}.tsv")  # fmt: skip


def write(path, text, age=0.0):
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    os.utime(path, (time.time() - age, time.time() - age))


@pytest.fixture
def process():
    """Processes: one that looks like a job's, and one that does not."""
    started = [
        subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)", name])
        for name in ("workflow_scripts.jobs.toy", "another program")
    ]
    while not all(Path(f"/proc/{one.pid}/cmdline").read_bytes() for one in started):
        time.sleep(0.01)
    yield started
    for one in started:
        one.kill()
        one.wait()


def test_jobs_are_sorted_by_what_their_files_and_the_queue_say(here, process):
    names = ("broken", "alive", "gone", "new", "again", "waits", "tried")
    jobs = {name: job("toy", name) for name in names}
    for name, one in jobs.items():
        if name not in ("new", "waits"):
            write(one.log, f"first\nlast of {name}\n\n", age=50)
    write(f"{jobs['alive'].log}.lock", f"process {process[0].pid} on {HOST}")
    write(f"{jobs['gone'].log}.lock", f"process {process[1].pid} on {HOST}")
    write(jobs["again"].times, "", age=30)  # it ended well, and an edit brings it back
    targets = frozenset(target_of("toy", {"run": name}) for name in ("waits", "tried"))
    found = status.look(jobs.values(), [Queued("8", "PENDING", "rule_x", targets, 3)])
    assert {one.job.wildcards["run"]: (one.state, one.said) for one in found} == {
        "broken": ("failed", "last of broken"),
        "alive": ("running", "last of alive"),
        "gone": ("failed", "last of gone"),
        "new": ("to come", ""),
        "again": ("to come", ""),
        "waits": ("queued", "SLURM job 8 is pending, try 3"),
        "tried": ("queued", "SLURM job 8 is pending, try 3"),
    }


def test_a_job_of_another_machine_runs_as_long_as_it_says_something(here):
    one = job("toy", "a")
    write(one.log, "", age=3000)
    write(f"{one.log}.lock", "process 1 on elsewhere", age=3000)
    assert status.look([one])[0].state == "failed"
    write(one.log, "step 3")
    assert status.look([one])[0].state == "running"


def test_a_failed_job_shows_its_error_and_not_what_came_after(here):
    broken = job("toy", "broken")
    error = "torch.OutOfMemoryError: CUDA"
    write(broken.log, f"Traceback (most recent call last):\n{error}\nwarning: a worker was left\n\n")
    limit = "slurmstepd: error: *** STEP 5.0 ON vm CANCELLED DUE TO TIME LIMIT ***"
    write("logs/slurm/rule_toy/broken/4.log", "Killed", age=60)
    write("logs/slurm/rule_toy/broken/5.log", f"{limit}\nsrun: error: vm: task 0: Terminated\n")
    assert status.look([broken])[0].said == error
    write(broken.log, "step 7 of 9\r")
    assert status.look([broken])[0].said == limit


@pytest.fixture
def demo(here, monkeypatch):
    """A study of which two jobs are done, one has failed and one has not begun."""
    error = f"RuntimeError: {'found ' * 60}at the very end"
    broken, new = job("toy", "broken"), job("toy", "new")
    for name, seconds in (("one", 60), ("two", 180)):
        write(job("toy", name).times, f"s\n{seconds}\n")
    write(broken.log, f"{error}\n")
    monkeypatch.setattr(status, "planned", lambda *_, **__: Graph([broken, new]))
    return error


def test_what_is_left_is_estimated_by_what_is_done(demo):
    code, found = data("status", "results/demo")
    assert code == 1 and found["verdict"] == "demo: 2 done, 1 failed, 1 to come"
    counts = dict.fromkeys(status.STATES) | {"done": 2, "failed": 1, "to come": 1}
    assert found["jobs"] == [{"rule": "toy", **counts}]
    assert "about 4 min of work left, one job after the other\n" in printed("status", "demo")[1]


def test_a_pipe_gets_whole_lines(demo, monkeypatch):
    """Eighty columns would cut the rest of a line; that the queue does not answer is said."""

    monkeypatch.delenv("COLUMNS", raising=False)
    monkeypatch.setattr(status.shutil, "which", lambda _name: "squeue")
    monkeypatch.setattr(
        status, "queued_here", Mock(side_effect=ConfigError("SLURM: squeue: no answer. Wait."))
    )
    shown = printed("status", "demo")[1]
    assert "What waits in a queue is not shown. SLURM: squeue: no answer. Wait." in shown.splitlines()
    assert f"{demo} (logs/demo/toy/broken.log)" in shown


def test_a_study_is_read_as_it_was_run_last(here):
    def files(study, configfiles=()):
        return status.configuration_of(study, configfiles)[1].configfiles

    with pytest.raises(ConfigError, match="no study was run in this folder"):
        files(None)
    assert files("paper") == [] and files("demo") == [str(ROOT / DEMO)]
    Path("warmer.yaml").write_text("training: {max_steps: 3}\n")
    note_call("demo", [ROOT / DEMO, Path("warmer.yaml").absolute()], {"offline": True})
    last = ("demo", ([str(ROOT / DEMO), "warmer.yaml"], {"offline": True}))
    assert status.configuration_of("demo", []) == status.configuration_of(None, []) == last
    assert files("demo", [str(ROOT / DEMO)]) == [str(ROOT / DEMO)]
    with pytest.raises(
        ConfigError, match=r"mine: it was not run here, and there is no config/mine.yaml. Give"
    ):
        files("mine")
    with pytest.raises(ConfigError, match=r"dmeo: .* by --configfile\. Did you mean demo\?"):
        files("dmeo")
