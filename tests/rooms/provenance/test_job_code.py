"""Code or an input that changes under a running job ends it, and nothing is written."""

import json
from importlib.metadata import version
from pathlib import Path

import pytest

from tests.support import training_jobs
from tests.support.snakemake_plans import copy_tree, run, run_alone

# Played by the job itself, between reading its input and writing its output.
PROGRAM = """
import runpy, sys
from pathlib import Path
import workflow_scripts.jobs
from workflow_scripts.data import words

before = words.word_counts
def meanwhile(*arguments, **options):
    file = Path({file!r})
    file.write_bytes(file.read_bytes() + {addition!r})
    return before(*arguments, **options)
words.word_counts = meanwhile
sys.argv = ["jobs", *{arguments!r}]
runpy.run_module("workflow_scripts.jobs", run_name="__main__")
"""


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    """A copy of the pipeline with a corpus in it."""
    return training_jobs.make_inputs(copy_tree(tmp_path_factory.mktemp("tree")))


def command_line(cache=None, **packages):
    """The job's, as its rule writes it."""
    place = training_jobs.NOWHERE | {"cache": cache and str(cache)}
    files = {"sentences": Path("corpus/train.parquet"), "counts": Path("words.parquet")}
    call = training_jobs.call_of(
        "count_words", {"words": {"peak_window": 1}}, corpus="toy", workplace=place, **files
    )
    return ["count_words", json.dumps(call | {"packages": call["packages"] | packages})]


EDIT = b"\nEDITED = True\n"


@pytest.mark.parametrize(
    ("file", "addition", "message"),
    [
        ("workflow_scripts/data/words.py", EDIT, "workflow_scripts/data/words.py: edited while this job was running"),
        ("corpus/train.parquet", EDIT, "train.parquet: changed"),
        ("workflow_scripts/data/words.py", b"\n# a comment\n", None),
        ("workflow_scripts/methods/three_r.py", EDIT, None),
    ],
)  # fmt: skip
def test_a_job_fails_only_if_its_code_or_an_input_changes(tree, file, addition, message):
    before = (tree / file).read_bytes()
    try:
        ended = run(tree, "-c", PROGRAM.format(file=file, addition=addition, arguments=command_line()))
    finally:
        (tree / file).write_bytes(before)
    if message is None:
        assert ended.returncode == 0, ended.stderr
        Path(tree, "words.parquet").unlink()
    else:
        assert ended.returncode == 1
        assert message in ended.stderr
    assert not (tree / "words.parquet").exists()


def test_a_job_does_not_begin_with_other_packages(tree):
    """A job does not begin with other packages than it was planned with."""
    ended = run(tree, "-m", "workflow_scripts.jobs", *command_line(pyarrow="0.1"))
    assert ended.returncode == 1
    assert f"pyarrow: this job runs with {version('pyarrow')}, but was planned with 0.1" in ended.stderr


def test_the_cache_is_read_before_processes_start(tree, cached):
    """Processes of torchrun do not read the cache, and only the first one writes it."""
    for environment in ({"RANK": "1"}, {"RANK": "0"}, {}):
        Path(tree, "words.parquet").unlink(missing_ok=True)
        ended = run(tree, "-m", "workflow_scripts.jobs", *command_line(cached.folder), **environment)
        assert ended.returncode == 0
        assert ("restored from" in ended.stdout) == ("RANK" not in environment)
        assert len([*cached.folder.glob("??/*")]) == (environment.get("RANK") != "1")
    (counts,) = cached.folder.glob("??/*/counts")
    assert f"restored from {counts.parent}; delete this entry to run the job again" in ended.stdout
    assert (tree / "words.parquet").samefile(counts)


def test_a_file_of_the_clone_replaces_no_module_of_python(tree, tmp_path):
    """A file of the clone named like a module of Python does not replace it."""
    (tree / "statistics.py").write_text("def fmean(values):\n    return 7\n")
    asked = "import workflow_scripts.jobs\nfrom statistics import fmean\nprint(fmean([1, 3]))"
    said = run_alone(tmp_path, "-c", asked, PYTHONPATH=str(tree))
    (tree / "statistics.py").unlink()
    assert said.stdout == "2.0\n", said.stderr
