"""Run the fault matrix of README.md and print it: python -m tests.faults [--rows N ...] [--points N].

Ends with "faults N tried, 0 lost"; exit code 1 if anything was lost, or a row names a test that is not there.
"""

import argparse
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import pytest
from rich.console import Console
from rich.table import Table

from tests.jobs import MODEL

README = Path(__file__).with_name("README.md")
CHAOS = "ckpt-chaos "


class Row(NamedTuple):
    """One fault."""

    number: int
    fault: str
    tests: list[str]
    """Beginnings of test ids, or ckpt-chaos and its modes."""


def rows() -> list[Row]:
    """The matrix as README.md has it."""
    lines = re.findall(r"^\| (\d+) \| (.*?) \| .*? \| (.*) \|$", README.read_text("utf-8"), re.MULTILINE)
    return [Row(int(number), fault, re.findall(r"`(\S[^`]*)`", tests)) for number, fault, tests in lines]


class Collector:
    """Counts outcomes by test id."""

    def __init__(self) -> None:
        self.outcomes: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        counts = report.when == "call" or report.outcome != "passed"
        if counts and self.outcomes.get(report.nodeid) != "failed":
            self.outcomes[report.nodeid] = report.outcome


def run_tests(matrix: list[Row]) -> dict[str, str]:
    """Run every test that a row names; outcome by id."""
    ids = sorted({test for row in matrix for test in row.tests if not test.startswith(CHAOS)})
    collector = Collector()
    files = sorted({test.partition("::")[0] for test in ids})
    chosen = [test for test in _collect(files) if any(_begins(test, start) for start in ids)]
    assert chosen, "nothing to try"
    spread = ["--numprocesses", "2", "--dist", "loadfile"]
    pytest.main(["-q", "-p", "no:cacheprovider", *spread, *chosen], plugins=[collector])
    return collector.outcomes


def _collect(files: list[str]) -> list[str]:
    listed = subprocess.run(
        [sys.executable, "-m", "pytest", "--collect-only", *files],
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    return list(dict.fromkeys(line.partition("[")[0] for line in listed.splitlines() if "::" in line))


def _begins(test: str, start: str) -> bool:
    return test.startswith(start if "::" in start else f"{start}::")


def run_chaos(modes: str, points: str) -> dict[str, str]:
    """Crash one training at the writes of its files; outcome by crash point."""
    with tempfile.TemporaryDirectory() as folder:
        inputs = f"from pathlib import Path; from tests.jobs import make_inputs; make_inputs(Path('{folder}/inputs'))"
        subprocess.run([sys.executable, "-c", inputs], check=True)
        command = [sys.executable, "-m", "ckpt_chaos", "run", "--modes", modes, "--work", f"{folder}/work"]
        command += ["--max-points", points] if points != "all" else []
        command += ["--result-file", f"{{out}}/{MODEL}/model.safetensors", "--"]
        command += [sys.executable, "-m", "tests.faults.training", f"{folder}/inputs", "{out}"]
        printed = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    verdicts = re.findall(r"^(no crash \(control\)|#\d+ .*?)  .*(PASS|[A-Z]+_[A-Z]+)", printed, re.MULTILINE)
    passed = {f"{CHAOS}{modes}::{point}": verdict for point, verdict in verdicts}
    return {point: "passed" if verdict == "PASS" else "failed" for point, verdict in passed.items()}


def main() -> int:
    """Try every fault, print the table and the last line."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--points", default="24", help="crash points of ckpt-chaos a row, or all (an hour)")
    parser.add_argument("--rows", type=int, nargs="+", help="rows to try; default: all")
    arguments = parser.parse_args()
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    matrix = [row for row in rows() if arguments.rows is None or row.number in arguments.rows]
    outcomes = run_tests(matrix)
    crashes = {test.removeprefix(CHAOS) for row in matrix for test in row.tests if test.startswith(CHAOS)}
    with ThreadPoolExecutor(2) as pool:  # they wait for processes
        for verdicts in pool.map(lambda modes: run_chaos(modes, arguments.points), sorted(crashes)):
            outcomes |= verdicts
    table = Table("#", "fault", "tries", "skipped", "losses", show_edge=False, pad_edge=False)
    absent = []
    for row in matrix:
        found = {
            test: outcome
            for test, outcome in outcomes.items()
            if any(_begins(test, one) for one in row.tests)
        }
        absent += [one for one in row.tests if not any(_begins(test, one) for test in outcomes)]
        counts = Counter(found.values())
        tried = counts["passed"] + counts["failed"]
        table.add_row(
            str(row.number),
            row.fault,
            str(tried),
            *map(str, (counts["skipped"], counts["failed"])),
        )
    Console(width=None if sys.stdout.isatty() else 140).print(table)
    for one in absent:
        print(f"no such test: {one}")
    counts = Counter(outcomes.values())
    print(f"faults {counts['passed'] + counts['failed']} tried, {counts['failed'] + len(absent)} lost")
    return 1 if counts["failed"] or absent else 0


if __name__ == "__main__":
    sys.exit(main())
