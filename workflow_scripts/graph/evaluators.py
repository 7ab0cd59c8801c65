"""Kinds of suites that rule evaluate_suite runs, found in their folder without importing what they compute with."""

import re

from workflow_scripts.provenance.closure import PACKAGE

_FORM = re.compile(r'^FORM = "([a-z]+)"$', re.MULTILINE)


def evaluators() -> dict[str, str]:
    """Kind to the form of its datasets: the files of ``evaluation`` with a ``FORM`` (``evaluation.base``)."""
    files = sorted((PACKAGE / "evaluation").glob("[a-z]*.py"))
    found = {file.stem: _FORM.search(file.read_text("utf-8")) for file in files}
    return {kind: form.group(1) for kind, form in found.items() if form}
