"""The paper scale's graph through a real queue, its jobs done by a stand-in: what a driver needs, and what grows.

``make scale-test`` runs the whole study, ``make scale-test TARGET=jtcse`` what one paper takes. The table that it prints
is that of docs/cluster.md.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from threading import Thread
from typing import NamedTuple

import psutil
import pytest

from tests.planning import ROOT, copy_tree
from tests.slurm import stand_in
from tests.slurm.conftest import Driver, give_profile
from tests.slurm.node import Claims, Node, UnavailableError, said, wait_for

ASKED = "SEMBLANCE_SCALE"
"""Set by make scale-test to targets of snakemake, or to all."""
TARGETS = [word for word in os.environ.get(ASKED, "").split() if word != "all"]
HOUR, GPUS = 3600, 16
CANCELLED, KILLED = 0.2, 0.4
"""The shares of jobs after which a hundred are cancelled, and the driver is killed."""
LOOK_SECONDS = 5
SELDOM = 1
"""Seconds between two looks, since what is measured is not to wait for the processor."""
ASKS_FOR_DATA = "        check_needs(STUDY, workflow.dag.needrun_jobs())\n"
"""Data, keys and engines, which a rehearsal has none of."""
CHANGED = ("config/methods.yaml", "temperature: 0.05", "temperature: 0.06")

pytestmark = [
    pytest.mark.skipif(
        ASKED not in os.environ, reason="starts SLURM and takes up to an hour; make scale-test does"
    ),
    pytest.mark.timeout(2 * HOUR),
]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    """A cluster, and a folder with the study, its files to make, and a server that stands in for Python."""
    folder = Path(tempfile.mkdtemp(prefix="semblance-scale-"))
    node = Node(folder / "node", Claims(cpus=64, memory_mb=1_024_000, gpus=GPUS, days=7))
    server = None
    try:
        node.folder.mkdir()
        folder.chmod(0o755)
        node.start()
        study = _study(folder)
        serve = [sys.executable, "-m", "tests.slurm.stand_in", folder / "socket", *TARGETS]
        server = subprocess.Popen(serve, cwd=study, env=_environment())
        yield folder
    except UnavailableError as reason:
        pytest.skip(f"no SLURM on this machine: {reason}")
    finally:
        for process in filter(None, (server, *_drivers)):
            process.kill()
            process.wait()
        node.stop()
        shutil.rmtree(folder, ignore_errors=True)


def _study(folder: Path) -> Path:
    study = folder / "study"
    study.mkdir()
    copy_tree(study)
    give_profile(study, gpus=GPUS)
    rules = study / "rules/common.smk"
    assert ASKS_FOR_DATA in rules.read_text()
    rules.write_text(rules.read_text().replace(ASKS_FOR_DATA, ""))
    stand_in.install(folder, sys.executable)
    return study


def _environment() -> dict[str, str]:
    return os.environ | {"PYTHONPATH": str(ROOT), "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}


_drivers: list[subprocess.Popen[bytes]] = []


class Seen(NamedTuple):
    """A driver at one time."""

    seconds: float
    done: int
    """Jobs that it has seen end."""
    megabytes: float
    cpu_seconds: float
    queued: int
    """Submissions under way."""


class Run:
    """A driver that is watched by a thread."""

    def __init__(self, folder: Path, *options: str) -> None:
        self._began = time.monotonic()
        self.driver = Driver(folder / "study", *options, "--", *TARGETS, scripts=folder / "bin")
        _drivers.append(self.driver.process)
        self._process = psutil.Process(self.driver.process.pid)
        self._seen = [Seen(0, 0, 0, 0, 0)]
        Thread(target=self._look, daemon=True).start()

    def _look(self) -> None:
        while self.driver.process.poll() is None:
            with suppress(psutil.Error):
                times, memory = self._process.cpu_times(), self._process.memory_info().rss / 1e6
                since = time.monotonic() - self._began
                self._seen.append(
                    Seen(since, self.done()[0], memory, times.user + times.system, len(queued()))
                )
            time.sleep(LOOK_SECONDS)

    def done(self) -> tuple[int, int]:
        """Jobs that the driver has seen end, and all of this run."""
        found = re.findall(r"(\d+) of (\d+) steps", self.driver.printed()[-50_000:])
        return (int(found[-1][0]), int(found[-1][1])) if found else (0, 0)

    def has_done(self, share: float) -> bool:
        """Whether so much is done, or the driver has ended."""
        done, of = self.done()
        return self.driver.process.poll() is not None or (of > 0 and done >= share * of)

    def check_runs(self) -> None:
        """Raise an AssertionError with what the driver printed, if it has ended."""
        assert self.driver.process.poll() is None, self.driver.printed()[-3000:]

    def end(self) -> dict[str, float]:
        """Wait for the driver; what was measured."""
        code, printed = self.driver.ended(2 * HOUR)
        assert code == 0, printed[-3000:]
        return self.measured()

    def measured(self) -> dict[str, float]:
        """What there is to say of the run so far; with jobs, what each took, of the first half of them and the second.

        The second half would take more than the first where something grows faster than their number.
        """
        last = self._seen[-1]
        found: dict[str, float] = {
            "seconds": time.monotonic() - self._began,
            "driver MB": max(one.megabytes for one in self._seen),
            "driver CPU seconds": last.cpu_seconds,
            "submissions under way": max(one.queued for one in self._seen),
        }
        working = [one for one in self._seen if one.done]
        if len(working) > 2:
            first, half = working[0], next(one for one in working if one.done >= last.done / 2)
            for name, start, stop in (("first", first, half), ("second", half, last)):
                jobs = stop.done - start.done
                found |= {
                    f"jobs a minute, {name} half": 60 * jobs / (stop.seconds - start.seconds or 1),
                    f"CPU seconds a job, {name} half": (stop.cpu_seconds - start.cpu_seconds) / (jobs or 1),
                }
        return found


def queued() -> list[str]:
    """Numbers of the jobs that wait or run."""
    return said("squeue", "--noheader", "--format=%i").split()


def test_the_paper_scale_runs_through_a_queue(place):
    """Each step's row is printed as soon as there is one; all are in semblance-scale.json of the temporary folder."""
    study = place / "study"
    rows: dict[str, dict[str, float]] = {}

    def row(name: str, measured: dict[str, float]) -> None:
        rows[name] = {key: round(value, 3) for key, value in measured.items()}
        print(datetime.now(UTC).isoformat(timespec="seconds"), name, rows[name], file=sys.__stderr__)
        (Path(tempfile.gettempdir()) / "semblance-scale.json").write_text(json.dumps(rows, indent=1))

    first = Run(place)
    wait_for(lambda: first.has_done(CANCELLED), HOUR, "a fifth of the jobs", SELDOM)
    first.check_runs()
    row("scancel of a hundred jobs", _cancel(place, first))
    wait_for(lambda: first.has_done(KILLED), HOUR, "two fifths of the jobs", SELDOM)
    done, jobs = first.done()
    first.check_runs()
    first.driver.process.send_signal(signal.SIGKILL)
    first.driver.process.wait()
    row("to the kill", {"jobs": done, "of": jobs, **first.measured()})
    began = time.monotonic()
    wait_for(lambda: not queued(), 600, "the queue to be empty")
    _command(study, "snakemake", "--unlock", place=place)
    row("until the queue is empty and unlocked", {"seconds": time.monotonic() - began})
    second = Run(place)
    wait_for(lambda: second.done()[1] or second.has_done(1), HOUR, "the first job of the second run", SELDOM)
    row("started again, to its first job", second.measured())
    measured = second.end()
    redone = second.done()[1] - (jobs - done)
    row("the rest", {"jobs": second.done()[1], "done before and not seen": -redone, **measured})
    row("files below .snakemake", {"files": sum(1 for path in (study / ".snakemake").rglob("*"))})
    _look_again(place, row)


