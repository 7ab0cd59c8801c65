"""Run every benchmark, or those named: python -m benchmarks [NAME ...]. The table lands in benchmarks/results.csv."""

import argparse
import csv
import subprocess
import sys
from pathlib import Path

from workflow_scripts.provenance.artefacts import atomic

HERE = Path(__file__).parent
RESULTS = HERE / "results.csv"
COLUMNS = ("name", "ratio", "unit", "comparison")


def run(name: str) -> list[dict[str, str]]:
    """Run one benchmark in its own process; returns its lines."""
    printed = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{name}"], stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    print(printed, end="", flush=True)
    lines = [line.split(maxsplit=4)[1:] for line in printed.splitlines() if line.startswith("bench ")]
    return [dict(zip(COLUMNS, line, strict=True)) for line in lines]


def main() -> None:
    """Run, print, and keep the table; benchmarks that were not run keep their rows."""
    names = sorted(path.stem for path in HERE.glob("[a-z]*.py") if "def main" in path.read_text("utf-8"))
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "names", nargs="*", choices=[*names, []], metavar="NAME", help=f"one of {', '.join(names)}"
    )
    chosen = parser.parse_args().names or names
    rows = {row["name"]: row for name in chosen for row in run(name)}
    if RESULTS.exists():
        with RESULTS.open(newline="") as file:
            rows = {row["name"]: row for row in csv.DictReader(file)} | rows
    with atomic(RESULTS) as temporary, temporary.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows[name] for name in sorted(rows))


if __name__ == "__main__":
    main()
