"""Jobs share the GPUs of a machine without a scheduler, each its own."""

import json
import os
import signal
import subprocess
import sys
import time
from itertools import pairwise
from pathlib import Path

import pytest

from tests.support import training_jobs
from tests.support.fake_gpu_machine import CARDS, DIVIDED, machine
from tests.support.snakemake_plans import ROOT
from workflow_scripts.errors import ConfigError
from workflow_scripts.provenance import cards

JOB = """
import os, sys, time
from workflow_scripts.provenance import cards
number, seconds, log = int(sys.argv[1]), float(sys.argv[2]), sys.argv[3]
cards.take(number)
begun, mine = time.monotonic(), os.environ["CUDA_VISIBLE_DEVICES"]
print(mine, flush=True)
time.sleep(seconds)
with open(log, "a") as file:
    for card in mine.split(","):
        print(card, begun, time.monotonic(), file=file)
"""


@pytest.fixture
def on_machine(tmp_path, monkeypatch):
    """The environment of processes with two cards; this one is on that machine, too."""
    environment = machine(tmp_path / "machine")
    monkeypatch.setattr("tempfile.tempdir", environment["TMPDIR"])
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    for name in (cards.VISIBLE, *cards._SCHEDULED_BY):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(cards, "_is_without_cuda", lambda: False)
    return environment


@pytest.fixture
def started(on_machine, tmp_path):
    """Start processes that take some cards for some seconds; all are ended with the test."""
    processes = []

    def start(number, seconds, **environment):
        place = f"{ROOT}:{on_machine['PYTHONPATH']}"
        process = subprocess.Popen(
            [sys.executable, "-c", JOB, str(number), str(seconds), str(tmp_path / "log")],
            env={**os.environ, "PYTHONPATH": place, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )  # fmt: skip
        processes.append(process)
        return process

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def uses(log):
    """Times at which each card was used, by card."""
    found = {}
    for line in log.read_text().splitlines():
        card, begun, ended = line.split()
        found.setdefault(card, []).append((float(begun), float(ended)))
    return {card: sorted(times) for card, times in found.items()}


def overlaps(log):
    """Whether two processes used one card at once."""
    return any(first[1] > second[0] for times in uses(log).values() for first, second in pairwise(times))


def test_four_jobs_share_two_cards_and_no_card_has_two(started, tmp_path):
    ended = [process.wait(60) for process in [started(1, 0.7) for _ in range(4)]]
    assert ended == [0] * 4
    assert {card: len(times) for card, times in uses(tmp_path / "log").items()} == dict.fromkeys(CARDS, 2)
    assert not overlaps(tmp_path / "log")


def test_jobs_on_two_cards_and_on_one_all_end(started, tmp_path):
    """Also where jobs on one card are never short, and those that see fewer cards are in the way."""
    numbers = [1, 2, 1, 1, 2, 1, 2]
    begun = [started(number, 0.3) for number in numbers]
    begun += [started(1, 0.3, CUDA_VISIBLE_DEVICES=card) for card in CARDS]
    assert [process.wait(60) for process in begun] == [0] * len(begun)
    assert sum(map(len, uses(tmp_path / "log").values())) == sum(numbers) + 2
    assert not overlaps(tmp_path / "log")


def test_a_job_on_two_cards_is_not_overtaken_by_jobs_on_one(started, tmp_path):
    first = started(1, 1.5)
    assert first.stdout.readline().strip() in CARDS
    both = started(2, 0)
    assert both.stderr.readline() == "waiting for 2 of 2 GPUs, which other jobs use\n"
    later = started(1, 0)
    assert "waiting for 1 of 2 GPUs" in later.stderr.readline()  # though one is free
    assert [process.wait(60) for process in (first, both, later)] == [0, 0, 0]


def test_a_job_that_is_killed_frees_its_card(started):
    killed = started(2, 600)
    assert killed.stdout.readline().strip() == ",".join(CARDS)
    waiting = started(1, 0)
    assert waiting.stderr.readline().startswith("waiting")
    killed.send_signal(signal.SIGKILL)
    assert waiting.wait(60) == 0


def test_cards_stay_with_a_job_that_becomes_torchrun(on_machine, tmp_path):
    become = f"{JOB.partition('begun')[0]}print(1, flush=True); os.execvp('sleep', ['sleep', '600'])"
    place = {**os.environ, "PYTHONPATH": f"{ROOT}:{on_machine['PYTHONPATH']}"}
    with subprocess.Popen(
        [sys.executable, "-c", become, "2", "0", ""], env=place, stdout=subprocess.PIPE
    ) as job:
        assert job.stdout.readline() == b"1\n"
        deadline = time.monotonic() + 30
        while Path(f"/proc/{job.pid}/comm").read_text() != "sleep\n":
            assert time.monotonic() < deadline
        free = cards._locked_of(CARDS, 1)
        job.kill()
    assert not free
    assert cards._locked_of(CARDS, 2) == [*CARDS]


def test_processes_of_a_training_end_with_torchrun(tmp_path):
    rank = (
        "import os, time; from workflow_scripts.provenance import cards; cards.end_with_parent();"
        "print(os.getpid(), flush=True); time.sleep(600)"
    )
    torchrun = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {rank!r}])"
    with subprocess.Popen([sys.executable, "-c", torchrun], cwd=ROOT, stdout=subprocess.PIPE) as process:
        ended = os.pidfd_open(int(process.stdout.readline()))
        process.kill()
        signal.pidfd_send_signal(ended, 0)
        for _ in range(300):
            try:
                signal.pidfd_send_signal(ended, 0)
            except ProcessLookupError:
                return
            time.sleep(0.1)
    pytest.fail("still there")


