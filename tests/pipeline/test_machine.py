"""A machine that is not as one would like it: full, or with files that another user owns."""

import contextlib
import os
import shutil
import sys
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest

from tests.jobs import files_of, in_child
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
