"""The table of changes counts what was planned too much and too little, and what a single test tried at once."""

import subprocess
import sys

from tests.planning import ROOT

TESTS = """
def test_right(record_property):
    record_property("changes", 7)
    assert {"a": 1} == {"a": 1}
def test_more_of_one_and_another():
    assert {"a": 2, "b": 1} == {"a": 1}
def test_one_missing():
    assert {"a"} == {"a", "b"}
def test_one_for_another():
    assert {"a"} == {"b"}
def test_broken():
    raise ValueError
def test_left_out():
    import pytest
    pytest.skip()
"""
RUN = """
import sys, pytest
from tests.dag.__main__ import COLUMNS, Collector
collector = Collector()
pytest.main(["-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-p", "tests.dag.counting", sys.argv[1]], plugins=[collector])
for what, counts in collector.found.items():
    print("|", what, *(counts[name] for name in COLUMNS))
"""


def test_each_kind_of_failure_is_counted_as_what_it_is(tmp_path):
    (tmp_path / "test_some_reruns.py").write_text(TESTS)
    run = subprocess.run(
        [sys.executable, "-c", RUN, tmp_path], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert [line.split() for line in run.stdout.splitlines() if line.startswith("| ")] == [
        ["|", "right", "7", "7", "0", "0", "0"],
        ["|", "more", "of", "one", "and", "another", "1", "0", "1", "0", "0"],
        ["|", "one", "missing", "1", "0", "0", "1", "0"],
        ["|", "one", "for", "another", "1", "0", "1", "1", "0"],
        ["|", "broken", "1", "0", "0", "0", "1"],
    ]
