"""Estimate what a study would take, without running it: python -m workflow_scripts.tools.plan_study [TARGET ...].

Jobs come from Snakemake's own plan, as if no file existed yet. GPU hours, storage and prices are the product of these
jobs and the numbers in config/rates.yaml, which says whether each was measured, published or assumed; where there is
no number, unknown is printed. Without a target, everything that the configuration asks for is planned; targets are
those of snakemake: a paper (jtcse), a table (results/paper/tables/jtcse_table1.parquet), the scores behind a cell.
"""

import resource
import sys
import time
from pathlib import Path
from typing import Any

from rich.table import Table

from workflow_scripts.audit.printing import console, print_json
from workflow_scripts.errors import one_line_errors
from workflow_scripts.planning.estimates import Estimator
from workflow_scripts.planning.graph import SHARED, planned, study_in, study_parser
from workflow_scripts.planning.rates import read_rates
from workflow_scripts.planning.summary import Row, about_runs, summary
from workflow_scripts.provenance.closure import ROOT

_PIPE_WIDTH = 160  # characters per line if the output is not a terminal


def main() -> None:
    """Plan the jobs, estimate, print."""
    parser = study_parser("plan_study", __doc__)
    parser.add_argument(
        "--rates", type=Path, default=ROOT / "config/rates.yaml", help="numbers to multiply by"
    )
    parser.add_argument("--json", action="store_true", help="print data instead of tables")
    arguments = parser.parse_args()
    began = time.perf_counter()
    rates = read_rates(arguments.rates)
    graph = planned(arguments.targets, arguments.configfile)
    tables = summary(graph, Estimator(graph, rates, ROOT), rates)
    tables |= about_runs(graph, study_in(ROOT, arguments.configfile))
    if arguments.json:
        print_json(tables)
    else:
        show(tables)
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1000  # Linux counts in KB
        took = f"{time.perf_counter() - began:.0f} s, {memory:.0f} MB"
        sys.stderr.write(f"planned {len(graph.jobs)} jobs: {took}\n")


def show(tables: dict[str, list[Row]]) -> None:
    """Print the estimates as tables."""
    out = console(_PIPE_WIDTH)
    out.print(_work_table("Jobs by rule", "rule", [(row["rule"], row) for row in tables["rules"]]))
    title = (
        "By paper and experiment; each row alone, shared jobs count in several, the last row counts each once"
    )
    out.print(_work_table(title, "experiment", [(_name(row), row) for row in tables["experiments"]]))
    out.print(_storage_table(tables["storage"]))
    if tables["requests"]:
        out.print(_requests_table(tables["requests"]))
    if tables["merged"]:
        out.print(_merged_table(tables["merged"]))
    if tables["no_effect"]:
        out.print(_no_effect_table(tables["no_effect"]))
    out.print(_origins_table(tables["rests_on"]))


def _name(row: Row) -> str:
    if row["paper"] is None:
        return "all, each job once"
    if row["paper"] == SHARED:
        return "the page, and what no experiment needs"
    return f"  {row['experiment']}" if row["experiment"] else row["paper"]


def _table(title: str, first: str, *numbers: str, texts: tuple[str, ...] = ()) -> Table:
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    table.add_column(first, overflow="fold")
    for heading in numbers:
        table.add_column(heading, justify="right", overflow="fold")
    for heading in texts:
        table.add_column(heading, overflow="fold")
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
    columns = (
        "jobs",
        "requests, least",
        "most",
        "USD, least",
        "most",
        "days, at its limits",
        "GB of the ledger",
    )
    table = _table(
        "\nRequests to translators and language models; kept answers are not asked again", "service", *columns
    )
    for row in rows:
        asked = (_number(row["requests_least"], 0), _number(row["requests_most"], 0))
        paid = (_number(row["usd_least"], 2), _number(row["usd_most"], 2))
        takes = (_number(row["days"]), _number(row["ledger_gigabytes"], 3))
        table.add_row(row["service"], str(row["jobs"]), *asked, *paid, *takes)
    return table


def _merged_table(rows: list[Row]) -> Table:
    saved = sum(row["trainings_saved"] for row in rows)
    title = f"\nRuns with equal settings are made once, under the first name: {saved} trainings saved"
    table = _table(title, "made", "saved", texts=("serves too",))
    for row in rows:
        table.add_row(row["run"], str(row["trainings_saved"] or ""), "\n".join(row["stands_for"]))
    return table


def _no_effect_table(rows: list[Row]) -> Table:
    table = _table(
        "\nSettings without effect given others", "setting", "runs", texts=("because", "first run")
    )
    for row in rows:
        table.add_row(row["setting"], str(len(row["runs"])), row["because"], row["runs"][0])
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
