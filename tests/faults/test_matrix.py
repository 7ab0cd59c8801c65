"""The matrix names every fault, and tests that are there."""

from tests.faults.__main__ import CHAOS, rows
from tests.planning import ROOT


def test_every_fault_has_a_row_with_tests():
    matrix = rows()
    assert [row.number for row in matrix] == list(range(1, 62))
    assert [row.number for row in matrix if not row.tests] == []


def test_every_test_that_a_row_names_is_there():
    names = {test for row in rows() for test in row.tests if not test.startswith(CHAOS)}
    assert len(names) > 60
    for name in names:
        file, _, test = name.partition("::")
        text = (ROOT / file).read_text("utf-8")
        assert f"def {test or 'test_'}" in text, name
