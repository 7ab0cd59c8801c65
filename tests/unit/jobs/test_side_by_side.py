"""Jobs side by side: toys that do as they are told, and two real trainings against each of them alone."""

import contextlib
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import jobs
from workflow_scripts.errors import EXIT_TRY_AGAIN, ConfigError
from workflow_scripts.provenance.artefacts import read_record
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.line import apart, jobs_beside, log_beside, names_beside, together

# Lines


def test_jobs_side_by_side_differ_in_the_named_arguments_alone():
    words = ["--run", "a", "--seed", "1", "2", "--words", "--encoder", "x", "y", "--record", "r1", "r2"]
    assert jobs_beside(["seed", "record"], words) == [
        ["--run", "a", "--seed", "1", "--words", "--encoder", "x", "y", "--record", "r1"],
        ["--run", "a", "--seed", "2", "--words", "--encoder", "x", "y", "--record", "r2"],
    ]
    assert names_beside(["python", "--beside", "seed", "record", "-m", "one"]) == ["seed", "record"]
    assert names_beside(["python", "-m"]) == []


@pytest.mark.parametrize("words", [["--seed", "1", "2", "--record", "r1"], ["--seed", "1", "2"]])
def test_a_value_that_is_missing_is_named(words):
    with pytest.raises(ConfigError, match=r"--record has [01] values for 2 jobs"):
        jobs_beside(["seed", "record"], words)


def test_what_seeds_have_in_common_is_named_after_all_of_them():
    assert together([1, 12]) == "seeds1_12"
    assert apart("seeds1_12") == ["seed1", "seed12"]
    for other in ("seed1", "seeds1", "seeds1_", "news1_2"):
        assert apart(other) == [other]
    assert log_beside(Path("logs/1/seed1.log"), "seed", "1", "12") == Path("logs/1/seed12.log")


# Toys

TOY = '''
"""A job that does what its seed's word says."""
import os, signal, sys, threading, time
from pathlib import Path
import imported_once
words = sys.argv[sys.argv.index("--do") + 1 :]
seed = sys.argv[sys.argv.index("--seed") + 1]

def main():
    print(f"{sys.argv[0]} seed {seed} does {words}, threads {os.environ['OMP_NUM_THREADS']}", flush=True)
    assert signal.pthread_sigmask(signal.SIG_BLOCK, ()) == set()
    told = []
    if words[0] == "wait":
        for number in (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT):
            signal.signal(number, lambda number, _: told.append(number))
        Path(f"waits{seed}").touch()
        while not told:
            time.sleep(0.01)
        time.sleep(0.3)  # for the second that must not come
        print(f"told {[int(number) for number in told]}", flush=True)
        sys.exit(75)
    if words[0] == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if words[0] == "raise":
        raise ValueError("of the toy")
    if words[0] != "0":
        sys.exit(int(words[0]))
    Path(f"made{seed}").touch()

if __name__ == "__main__":
    main()
'''


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("toy.py").write_text(TOY)
    Path("imported_once.py").write_text("import os\nopen('imports', 'a').write(f'{os.getpid()}\\n')\n")
    return tmp_path


def line(*does):
    """The command of toys, a seed each."""
    seeds = map(str, range(1, len(does) + 1))
    arguments = ["--common", "x", "--seed", *seeds, "--do", *does]
    return [sys.executable, "-m", "workflow_scripts.jobs", "--beside", "seed", "do", "-m", "toy", *arguments]


def environment(**more):
    return os.environ | {"PYTHONPATH": f"{ROOT}:.", "OMP_NUM_THREADS": "6"} | more


def start(command, log="seed1.log"):
    with Path(log).open("w") as file:
        return subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT, env=environment())


def waits(*seeds):
    """Return once the toys with these seeds wait."""
    until = time.monotonic() + 30
    while not all(Path(f"waits{seed}").exists() for seed in seeds):
        assert time.monotonic() < until
        time.sleep(0.01)


def test_each_job_has_its_own_arguments_and_log_and_its_share_of_threads(here):
    process = start(line("0", "0", "0"))
    assert process.wait() == 0
    for seed in (1, 2, 3):
        said = Path(f"seed{seed}.log").read_text()
        assert said.endswith(f"toy seed {seed} does ['0'], threads 2\n") and said.count("\n") == 1
        assert Path(f"made{seed}").exists()
    assert Path("imports").read_text() == f"{process.pid}\n"  # before the processes part


@pytest.mark.parametrize(
    ("does", "code"),
    [
        (("0", "3", "0"), 3),
        (("0", "4", "3"), 4),
        (("raise", "0", "3"), 1),
        (("die", "0"), 128 + signal.SIGKILL),
        (("1", "75", "0"), 75),
        (("130", "1"), 130),
    ],
)
def test_one_that_fails_does_not_stop_the_others_and_is_told_of(here, does, code):
    assert start(line(*does)).wait() == code
    made = {seed for seed, word in enumerate(does, start=1) if word == "0"}
    assert {int(path.name[-1]) for path in here.glob("made*")} == made
    for seed, word in enumerate(does, start=1):
        assert ("ValueError: of the toy" in Path(f"seed{seed}.log").read_text()) == (word == "raise")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR1, signal.SIGINT])
def test_a_signal_reaches_every_job_and_its_answer_is_the_exit_code(here, number):
    process = start(line("wait", "1", "wait"))
    waits(1, 3)
    process.send_signal(number)
    assert process.wait() == EXIT_TRY_AGAIN
    for seed in (1, 3):
        assert Path(f"seed{seed}.log").read_text().endswith(f"told [{int(number)}]\n")


