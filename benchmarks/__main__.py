"""Run all or some benchmarks, and save their figures in benchmarks/results.csv and in the documents that quote it.

All benchmarks take half an hour on a quiet machine. Figures older than the measured code are printed as stale.
"""

import argparse
import importlib
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from benchmarks import harness, results
from workflow_scripts.provenance.closure import ROOT

NAMES = sorted(
    path.stem for path in Path(__file__).parent.glob("*.py") if "\nCODE = " in path.read_text("utf-8")
)


def main() -> None:
    """Run benchmarks, save their figures and print the table; other benchmarks keep their rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=f"one of {', '.join(NAMES)}")
    add(
        "--rounds",
        type=int,
        default=harness.ROUNDS,
        help="number of rounds; figures of fewer than five are not saved",
    )
    add("--small", action="store_true", help="try each benchmark, one round on little material; save nothing")
    add(
        "--profile",
        action="store_true",
        help="print a profile, if the benchmark has one; save nothing",
    )
    add("--show", action="store_true", help="run nothing, print the table")
    add("--quote", action="store_true", help="run nothing, write the figures into the documents")
    arguments = parser.parse_args()
    chosen = arguments.names or NAMES
    if arguments.small or arguments.profile:
        timing = harness.Timing(1 if arguments.small else arguments.rounds, arguments.small)
        return try_each(chosen, timing, profile=arguments.profile)
    rows = results.read(ROOT)
    for name in [] if arguments.show or arguments.quote else chosen:
        new = run(name, arguments.rounds)
        if new and arguments.rounds >= harness.ROUNDS:
            script = new[0].code.split()[0]  # removes old rows of the benchmark
            rows = {key: row for key, row in rows.items() if row.code.split()[0] != script}
            rows |= {row.name: row for row in new}
            results.write(rows.values(), ROOT)
    if not arguments.show:
        for path in filter(Path.exists, (ROOT / path for path in results.QUOTING)):
            path.write_text(results.quoted(path.read_text("utf-8"), rows), "utf-8")
    print("\n".join(results.report(rows.values(), ROOT)))


def try_each(names: list[str], timing: harness.Timing, *, profile: bool) -> None:
    """Run benchmarks in this process, with shared imports, or print their profiles."""
    for name in names:
        explain = getattr(importlib.import_module(f"benchmarks.{name}"), "explain", None)
        if not profile:
            harness.measured(name, timing)
        elif explain:
            with harness.one_thread():
                explain(timing)


def run(name: str, rounds: int) -> list[results.Row]:
    """Return the rows of one benchmark, run in a separate process, because benchmarks would influence one another."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        measurements = process.submit(harness.measured, name, harness.Timing(rounds, small=False)).result()
    code = (f"benchmarks/{name}.py", *importlib.import_module(f"benchmarks.{name}").CODE)
    return [results.row_of(measurement, code, ROOT) for measurement in measurements]


if __name__ == "__main__":
    main()
