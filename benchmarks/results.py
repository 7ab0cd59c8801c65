"""Saved figures: benchmarks/results.csv, its outdated rows, and the documents that quote it.

A document quotes a figure in a table row whose first cell is its name: ``| `one_pass_cost` | 1.45 (1.42 to 1.49) |``.
"""

import csv
import re
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.harness import THREADS, Measured, figure
from workflow_scripts.provenance.artefacts import atomic
from workflow_scripts.provenance.record import processor

TABLE = Path("benchmarks/results.csv")
QUOTING = (Path("README.md"), Path("docs/laboratory.md"))
"""Documents that quote figures, relative to the repository's root."""
EDITED = "+"
"""Suffix of a commit with edited files, whose measured code is lost."""


class Row(NamedTuple):
    """A row of the table: a ratio, its spread over rounds, and its origin."""

    name: str
    median: str
    lowest: str
    highest: str
    rounds: str
    unit: str
    comparison: str
    clock: str
    threads: str
    processor: str
    """The processor, followed by the GPU, its driver and PyTorch, if a GPU was timed."""
    date: str
    commit: str
    code: str
    """Paths of the measured code, separated by blanks."""

    def __str__(self) -> str:
        """Return the line to print."""
        spread = f"{self.median} ({self.lowest} to {self.highest})"
        return f"{self.name:38} {spread:24} {self.unit} {self.comparison}"


def row_of(measurement: Measured, code: Sequence[str], root: Path) -> Row:
    """Return the row of a ratio that was measured now, at the current commit."""
    edited = EDITED if _git(root, "status", "--porcelain", "--", *code) else ""
    return Row(
        measurement.name,
        *(
            figure(value)
            for value in (median(measurement.values), min(measurement.values), max(measurement.values))
        ),
        rounds=str(len(measurement.values)),
        unit=measurement.unit,
        comparison=measurement.comparison,
        clock=measurement.clock,
        threads=str(THREADS),
        processor=", ".join(filter(None, (processor(), measurement.card))),
        date=f"{datetime.now(UTC):%Y-%m-%d}",
        commit=f"{_git(root, 'rev-parse', '--short=12', 'HEAD') or 'unknown'}{edited}",
        code=" ".join(code),
    )


def read(root: Path) -> dict[str, Row]:
    """Return all saved rows by name."""
    with (root / TABLE).open(newline="") as file:
        return {line["name"]: Row(**line) for line in csv.DictReader(file)}


def write(rows: Iterable[Row], root: Path) -> None:
    """Save rows, sorted by name."""
    with atomic(root / TABLE) as temporary, temporary.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(Row._fields)
        writer.writerows(sorted(rows))


def out_of_date(row: Row, root: Path) -> str | None:
    """Return the reason why a row may be outdated; None if the measured code has not changed since."""
    if row.commit.endswith(EDITED):
        return f"measured on edited files of {row.commit.removesuffix(EDITED)}"
    code = row.code.split()
    later = _git(root, "log", "--format=%h", f"{row.commit}..HEAD", "--", *code)
    if later is None:
        return f"commit {row.commit} is not in this history"
    if changes := later.split():
        return f"{len(changes)} commits since {row.commit} change the measured code, the last {changes[0]}"
    if _git(root, "status", "--porcelain", "--", *code):
        return "the measured code has been edited"
    return None


def report(rows: Iterable[Row], root: Path) -> list[str]:
    """Return a line for each row, followed by the reason if it is outdated."""
    lines = []
    for row in rows:
        lines.append(str(row))
        if reason := out_of_date(row, root):
            lines.append(f"    STALE: {reason}")
    return lines


def quoted(text: str, rows: Mapping[str, Row]) -> str:
    """Return the text of a document with the saved figures."""

    def line(match: re.Match[str]) -> str:
        if not (row := rows.get(match["name"])):
            return match[0]
        return f"{match['start']}{row.median} ({row.lowest} to {row.highest})"

    return re.sub(
        r"^(?P<start>\| `(?P<name>\w+)` \| )[\d.]+ \([\d.]+ to [\d.]+\)", line, text, flags=re.MULTILINE
    )


def quotes(text: str) -> list[str]:
    """Return the names of the figures that a document quotes."""
    return re.findall(r"^\| `(\w+)` \| [\d.]+ \([\d.]+ to [\d.]+\)", text, flags=re.MULTILINE)


def _git(root: Path, *arguments: str) -> str | None:
    """Return the output of a git command; None if it fails."""
    run = subprocess.run(["git", "-C", str(root), *arguments], capture_output=True, text=True, check=False)
    return run.stdout.strip() if run.returncode == 0 else None
