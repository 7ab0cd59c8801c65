"""Running jobs are told from those that have ended, were killed or are silent, by files beside their logs."""

import atexit
import os
import pty
import re
import signal
import subprocess
import sys
import time
from contextlib import closing, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tests.support.snakemake_plans import ROOT
from tests.support.training_jobs import in_child
from tests.support.verb_answers import data, printed
from workflow_scripts.graph.notes import note_call
from workflow_scripts.provenance.running import acquire_lock
from workflow_scripts.training.following import COLUMNS

HERE = os.uname().nodename


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "logs/study").mkdir(parents=True)
    return tmp_path


@pytest.fixture
def living(folder):
    """The number of a process that looks like a job."""
    command = [sys.executable, "-c", "print(flush=True); input()", "workflow_scripts.jobs"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        process.stdout.readline()  # it has its command line only once it has begun
        yield process.pid
        process.kill()


def write_job(name, process, host=HERE, *, rows=(), quiet=0, lasted=3600):
    """Files of a job that began some seconds before its last sign, which was some seconds ago."""
    log = Path(f"logs/study/{name}.log")
    log.parent.mkdir(parents=True, exist_ok=True)
    now = datetime.now(UTC)
    since = (now - timedelta(seconds=lasted + quiet)).isoformat(timespec="seconds")
    log.write_text("")
    Path(f"{log}.lock").write_text(f"process {process} on {host} since {since}")
    if rows:
        lines = [",".join(COLUMNS), *(",".join(map(str, row)) for row in rows)]
        log.with_suffix(".csv").write_text("".join(f"{line}\n" for line in lines))
    for path in log.parent.glob(f"{log.stem}.*"):
        os.utime(path, (now.timestamp() - quiet,) * 2)


def row(step, score="", *, steps=300, loss=0.5, rate=2.0, written=None):
    return (step, steps, loss, 1e-5, 1.5, score, rate, written or f"2026-11-28T12:00:{step:02}+00:00")


def jobs_of(*words):
    """Exit code and verdict, and the rows of ``--json`` by rule and job."""
    code, said = data("watch", *words)
    return code, said["verdict"], {f"{one['rule']}/{one['job']}": one for one in said["jobs"]}


def test_a_training_is_shown_with_speed_and_time_left(living):
    """A training is shown with step, scores, speed and time left."""
    rows = [row(1), row(2, 0.7), row(3, 0.6, rate=0.5), row(4, loss=0.25, rate=2)]
    write_job("train_encoder/simcse/seed1", living, rows=rows)
    code, verdict, jobs = jobs_of()
    assert (code, verdict) == (0, "jobs: 1 running")
    one = jobs["train_encoder/simcse/seed1"]
    per_second = 4 / (0.5 + 0.5 + 2 + 0.5)  # a slow step, as with an evaluation, counts by its time
    assert one["minutes_left"] == pytest.approx(296 / per_second / 60)
    assert one["steps_per_second"] == pytest.approx(per_second)
    known = {
        "study": "study",
        "state": "running",
        "step": 4,
        "steps": 300,
        "loss": 0.25,
        "best_dev_score": 0.7,
    }
    assert one.items() >= known.items()
    assert one["share"] == pytest.approx(4 / 300)
    shown = printed("watch", "--once")[1]
    for text in ("study/train_encoder/simcse/seed1", "4 of 300", "1%", "0.25", "0.7", "1.143", "0:04:19"):
        assert text in shown


def test_rows_half_written_or_without_timing_count(living):
    """Rows that are half written or without timing count as they can."""
    table = Path("logs/study/continue_mlm/a.csv")
    write_job("continue_mlm/a", living, rows=[(*row(1)[:6], "", ""), row(2)])
    with table.open("a") as file:
        file.write("3,300,0.")
    _, _, jobs = jobs_of()
    assert (jobs["continue_mlm/a"]["step"], jobs["continue_mlm/a"]["steps_per_second"]) == (2, 2.0)


def test_rows_of_the_job_as_it_ran_before_are_not_shown(living):
    write_job("train_encoder/a", living, rows=[row(300)], lasted=10)
    os.utime("logs/study/train_encoder/a.csv", (time.time() - 60,) * 2)
    _, _, jobs = jobs_of()
    assert jobs["train_encoder/a"]["step"] is None
    assert jobs["train_encoder/a"]["state"] == "running"


def test_jobs_of_this_machine_are_told_apart_by_their_processes(living):
    write_job("train_encoder/running", living, quiet=7200)
    write_job("train_encoder/died", 2**22 + 1, rows=[row(5)])
    write_job("train_encoder/another program has its number", os.getpid())
    write_job("train_encoder/died long ago", 2**22 + 1, quiet=100_000)
    code, verdict, jobs = jobs_of("study")
    states = {name.partition("/")[2]: one["state"] for name, one in jobs.items()}
    assert states == {"running": "running", "died": "died", "another program has its number": "died"}
    assert (code, verdict) == (1, "jobs: 1 running, 2 died")
    assert jobs["train_encoder/died"]["minutes_left"] is None


@pytest.mark.parametrize(
    ("rows", "quiet", "state"),
    [
        ([row(1)], 60, "running"),
        ([row(1)], 200, "silent"),
        ([row(1), row(2, rate=0.02)], 400, "running"),  # it took 50 seconds for a step
        ([row(1), row(2, rate=0.02)], 600, "silent"),
        (
            [row(n, rate=1, written="2026-11-28T12:00:00+00:00") for n in range(1, 51)],
            400,
            "running",
        ),  # of a GPU
        ([], 3000, "running"),
        ([], 4000, "silent"),
    ],
)
def test_a_silent_job_of_another_machine_is_told(folder, rows, quiet, state):
    """A job of another machine is silent if it writes nothing for long."""
    write_job("train_encoder/a", 1, "node7", rows=rows, quiet=quiet)
    code, _, jobs = jobs_of()
    assert (jobs["train_encoder/a"]["state"], jobs["train_encoder/a"]["host"]) == (state, "node7")
    assert code == (state == "silent")


def test_a_job_is_listed_until_it_ends_and_if_it_is_killed(folder):
    log = folder / "logs/study/make_table/demo.log"
    log.parent.mkdir()

    def act(end):
        sys.argv = ["workflow_scripts.jobs"]
        os.environ["RANK"] = "0"
        acquire_lock()
        sys.stdout.write(Path(f"{log}.lock").read_text())
        sys.stdout.flush()
        end()

    def finish():
        atexit._run_exitfuncs()  # as Python does at the end of a process of its own

    assert in_child(lambda: act(finish), log) == 0
    assert Path(f"{log}.lock").read_bytes() == b""
    assert jobs_of()[1] == "jobs: none running"
    assert in_child(lambda: act(lambda: os.kill(os.getpid(), signal.SIGKILL)), log) == -signal.SIGKILL
    assert jobs_of()[2]["make_table/demo"]["state"] == "died"
    assert re.fullmatch(rf"(process \d+ on {HERE} since \S+?:00){{2}}", log.read_text())


def test_without_logs_it_says_where_to_call_it(folder):
    assert jobs_of() == (0, "jobs: none running", {})
    asked = subprocess.run(
        [sys.executable, "-m", "workflow_scripts", "watch", "other"],
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert asked.returncode == 2
    assert asked.stderr.startswith("DataError: logs/other: no such folder.")


def test_a_study_that_has_begun_may_have_no_logs_yet(folder):
    note_call("begun", [], {})
    assert jobs_of("begun") == (0, "jobs: none running", {})


def test_in_a_terminal_the_table_is_renewed_until_ctrl_c(living):
    write_job("train_encoder/a", living, rows=[row(5)])
    main, end = pty.openpty()
    environment = os.environ | {"PYTHONPATH": str(ROOT), "TERM": "xterm", "COLUMNS": "120"}
    command = [sys.executable, "-m", "workflow_scripts", "watch"]
    with (
        subprocess.Popen(command, stdout=end, stdin=end, env=environment, preexec_fn=hears_ctrl_c) as process,
        closing(os.fdopen(main, "rb", 0)) as read,
    ):
        os.close(end)
        shown = read_until(read, "5 of 300")
        write_job("train_encoder/a", living, rows=[row(5), row(6)])
        shown += read_until(read, "6 of 300")
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=60) == 0
    assert "jobs: 1 running" in shown
    assert "Traceback" not in shown


def hears_ctrl_c():
    """Undo what a shell does to a process in the background, where Ctrl-C is ignored."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def read_until(file, text, seconds=60):
    shown, start = "", time.monotonic()
    with suppress(OSError):
        while text not in shown:
            assert time.monotonic() - start < seconds, shown
            shown += file.read(10_000).decode(errors="replace")
    return shown