def test_a_key_of_the_terminal_reaches_every_job_once(here):
    child, terminal = pty.fork()
    if not child:
        os.execve(sys.executable, line("wait", "wait"), environment())
    waits(1, 2)
    os.write(terminal, b"\x03")
    said = b""
    with contextlib.suppress(OSError):  # the end of what it says
        while part := os.read(terminal, 1000):
            said += part
    _, status = os.waitpid(child, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == EXIT_TRY_AGAIN
    assert said.count(b"told [2]") == said.count(b"told") == 2  # lines of both may be written into each other


def test_jobs_go_on_when_the_process_that_started_them_is_killed(here):
    process = start(line("wait", "wait"))
    waits(1, 2)
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    process.kill()
    process.wait()
    assert len(children) == 2
    for child in map(int, children):
        os.kill(child, signal.SIGTERM)
    until = time.monotonic() + 30
    while not all("told [15]" in Path(f"seed{seed}.log").read_text() for seed in (1, 2)):
        assert time.monotonic() < until
        time.sleep(0.01)


# Trainings

STEPS = 60
SEEDS = ("1", "2")
KINDS = ("record", "history", "metrics", "speed")
NO_GPU = """
import torch
def asked(*_): raise AssertionError("a GPU was asked for before the processes part")
torch.cuda.is_available = torch.cuda.device_count = torch.cuda.init = torch.cuda._lazy_init = asked
import workflow_scripts.jobs.train_encoder
"""


def test_importing_a_training_asks_for_no_gpu(tmp_path):
    imported = subprocess.run([sys.executable, "-c", NO_GPU], env=environment(), check=False, cwd=tmp_path)
    assert imported.returncode == 0


def files_of(seed):
    folder = f"run/seed{seed}"
    return {
        "record": f"{folder}/model/record.json",
        "history": f"{folder}/history.parquet",
        "metrics": f"{folder}/metrics.parquet",
        "speed": f"times/seed{seed}.parquet",
    }


def arguments(*seeds, steps=STEPS):
    """The arguments of a training with these seeds, as the rule writes them."""
    settings = jobs.config("train_encoder", max_steps=steps)
    words = jobs_beside(["seed"], jobs.arguments("train_encoder", settings))[0]
    given = {"seed": list(seeds)} | {kind: [files_of(seed)[kind] for seed in seeds] for kind in KINDS}
    for name, values in given.items():
        place = words.index(f"--{name}")
        words[place + 1 : place + 2] = values
    return words


def training(*seeds, **changes):
    """The process that trains seeds: one alone, or several side by side."""
    beside = ["workflow_scripts.jobs", "--beside", "seed", *KINDS, "-m"] if len(seeds) > 1 else []
    command = [sys.executable, "-m", *beside, "workflow_scripts.jobs.train_encoder"]
    return start([*command, *arguments(*seeds, **changes)], f"seed{seeds[0]}.log")


def bytes_of(folder):
    """Everything that two trainings have made, but for what is kept, where speeds are among them."""
    return {name: found for name, found in jobs.files_of(folder / "run").items() if ".kept/" not in name}


@pytest.fixture(scope="module")
def alone(tmp_path_factory):
    """What each seed makes alone."""
    folder, before = tmp_path_factory.mktemp("alone"), Path.cwd()
    jobs.make_inputs(folder)
    os.chdir(folder)
    try:
        for seed in SEEDS:
            assert training(seed).wait() == 0, Path(f"seed{seed}.log").read_text()
    finally:
        os.chdir(before)
    return folder


@pytest.fixture
def workshop(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return jobs.make_inputs(tmp_path)


def test_two_seeds_side_by_side_make_the_bytes_of_each_alone(alone, workshop):
    both = training(*SEEDS)
    assert both.wait() == 0, Path("seed1.log").read_text()
    made = bytes_of(workshop)
    assert len(made) == 2 * 13 and made == bytes_of(alone)
    for seed in SEEDS:
        assert read_record(Path(f"run/seed{seed}/model")).wildcards["seed"] == seed
        assert f"train_encoder simcse {seed}: wrote record" in Path(f"seed{seed}.log").read_text()
        holder = Path(f"seed{seed}.log.lock").read_text()
        assert holder.startswith("process ") and str(both.pid) not in holder


def test_seeds_that_are_stopped_or_fail_go_on_to_the_same_bytes_and_a_finished_one_is_put_back(
    alone, workshop
):
    both = training(*SEEDS)
    while both.poll() is None and not all(
        list(workshop.glob(f"run/seed{seed}/model.checkpoints/*/COMPLETE.json")) for seed in SEEDS
    ):
        time.sleep(0.005)
    both.send_signal(signal.SIGTERM)
    assert both.wait() == EXIT_TRY_AGAIN
    for seed in SEEDS:
        assert "Preempted: stopped after step " in Path(f"seed{seed}.log").read_text()
    assert not list(workshop.glob("run/*/*.parquet"))

    Path("run/seed1/history.parquet").mkdir()  # where a file is to be
    assert training(*SEEDS).wait() == 1
    assert "Error" in Path("seed1.log").read_text()
    Path("run/seed1/history.parquet").rmdir()
    finished = {name: found for name, found in bytes_of(alone).items() if name.startswith("seed2/")}
    assert finished.items() <= bytes_of(workshop).items()

    for file in ("model", *files_of("2").values()):  # as Snakemake does with a failed job's
        path = Path("run/seed2", file) if file == "model" else Path(file)
        shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)
    assert training(*SEEDS).wait() == 0
    assert "done before by the same job, put back" in Path("seed2.log").read_text()
    assert bytes_of(workshop) == bytes_of(alone)


def test_settings_are_those_that_a_job_alone_is_given():
    words = arguments(*SEEDS)
    assert words.count("--config") == 1
    assert "together" not in json.loads(words[words.index("--config") + 1])["training"]
