"""What a failed comparison of planned jobs with expected ones was about: a plugin of pytest, for ``tests.dag``."""

from collections import Counter

import pytest

_compared: list[tuple[object, object]] = []
"""Both sides of the comparison that has just failed."""


def pytest_assertrepr_compare(op: str, left: object, right: object) -> None:
    """Keep what was planned (left) and what was expected (right)."""
    if op == "==" and isinstance(left, dict | set) and isinstance(right, dict | set):
        _compared[:] = [(left, right)]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item, call: pytest.CallInfo):
    """Add to a failed test's report how many jobs were planned too much and too little."""
    report = yield
    if report.when == "call" and report.failed and _compared:
        planned, expected = (Counter(side) for side in _compared.pop())
        report.user_properties.append(("too much", (planned - expected).total()))
        report.user_properties.append(("too little", (expected - planned).total()))
    _compared.clear()
    return report
