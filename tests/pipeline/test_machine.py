"""A machine that is not as one would like it: full, or with files that another user owns."""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from tests.jobs import MODEL, files_of, in_child, make_inputs
from tests.planning import ROOT
from workflow_scripts.errors import one_line_errors
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
def as_nobody(tmp_path):
    """A function that says what another one returns, or its error, in a process of a user who owns nothing."""

    def answer(function):
        def act():
            os.setgroups([])
            os.setgid(NOBODY)
            os.setuid(NOBODY)
            with one_line_errors():
                sys.stdout.write(f"{function()}\n")

        in_child(act, tmp_path / "printed")
        return (tmp_path / "printed").read_text()

    return answer


def record():
    return job_record("count_words", settings={}, inputs={}, outputs=[])


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
def test_results_that_may_not_be_written_are_one_line_and_stay(shared, as_nobody, name):
    file = shared / "results" / name
    file.parent.mkdir()
    WRITERS[name](file)
    before = files_of(shared / "results")
    line = as_nobody(lambda: WRITERS[name](file))
    assert line.startswith(f"OSError: {shared}/results/.{name}.") and line.count("\n") == 1
    assert "Permission denied. Give this user permission to use it and run again" in line
    assert files_of(shared / "results") == before and before


@pytest.fixture
def disk(tmp_path):
    """A function that gives a file system, of a size that another call changes."""
    place = tmp_path / "disk"
    place.mkdir()

    def mount(size):
        options = f"size={size}{',remount' if place.is_mount() else ''}"
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=False)
        if done.returncode:
            pytest.skip("no file system can be mounted")
        return place

    yield mount
    subprocess.run(["umount", "--lazy", place], check=False)


@pytest.mark.slow
@needs_root
def test_a_disk_that_is_really_full_is_one_line_and_more_room_gives_the_same_bytes(tmp_path, disk):
    inputs = make_inputs(tmp_path / "inputs")

    def train(out):
        command = [sys.executable, "-m", "tests.checkpointing", str(inputs), str(out)]
        return subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)

    assert train(tmp_path / "undisturbed").returncode == 0
    out = disk("200k")
    ended = train(out)
    assert ended.returncode == 1 and "Traceback" not in ended.stderr, ended.stderr
    last = ended.stderr.strip().splitlines()[-1]
    assert last.startswith("OSError: ") and "No space left on device. Free some space and run again" in last
    assert list(out.rglob("*.tmp")) == []
    disk("50m")
    assert train(out).returncode == 0
    assert files_of(out / MODEL.parent) == files_of(tmp_path / "undisturbed" / MODEL.parent)
