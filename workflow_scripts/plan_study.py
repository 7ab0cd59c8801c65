"""What a study would take, without running anything: python -m workflow_scripts.plan_study [TARGET ...].

Jobs come from Snakemake's own plan, as if nothing were there yet. GPU hours, storage and prices are those jobs times
the numbers of config/rates.yaml, which says of each whether it was measured, published or assumed; what has no number
there is printed as unknown. Without a target everything that the configuration asks for is planned; a target is what
snakemake takes: a paper (jtcse), a table (results/paper/tables/jtcse_table1.parquet), the scores behind a cell.
"""

import argparse
import json
import os
import resource
import sys
import time
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from workflow_scripts.closure import ROOT
from workflow_scripts.errors import one_line_errors
from workflow_scripts.planning.estimates import Estimator
from workflow_scripts.planning.graph import SHARED, planned
from workflow_scripts.planning.rates import read_rates
from workflow_scripts.planning.summary import Row, summary

_PIPE_WIDTH = 160  # characters of a line where no terminal says how many it has


def main() -> None:
    """Plan, estimate, print."""
    parser = argparse.ArgumentParser(
        prog="python -m workflow_scripts.plan_study",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "targets", nargs="*", metavar="TARGET", help="files or rules; default: the whole study"
    )
    parser.add_argument("--configfile", nargs="+", default=[], metavar="FILE", help="as for snakemake")
    parser.add_argument(
        "--rates", type=Path, default=ROOT / "config/rates.yaml", help="numbers to multiply by"
    )
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    arguments = parser.parse_args()
    began = time.perf_counter()
    rates = read_rates(arguments.rates)
    graph = planned(arguments.targets, arguments.configfile)
    tables = summary(graph, Estimator(graph, rates, ROOT), rates)
    if arguments.json:
        sys.stdout.write(json.dumps(tables, indent=1) + "\n")
    else:
        show(tables)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000  # Linux counts in KB
        took = f"{time.perf_counter() - began:.0f} s, {memory:.0f} MB"
        sys.stderr.write(f"planned {len(graph.jobs)} jobs: {took}\n")


def show(tables: dict[str, list[Row]]) -> None:
    """Print the tables for people."""
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPE_WIDTH
    console.print(_work_table("Jobs by rule", "rule", [(row["rule"], row) for row in tables["rules"]]))
    title = (
        "By paper and experiment; each row alone, shared jobs stand in several, the last row counts each once"
    )
    console.print(_work_table(title, "experiment", [(_name(row), row) for row in tables["experiments"]]))
    console.print(_storage_table(tables["storage"]))
    if tables["requests"]:
        console.print(_requests_table(tables["requests"]))
    console.print(_origins_table(tables["rests_on"]))


def _name(row: Row) -> str:
    if row["paper"] is None:
        return "all, each job once"
    if row["paper"] == SHARED:
        return "the page, and what no experiment needs"
    return f"  {row['experiment']}" if row["experiment"] else row["paper"]


def _table(title: str, first: str, *numbers: str, texts: tuple[str, ...] = ()) -> Table:
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column(first, no_wrap=True)
    for heading in numbers:
        table.add_column(heading, justify="right")
    for heading in texts:
        table.add_column(heading)
    return table


def _work_table(title: str, first: str, rows: list[tuple[str, Row]]) -> Table:
    columns = ("jobs", "trainings", "GPU h", "GPU jobs unknown", "GPU h at most", "CPU job h at most")
    table = _table(f"\n{title}", first, *columns, texts=("GPU h rest on",))
    for name, row in rows:
        hours = row["gpu_hours"]
        counts = (str(row["jobs"]), str(row["trainings"] or ""))
        limits = (_number(row["gpu_hours_limit"]), _number(row["cpu_job_hours_limit"]))
        unknown = str(row["gpu_jobs_unknown"] or "")
        table.add_row(name, *counts, _number(hours), unknown, *limits, ", ".join(row["basis"]))
    table.caption = "at most: limits that the rules declare, after which a queue ends a job"
    return table


def _storage_table(rows: list[Row]) -> Table:
    table = _table("\nStorage by rule", "rule", "jobs known", "GB", "jobs unknown", texts=("rests on",))
    for row in rows:
        table.add_row(row["rule"], str(row["jobs"]), _number(row["gigabytes"], 3), str(row["jobs_unknown"] or ""),
                      ", ".join(row["basis"]))  # fmt: skip
    return table


def _requests_table(rows: list[Row]) -> Table:
    columns = ("jobs", "requests, least", "most", "USD, least", "most", "hours, one job after the other")
    table = _table(
        "\nRequests to translators and language models; kept answers are not asked again", "service", *columns
    )
    for row in rows:
        asked = (f"{row['requests_least']:,.0f}", f"{row['requests_most']:,.0f}")
        paid = (_number(row["usd_least"], 2), _number(row["usd_most"], 2))
        table.add_row(row["service"], str(row["jobs"]), *asked, *paid, _number(row["hours_one_by_one"]))
    return table


def _origins_table(rows: list[Row]) -> Table:
    table = _table(
        "\nWhat the numbers rest on (config/rates.yaml)", "number", "value", texts=("basis", "source")
    )
    for row in rows:
        basis = "ASSUMED" if row["basis"] == "assumed" else row["basis"]
        table.add_row(row["number"], f"{row['value']:,.6g}", basis, row["source"])
    return table


def _number(value: Any, digits: int = 1) -> str:
    if value is None:
        return "unknown"
    least = 10.0**-digits
    return f"<{least:g}" if 0 < value < least else f"{value:,.{digits}f}" if value else ""


if __name__ == "__main__":
    with one_line_errors():
        main()