def _cancel(place: Path, run: Run) -> dict[str, float]:
    """Hold the jobs until a hundred are in the queue, cancel those, and let the others go on."""
    hold = place / "hold"
    hold.touch()
    enough = min(100, run.done()[1] // 20)
    before: list[str] = []
    while len(found := queued()) < enough and found != before:  # a group is one submission of several jobs
        before = found
        time.sleep(2 * LOOK_SECONDS)
    found = found[:enough]
    began = time.monotonic()
    subprocess.run(["scancel", *found], check=True)
    took = time.monotonic() - began
    hold.unlink()
    wait_for(
        lambda: run.driver.printed().count("Trying to restart job") >= len(found), 600, "the restarts", SELDOM
    )
    return {
        "jobs": len(found),
        "scancel seconds": took,
        "until all are queued again": time.monotonic() - began,
    }


def _look_again(place: Path, row: Callable[[str, dict[str, float]], None]) -> None:
    study = place / "study"
    again = Run(place)
    measured = again.end()
    assert "Nothing to be done" in again.driver.printed()
    row("a second call", measured)
    file, before, after = CHANGED
    text = (study / file).read_text()
    assert before in text
    (study / file).write_text(text.replace(before, after, 1))
    changed = Run(place, "--dry-run", "--quiet", "reason", "host", "progress")
    measured = changed.end()
    planned = re.findall(r"^ *Job (\d+): (?!all)", changed.driver.printed(), re.MULTILINE)
    row("a changed setting of a method, dry", {"jobs": len({*planned}), **measured})
    row("stale after it", _command(study, "python", "-m", "workflow_scripts", "stale", place=place))
    (study / file).write_text(text)
    for verb in ("status", "stale", "verify"):
        row(verb, _command(study, "python", "-m", "workflow_scripts", verb, place=place))


def _command(study: Path, *words: str, place: Path) -> dict[str, float]:
    """Run a command of this environment; its seconds, most memory and exit code."""
    python = [sys.executable, *(["-m"] if words[0] == "snakemake" else [])]
    began = time.monotonic()
    printed = place / "said"
    with printed.open("w") as file:
        process = subprocess.Popen(
            [*python, *words[words[0] == "python" :]], cwd=study, env=_environment(), stdout=file, stderr=file
        )
        peak = 0.0
        looked = psutil.Process(process.pid)
        while process.poll() is None:
            try:
                peak = max(peak, looked.memory_info().rss / 1e6)
            except psutil.Error:
                break
            time.sleep(0.1)
        process.wait()
    print(" ".join(words[:4]), printed.read_text()[-600:], file=sys.__stderr__)
    return {"seconds": time.monotonic() - began, "MB": peak, "exit code": process.returncode}