# Which cards


@pytest.mark.parametrize(
    ("chosen", "seen"),
    [
        (None, [0, 1]), ("0,1", [0, 1]), ("1", [1]), ("1, 0", [1, 0]), (CARDS[1], [1]), ("GPU-0b", [1]), ("1,1", [1]),
        ("", []), ("-1", []), ("0,-1,1", [0]), ("7", []), ("GPU-0", []), ("GPU-f", []),
    ],
)  # fmt: skip
def test_only_cards_that_cuda_would_show_are_taken(on_machine, monkeypatch, chosen, seen):
    if chosen is not None:
        monkeypatch.setenv(cards.VISIBLE, chosen)
    assert cards.visible() == [CARDS[number] for number in seen]


def test_parts_of_a_divided_card_are_cards(tmp_path, on_machine, monkeypatch):
    listed = (
        f"GPU 0: NVIDIA H200 (UUID: {CARDS[0]})\n"
        f"  MIG 1g.18gb     Device  0: (UUID: {DIVIDED})\n"
        f"  MIG 1g.18gb     Device  1: (UUID: {DIVIDED}b)\n"
        f"GPU 1: NVIDIA H200 (UUID: {CARDS[1]})"
    )
    monkeypatch.setenv("PATH", machine(tmp_path / "divided", listed)["PATH"])
    assert cards.visible() == [DIVIDED, f"{DIVIDED}b", CARDS[1]]


@pytest.mark.parametrize("text", ["exit 9", "exec sh -c 'echo GPU 0: broken'"])
def test_without_a_list_of_cards_nothing_changes(on_machine, monkeypatch, text):
    Path(on_machine["PATH"].partition(":")[0], "nvidia-smi").write_text(f"#!/bin/sh\n{text}\n")
    cards.take(1)
    assert cards.VISIBLE not in os.environ
    assert not [*Path(on_machine["TMPDIR"]).iterdir()]


def test_a_build_of_pytorch_without_cuda_takes_no_card(on_machine, monkeypatch):
    monkeypatch.setattr(cards, "_is_without_cuda", lambda: True)
    cards.take(1)
    assert cards.lack_cuda()
    assert cards.VISIBLE not in os.environ


@pytest.mark.parametrize("scheduler", cards._SCHEDULED_BY)
def test_under_a_scheduler_no_lock_is_taken(on_machine, monkeypatch, scheduler):
    monkeypatch.setenv(scheduler, "7")
    monkeypatch.setenv(cards.VISIBLE, "0,1")
    for number in (0, 1, 3):
        cards.take(number)
    assert os.environ[cards.VISIBLE] == "0,1"
    assert not [*Path(on_machine["TMPDIR"]).iterdir()]


def test_more_cards_than_there_are_is_one_line(on_machine):
    with pytest.raises(
        ConfigError, match=r"^training\.gpus: 3, but jobs see 2 here\. Set it to 2 or less\.$"
    ):
        cards.take(3)


def test_another_users_lock_file_serves(on_machine):
    """The mode does not depend on the umask of the user who came first."""
    before = os.umask(0o077)
    try:
        os.close(cards._opened(CARDS[0]))
    finally:
        os.umask(before)
    (file,) = Path(on_machine["TMPDIR"]).iterdir()
    assert file.stat().st_mode & 0o777 == 0o666


# Jobs


@pytest.mark.parametrize(("gpu", "sees"), [(0, ""), (1, CARDS[1]), (None, "")])
def test_a_job_sees_the_cards_that_its_rule_asks_for(on_machine, tmp_path, monkeypatch, gpu, sees):
    held = cards._locked_of(CARDS[:1], 1)
    assert held
    monkeypatch.chdir(training_jobs.make_inputs(tmp_path))
    asked = {} if gpu is None else {"gpu": gpu}
    files = {"sentences": Path("corpus/train.parquet"), "counts": Path("words.parquet")}
    call = training_jobs.call_of("count_words", {"words": {"peak_window": 1}}, corpus="toy", **files, **asked)
    training_jobs.begin_here("count_words", json.loads(json.dumps(call)))
    assert os.environ[cards.VISIBLE] == sees


SNAKEFILE = """
from workflow_scripts.graph.console import share_gpus

share_gpus(workflow)


rule all:
    input: expand("{number}.txt", number=range(4))


rule one:
    output: "{number}.txt"
    resources: gpu=1
    shell: "PYTHON job.py {resources.gpu} 0.7 log && touch {output}"
"""


@pytest.mark.parametrize(("given", "at_once"), [((), 2), (("--resources", "gpu=1"), 1)])
def test_snakemake_runs_as_many_jobs_at_once_as_there_are_cards(on_machine, tmp_path, given, at_once):
    (tmp_path / "Snakefile").write_text(SNAKEFILE.replace("PYTHON", sys.executable))
    (tmp_path / "job.py").write_text(JOB)
    place = {**os.environ, "PYTHONPATH": f"{ROOT}:{on_machine['PYTHONPATH']}"}
    command = [sys.executable, "-m", "snakemake", "--cores", "8", *given]
    ended = subprocess.run(command, cwd=tmp_path, env=place, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    times = sorted(time for times in uses(tmp_path / "log").values() for time in times)
    most = max(sum(begun <= moment < end for begun, end in times) for moment, _ in times)
    assert len(times) == 4
    assert most == at_once
    assert not overlaps(tmp_path / "log")
