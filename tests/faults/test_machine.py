"""A machine that is not as one would like it: full, read-only, without room for temporary files, with a moved clock."""

import contextlib
import multiprocessing
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pytest

from tests.jobs import MODEL, files_of, make_inputs
from tests.planning import ROOT
from tests.unit.audit import conftest as study
from workflow_scripts.apis.ledger import Ledger, Request, Row
from workflow_scripts.audit import verify
from workflow_scripts.errors import DataError, one_line_errors
from workflow_scripts.provenance.artefacts import job_record, write_page, write_table, writing_model_folder

NOBODY = 65534
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user, or mount")


@pytest.fixture
def shared():
    """A folder that every user may enter, unlike those of pytest."""
    folder = Path(tempfile.mkdtemp())
    folder.chmod(0o755)
    with contextlib.chdir(folder):
        yield folder
    shutil.rmtree(folder)


@pytest.fixture
def disk(tmp_path):
    """A function that gives a file system of a size, and takes options to change it; all are gone afterwards."""
    mounted = []

    def mount(options, place=tmp_path / "disk"):
        place.mkdir(exist_ok=True)
        if place in mounted:
            options = f"remount,{options}"
        done = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", options, "tmpfs", place],
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"no file system can be mounted: {done.stderr.strip()}")
        mounted.append(place)
        return place

    yield mount
    for place in set(mounted):
        subprocess.run(["umount", "--lazy", place], check=True)


def as_nobody(function):
    """What a function returns, or the text of what it raises, in a process of a user who owns nothing."""
    context = multiprocessing.get_context("fork")
    reader, writer = context.Pipe(duplex=False)

    def child():
        os.setgroups([])
        os.setgid(NOBODY)
        os.setuid(NOBODY)
        try:
            with one_line_errors():
                writer.send(function())
        except SystemExit as stopped:
            writer.send(str(stopped))
        except BaseException as error:
            writer.send(repr(error))

    process = context.Process(target=child)
    process.start()
    found = reader.recv()
    process.join()
    return found


def record():
    return job_record("split_corpus", settings={}, inputs={}, outputs=[])


def fill(folder):
    with writing_model_folder(folder, record()) as inside:
        (inside / "model.safetensors").write_bytes(b"new")


WRITERS = {
    "table.parquet": lambda path: write_table(path, pa.table({"a": [2]}), record()),
    "report.html": lambda path: write_page(path, "<html>new</html>", record()),
    "model": fill,
}


@needs_root
@pytest.mark.parametrize("name", WRITERS)
def test_results_that_may_not_be_written_are_one_line_and_stay(shared, name):
    (shared / "results").mkdir()
    for writer, write in WRITERS.items():
        write(shared / "results" / writer)
    before = files_of(shared / "results")
    line = as_nobody(lambda: WRITERS[name](shared / "results" / name))
    assert line.startswith(f"OSError: {shared}/results/.{name}.") and line.count("\n") == 0
    assert "Permission denied. Give this user the right to use it and run again" in line
    assert files_of(shared / "results") == before and len(before) == 4


@needs_root
def test_another_user_can_check_results_that_only_their_owner_may_change(shared):
    study.write_study()
    before = files_of(shared)

    def check():
        outcome = verify.verify([shared / study.STUDY])
        return len(outcome.records.by_file), outcome.findings

    assert as_nobody(check) == (15, [])
    assert files_of(shared) == before


@needs_root
def test_another_users_answers_are_not_called_damaged(shared):
    rows = [Row(Request("google", "", "en", "fr", text), "answer", "usable") for text in ("one", "another")]
    with Ledger(shared / "answers.sqlite") as ledger:
        ledger.settle(rows[:1])

    def look():
        with Ledger(shared / "answers.sqlite") as ledger:
            found = [row.answer for row in ledger.find([rows[0].request]).values()]
            try:
                ledger.settle(rows[1:])
            except DataError as error:
                return found, ledger.check(), str(error)

    found, count, message = as_nobody(look)
    assert (found, count) == (["answer"], 1)  # what is read only is read, without files beside it
    assert "may only be read here" in message and "damaged" not in message
    assert [path.name for path in shared.iterdir() if path.name.startswith("answers")] == ["answers.sqlite"]


# Whole trainings, in processes of their own


@pytest.fixture(scope="module")
def inputs(tmp_path_factory):
    return make_inputs(tmp_path_factory.mktemp("inputs"))


@pytest.fixture(scope="module")
def undisturbed(inputs, tmp_path_factory):
    """What a training makes where nothing is in its way."""
    out = tmp_path_factory.mktemp("undisturbed")
    ended = train(inputs, out)
    assert ended.returncode == 0, ended.stderr
    return made_by(out)


def made_by(out):
    return files_of(out / MODEL.parent)


def train(inputs, out, code="", **environment):
    """Run a training in a process of its own, after some lines of Python."""
    run = f"{code}\nfrom tests.checkpointing import main\nmain()"
    return subprocess.run(
        [sys.executable, "-c", run, str(inputs), str(out)],
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.slow
@needs_root
def test_a_disk_that_is_really_full_is_one_line_and_more_room_gives_the_same_bytes(inputs, undisturbed, disk):
    out = disk("size=200k")
    ended = train(inputs, out)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr, ended.stderr
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("OSError: ") and "No space left on device. Free some space and run again" in last
    assert list(out.rglob("*.tmp")) == []
    disk("size=50m")
    ended = train(inputs, out)
    assert ended.returncode == 0, ended.stderr
    assert made_by(out) == undisturbed


YEARS = 20 * 365 * 86_400
DIE_AFTER_A_CHECKPOINT = (
    "import os\nfrom workflow_scripts.training import checkpoints\nsave = checkpoints.save_checkpoint\n"
    "def die(*given):\n    save(*given)\n    os.kill(os.getpid(), 9)\n"
    "checkpoints.save_checkpoint = die\n"
)


@pytest.mark.slow
def test_a_clock_that_moves_amid_a_training_changes_no_byte(inputs, undisturbed, tmp_path):
    """Killed at one date and gone on with at another, with files dated after the clock or long before it."""
    out = tmp_path / "out"
    assert train(inputs, out, DIE_AFTER_A_CHECKPOINT).returncode == -9
    found = [path for path in out.rglob("*") if path.is_file()]
    assert any(path.name == "COMPLETE.json" for path in found)
    for path in found:
        os.utime(path, (time.time() - YEARS,) * 2)
    moved = f"import time\nnow = time.time\ntime.time = lambda: now() + {YEARS}\n"
    ended = train(inputs, out, moved)
    assert ended.returncode == 0, ended.stderr
    assert made_by(out) == undisturbed
