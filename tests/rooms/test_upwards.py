"""Imports run one way between rooms."""

import ast
from collections import defaultdict

from tests.planning import ROOT

CODE = ROOT / "workflow_scripts"


def imported(file):
    """Rooms and modules of the project that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(file.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and str(node.module).partition(".")[0] == CODE.name:
            yield from [node.module.split(".")[1]] if "." in node.module else [one.name for one in node.names]


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
