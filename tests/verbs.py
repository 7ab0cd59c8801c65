"""Answers of a verb of ``python -m workflow_scripts``, called in this process."""

import contextlib
import io
import json

from workflow_scripts.__main__ import ask


def printed(*words):
    """Exit code and what is printed."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        code = ask([*map(str, words)])
    return code, out.getvalue()


def data(*words):
    """Exit code and data of --json."""
    code, text = printed(*words, "--json")
    return code, json.loads(text)
