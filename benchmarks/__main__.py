"""Run all benchmarks or those named, and keep their figures in benchmarks/results.csv and in documents that quote it.

All of them take half an hour on a quiet machine. Figures older than the code that they measure are printed as stale.
"""

import argparse
import importlib
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import harness, results
from workflow_scripts.provenance.closure import ROOT

NAMES = sorted(
    path.stem for path in Path(__file__).parent.glob("*.py") if "\nCODE = " in path.read_text("utf-8")
)


def main() -> None:
    """Run, keep, print the whole table; benchmarks that were not run keep their rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=f"one of {', '.join(NAMES)}"
    )
    parser.add_argument(
        "--rounds", type=int, default=harness.ROUNDS, help="five or more, or they are not kept"
    )
    parser.add_argument(
        "--small", action="store_true", help="try each, one round on little material; keep nothing"
    )
    parser.add_argument("--show", action="store_true", help="run nothing, print the table")
    parser.add_argument(
        "--quote", action="store_true", help="run nothing, put the figures into the documents"
    )
    arguments = parser.parse_args()
    chosen = arguments.names or NAMES
    if arguments.small:
        return try_each(chosen)
    rows = results.read(ROOT)
    for name in [] if arguments.show or arguments.quote else chosen:
        new = run(name, arguments.rounds)
        if new and arguments.rounds >= harness.ROUNDS:
            own = new[0].code.split()[0]  # a row that the benchmark has no more goes
            rows = {key: row for key, row in rows.items() if row.code.split()[0] != own}
            rows |= {row.name: row for row in new}
            results.write(rows.values(), ROOT)
    if not arguments.show:
        for path in results.QUOTING:
            text = (ROOT / path).read_text("utf-8")
            (ROOT / path).write_text(results.quoted(text, rows), "utf-8")
    print("\n".join(results.report(rows.values(), ROOT)))


def try_each(names: list[str]) -> None:
    """Run benchmarks in their small form, here, so that what they import is imported once."""
    for name in names:
        module = importlib.import_module(f"benchmarks.{name}")
        with harness.one_thread():
            list(harness.measured(module.measure, harness.Timing(1, small=True)))


def run(name: str, rounds: int) -> list[results.Row]:
    """Run one benchmark in a process of its own, so that none meets what another leaves behind."""
    with tempfile.TemporaryDirectory() as folder:
        rows = Path(folder, "rows.json")
        command = [sys.executable, "-m", f"benchmarks.{name}", "--rounds", str(rounds), "--rows", str(rows)]
        subprocess.run(command, check=True)
        found = [harness.Measured(**one) for one in json.loads(rows.read_text())]
    code = (f"benchmarks/{name}.py", *importlib.import_module(f"benchmarks.{name}").CODE)
    return [results.row_of(one, code, ROOT) for one in found]


if __name__ == "__main__":
    main()
