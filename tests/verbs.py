"""Answers of a verb of ``python -m workflow_scripts``, called in this process."""

import contextlib
import io
import json
from collections import defaultdict

from workflow_scripts.__main__ import ask


def printed(*words):
    """Exit code and what is printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = ask([*map(str, words)])
    return code, out.getvalue()


def data(*words):
    """Exit code, and the entries of the verdict of --json with the rows of each of its parts."""
    code, text = printed(*words, "--json")
    return code, parts_of(text)


def parts_of(text):
    """The entries of the verdict of --json, and the rows of each part."""
    rows = json.loads(text)
    if not isinstance(rows, list):  # a schema
        return rows
    parts = defaultdict(list)
    for row in rows:
        parts[row.pop("part")].append(row)
    said = {key: value for verdict in parts.pop("verdict", []) for key, value in verdict.items()}
    return defaultdict(list, said | parts)
