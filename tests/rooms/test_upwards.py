"""Imports run one way between rooms."""

import ast
from collections import defaultdict

from tests.support.snakemake_plans import ROOT

CODE = ROOT / "workflow_scripts"


def imported(file):
    """Rooms and modules of the project that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == CODE.name:
            yield from [node.module.split(".")[1]] if "." in node.module else [one.name for one in node.names]


def test_functions_of_jobs_are_imported_by_no_package():
    """Functions of jobs join models with other packages and are imported by none."""
    shared = {"columns", "errors", "provenance", "settings"}
    files = [*(CODE / "jobs").glob("[!_]*.py")]
    assert len(files) == 6
    joined = {file.stem: {*imported(file)} - shared for file in files}
    assert [name for name, rooms in joined.items() if "models" not in rooms or len(rooms) < 2] == []
    assert not [
        file for file in CODE.rglob("*.py") if "jobs" in imported(file) and file.parent.name != "jobs"
    ]


def test_only_the_workplace_is_read_from_variables():
    """Jobs get it in their call. cards.py notes there that a scheduler has granted a job its GPUs."""
    texts = {file.relative_to(CODE).as_posix(): file.read_text("utf-8") for file in CODE.rglob("*.py")}
    reading = {name for name, text in texts.items() if "os.environ" in text and '"SEMBLANCE_' in text}
    assert reading == {"settings/workplace.py", "provenance/cards.py"}


def test_models_losses_and_training_know_no_job():
    files = [file for room in ("models", "losses", "training") for file in (CODE / room).rglob("*.py")]
    assert len(files) > 30
    assert not [file for file in files if "provenance.job" in file.read_text("utf-8")]


def reached(room, rooms):
    found, pending = set(), {room}
    while pending:
        pending = set().union(*(rooms[one] for one in pending)) - found
        found |= pending
    return found


def test_no_room_imports_one_that_imports_it():
    rooms = defaultdict(set)
    for file in CODE.rglob("*.py"):
        room = file.relative_to(CODE).parts[0].removesuffix(".py")
        rooms[room] |= {*imported(file)} - {room}
    assert len(rooms) > 15
    assert {room for room in [*rooms] if room in reached(room, rooms)} == set()
