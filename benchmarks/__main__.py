"""Run all benchmarks or those named, and keep their figures in benchmarks/results.csv and in documents that quote it.

All of them take half an hour on a quiet machine. Figures older than the code that they measure are printed as stale.
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
    """Run, keep, print the whole table; benchmarks that were not run keep their rows."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__, allow_abbrev=False)
    add = parser.add_argument
    add("names", nargs="*", choices=[*NAMES, []], metavar="NAME", help=f"one of {', '.join(NAMES)}")
    add("--rounds", type=int, default=harness.ROUNDS, help="five or more, or they are not kept")
    add("--small", action="store_true", help="try each, one round on little material; keep nothing")
    add(
        "--profile",
        action="store_true",
        help="print where the time goes, where a benchmark can; keep nothing",
    )
    add("--show", action="store_true", help="run nothing, print the table")
    add("--quote", action="store_true", help="run nothing, put the figures into the documents")
    arguments = parser.parse_args()
    chosen = arguments.names or NAMES
    if arguments.small or arguments.profile:
        timing = harness.Timing(1 if arguments.small else arguments.rounds, arguments.small)
        return try_each(chosen, timing, profile=arguments.profile)
    rows = results.read(ROOT)
    for name in [] if arguments.show or arguments.quote else chosen:
        new = run(name, arguments.rounds)
        if new and arguments.rounds >= harness.ROUNDS:
            own = new[0].code.split()[0]  # a row that the benchmark has no more goes
            rows = {key: row for key, row in rows.items() if row.code.split()[0] != own}
            rows |= {row.name: row for row in new}
            results.write(rows.values(), ROOT)
    if not arguments.show:
        for path in filter(Path.exists, (ROOT / path for path in results.QUOTING)):
            path.write_text(results.quoted(path.read_text("utf-8"), rows), "utf-8")
    print("\n".join(results.report(rows.values(), ROOT)))


def try_each(names: list[str], timing: harness.Timing, *, profile: bool) -> None:
    """Run benchmarks here, so that what they import is imported once, or have them print where the time goes."""
    for name in names:
        explain = getattr(importlib.import_module(f"benchmarks.{name}"), "explain", None)
        if not profile:
            harness.measured(name, timing)
        elif explain:
            with harness.one_thread():
                explain(timing)


def run(name: str, rounds: int) -> list[results.Row]:
    """Run one benchmark in a process of its own, so that none meets what another leaves behind."""
    with ProcessPoolExecutor(1, get_context("spawn")) as process:
        found = process.submit(harness.measured, name, harness.Timing(rounds, small=False)).result()
    code = (f"benchmarks/{name}.py", *importlib.import_module(f"benchmarks.{name}").CODE)
    return [results.row_of(one, code, ROOT) for one in found]


if __name__ == "__main__":
    main()
