"""Answers of a verb of ``python -m workflow_scripts``, called in this process."""

import contextlib
import io
import json
import re
from collections import defaultdict

import pytest

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
    rows = json.loads(text, parse_constant=pytest.fail)  # NaN is no JSON
    if not isinstance(rows, list):  # a schema
        return rows
    check_form(rows)
    parts = defaultdict(list)
    for row in rows:
        parts[row.pop("part")].append(row)
    said = {key: value for verdict in parts.pop("verdict", []) for key, value in verdict.items()}
    return defaultdict(list, said | parts)


def check_form(rows):
    """An array of flat objects with plain keys: a value is a number, a text, true, false, null, or a list of these."""
    plain = (int, float, str, bool, type(None))
    for row in rows:
        assert next(iter(row)) == "part"
        assert isinstance(row["part"], str)
        assert [key for key in row if not re.fullmatch(r"[a-z][a-z0-9_]*", key)] == []
        for value in row.values():
            assert all(isinstance(one, plain) for one in (value if isinstance(value, list) else [value])), row
    assert [row["part"] for row in rows].count("verdict") <= 1
