"""The Hub's own client and this project's code against a mirror on this machine, and against none."""

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from benchmarks.material import minilm
from tests.hub import commit, mirror
from tests.planning import ROOT

MINILM = "mirror/all-MiniLM-L6-v2"
OLD, NEW = commit("old"), commit("new")
ROWS = {OLD: 2, NEW: 3}
NOBODY = "http://127.0.0.1:9"

READ = """
import json, sys
from workflow_scripts.data.sources import Dataset, load
from workflow_scripts.errors import one_line_errors

columns = {name: name for name in ("sentence1", "sentence2", "score")}
hub = {"kind": "hub", "repository": "team/toy", "splits": ["test"], "columns": columns}
with one_line_errors():
    for revision in sys.argv[1:]:
        block = {"form": "pairs", "sources": [hub | {"revision": revision}], "contract": {}}
        rows, origin = load("toy", Dataset.parse(block, "toy"), None)
        print(len(rows.table), origin["hub"].path, origin["hub"].sha256)
"""
LOCATE = """
import sys
from workflow_scripts.data.encoders import Fetch, locate
from workflow_scripts.errors import one_line_errors

source = {"kind": "hub", "repository": sys.argv[1], "revision": sys.argv[2]}
with one_line_errors():
    folder, files = locate("toy", Fetch.parse({"sources": [source]}, "toy"), None)
    print(*(f"{file.path} {file.sha256}" for file in files.values()), sep="\\n")
"""
TASKS = """
import json, sys
from datasets import DatasetDict
from mteb.abstasks import AbsTaskSTS
from mteb.tasks.sts.eng.sts_benchmark_sts import STSBenchmarkSTS
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation import mteb_tasks

def show(asked):
    class Toy(AbsTaskSTS):
        metadata = STSBenchmarkSTS.metadata.model_copy(
            update={"name": "Toy", "dataset": {"path": "team/toy", "revision": asked}}
        )

    (row,) = mteb_tasks.fetch([Toy()], "stop").to_pylist()
    task = Toy()
    assert mteb_tasks._load_data(task, offline=True) is None
    print(row["revision"], row["sha256"], len(task.dataset["test"]))

with one_line_errors():
    for revision in sys.argv[1:]:
        show(revision)
"""


@pytest.fixture(scope="module")
def hub(tmp_path_factory):
    """A dataset at two commits, and an encoder."""
    folder = tmp_path_factory.mktemp("hub")
    for revision, rows in ROWS.items():
        file = folder / "datasets/team/toy" / revision / "test.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text('{"sentence1": "one", "sentence2": "two", "score": 3.5}\n' * rows)
    shutil.copytree(minilm(), folder / "models" / MINILM / commit(MINILM))
    return folder


@pytest.fixture
def ask(tmp_path):
    """Run a program that asks the Hub at an address, with a cache of the test's own."""

    def run(program, address, *arguments, **environment):
        env = os.environ | {
            "HF_HOME": str(tmp_path / "home"),
            "HF_ENDPOINT": address,
            "PYTHONPATH": str(ROOT),
        }
        env.pop("HF_HUB_OFFLINE", None)
        command = [sys.executable, "-c", program, *arguments]
        return subprocess.run(
            command, env=env | environment, cwd=ROOT, capture_output=True, text=True, check=False
        )

    return run


def test_what_was_read_from_the_hub_is_read_again_without_it_and_at_once(hub, ask):
    """At its own commit: the client by itself would take the newest copy, after half a minute."""
    with mirror(hub) as address:
        online = ask(READ, address, OLD, NEW)
    assert [line.split()[:2] for line in online.stdout.splitlines()] == [
        [str(rows), f"hub:team/toy@{revision}"] for revision, rows in ROWS.items()
    ], online.stderr
    begun = time.monotonic()
    assert ask(READ, NOBODY, OLD, NEW).stdout == online.stdout
    assert time.monotonic() - begun < 20


def test_a_commit_that_is_not_on_this_machine_is_never_another_one(hub, ask):
    with mirror(hub) as address:
        assert ask(READ, address, NEW).returncode == 0
    begun = time.monotonic()
    refused = ask(READ, NOBODY, OLD)
    assert time.monotonic() - begun < 10
    assert refused.returncode == 1 and refused.stdout == ""
    assert refused.stderr.startswith("UnreachableError: datasets.toy: no source is available: hub:team/toy@")


def test_a_repository_or_commit_that_the_hub_denies_is_missing(hub, ask):
    with mirror(hub) as address:
        denied = ask(READ, address, commit("never"))
        absent = ask(LOCATE, address, "team/none", commit("never"))
    assert denied.stderr.startswith("MissingError: datasets.toy: no source is available: hub:team/toy@")
    assert absent.stderr.startswith("MissingError: encoders.toy: ") and "team/none" in absent.stderr


def test_an_encoder_is_fetched_once_and_then_found_without_the_hub(hub, ask, tmp_path):
    revision = commit(MINILM)
    with mirror(hub) as address:
        fetched = ask(LOCATE, address, MINILM, revision)
    assert f"hub:{MINILM}@{revision}/model.safetensors 53aa51172d142c89" in fetched.stdout, fetched.stderr
    assert (tmp_path / "home/hub").is_dir()  # HF_HOME is where it goes
    assert ask(LOCATE, NOBODY, MINILM, revision).stdout == fetched.stdout
    asked = Path(hub / "requests.log").read_text()
    assert asked.count("model.safetensors") == 2  # its head, and the file


AT_ONCE = "from workflow_scripts.data import hub; hub._FIRST_WAIT_SECONDS = 0.01\n"
WEIGHTS = "model.safetensors"


@pytest.mark.parametrize(("status", "tries"), [(503, 4), (401, 1)])
def test_an_encoder_that_cannot_be_had_is_asked_for_again_only_where_that_may_help(hub, ask, status, tries):
    failures = [status] * 9
    with mirror(hub, **{WEIGHTS: failures}) as address:
        refused = ask(AT_ONCE + LOCATE, address, MINILM, commit(MINILM))
    assert refused.returncode == 1 and refused.stdout == "" and 9 - len(failures) == tries
    (line,) = [line for line in refused.stderr.splitlines() if "Error:" in line]
    place = f"UnreachableError: encoders.toy: no source is available: hub:{MINILM}@{commit(MINILM)}"
    assert line.startswith(f"{place}: ") and f"{status}" in line and WEIGHTS in line
    assert ("(not reached)" if status == 503 else "(not allowed") in line


@pytest.mark.slow
def test_tasks_of_mteb_are_brought_and_load_without_a_network(hub, ask):
    with mirror(hub) as address:
        brought = ask(TASKS, address, OLD, NEW)
    told = [line.split() for line in brought.stdout.splitlines()]
    assert [one[::2] for one in told] == [[OLD, "2"], [NEW, "3"]], brought.stderr
    assert len({sha256 for _, sha256, _ in told}) == 2
    assert ask(TASKS, NOBODY, OLD, NEW).stdout == brought.stdout
