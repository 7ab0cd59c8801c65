"""Change everything that can be changed, and print what the planner made of it: python -m tests.dag [-k WORDS].

What a change should bring back is written in the tests of this folder and nowhere else. Each of their functions is a
row of the table, and each of its cases a change: right if exactly the expected jobs are planned, too much or too little
if jobs are planned beside them or missing. Exit code 1 unless all are right.
"""

import argparse
import os
import sys
from collections import Counter, defaultdict
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table

FOLDER = Path(__file__).parent
COLUMNS = ("tried", "right", "too much", "too little", "failed otherwise")


class Collector:
    """Counts changes by what was tried, in the order of the tests."""

    def __init__(self) -> None:
        self.found: dict[str, Counter[str]] = defaultdict(Counter)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count one test."""
        if report.when != "call" and not report.failed:
            return
        if report.skipped:
            return
        properties = dict(report.user_properties)
        function = report.nodeid.partition("::")[2].partition("[")[0]
        counts = self.found[function.removeprefix("test_").replace("_", " ")]
        changes = properties.get("changes", 1)
        counts["tried"] += changes
        counts["right"] += changes if report.passed else 0
        counts["too much"] += properties.get("too much", 0) > 0
        counts["too little"] += properties.get("too little", 0) > 0
        counts["failed otherwise"] += report.failed and "too much" not in properties


def table_of(found: dict[str, Counter[str]]) -> Table:
    """A row for each kind of change, and the sums."""
    shown = Table("change", show_edge=False, pad_edge=False)
    for name in COLUMNS:
        shown.add_column(name, justify="right")
    for what, counts in found.items():
        shown.add_row(what, *(str(counts[name]) for name in COLUMNS))
    return shown


def main() -> int:
    """Run the tests, print the table and the last line."""
    parser = argparse.ArgumentParser(prog="python -m tests.dag", description=__doc__)
    parser.add_argument("--processes", type=int, default=2, help="tests at a time; default: 2")
    parser.add_argument(
        "-k", metavar="WORDS", default="", help="only tests whose names hold this, as for pytest"
    )
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    files = sorted(str(file) for file in FOLDER.glob("test_*reruns.py"))
    spread = ["--numprocesses", str(arguments.processes)] if arguments.processes > 1 else ["-p", "no:xdist"]
    options = ["-q", "--tb", "short", "-p", "no:cacheprovider", "-p", "tests.dag.counting", "-k", arguments.k]
    collector = Collector()
    pytest.main([*options, *spread, *files], plugins=[collector])
    sums: Counter[str] = sum(collector.found.values(), Counter())
    Console(width=None if sys.stdout.isatty() else 140).print(table_of(collector.found))
    counted = ", ".join(f"{sums[name]} {name}" for name in COLUMNS[1:])
    print(f"changes {sums['tried']} tried: {counted}")  # noqa: T201
    return 0 if sums["tried"] and sums["tried"] == sums["right"] else 1


if __name__ == "__main__":
    sys.exit(main())
