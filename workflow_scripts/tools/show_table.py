"""Print tables in the terminal: python -m workflow_scripts.tools.show_table results/demo/tables/demo.parquet."""

import argparse
import os
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from rich.console import Console

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.artefacts import atomic, read_table
from workflow_scripts.reporting.experiment import Experiment
from workflow_scripts.reporting.headings import headings_of
from workflow_scripts.reporting.laboratory_csv import to_csv
from workflow_scripts.reporting.layout import lay_out
from workflow_scripts.reporting.terminal import show

_PIPE_WIDTH = 160  # characters per line if the output is not a terminal


class Shown(NamedTuple):
    """A table with its grid and level of significance, from its record."""

    name: str
    table: pa.Table
    times: pa.Table
    """Measured columns, of the same columns of Parquet; empty where there are none."""
    experiment: Experiment
    alpha: float


def load(path: Path) -> Shown:
    """Read a table and its record.

    Raises:
        DataError: if the file is not a table.
    """
    table, found = read_table(path, TABLE), headings_of(path)
    times = times_of(path)
    measured = read_table(times, TABLE) if times.exists() else TABLE.empty_table()
    return Shown(found.name, table, measured, found.experiment, found.alpha)


def times_of(path: Path) -> Path:
    """Where the measured columns of the table at results/<study>/tables/<name>.parquet are, if it has any."""
    study, results = path.absolute().parents[1], path.absolute().parents[2]
    return results.with_name("benchmarks") / study.name / "tabulate_times" / path.name


def main() -> None:
    """Print every table, or write them all into one CSV."""
    parser = argparse.ArgumentParser(prog="python -m workflow_scripts.tools.show_table", description=__doc__)
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="tables: results/<study>/tables/*.parquet"
    )
    parser.add_argument(
        "--csv", type=Path, help="write the rounded numbers, without times, to this file instead"
    )
    arguments = parser.parse_args()
    shown = [load(path) for path in arguments.files]
    if arguments.csv:
        with atomic(arguments.csv) as temporary:
            temporary.write_text(to_csv((one.name, one.table, one.experiment) for one in shown), "utf-8")
        return
    console = Console(highlight=False)
    if not console.is_terminal and "COLUMNS" not in os.environ:
        console.width = _PIPE_WIDTH
    for one in shown:
        show(lay_out(pa.concat_tables([one.table, one.times]), one.experiment, one.alpha), console)


if __name__ == "__main__":
    with one_line_errors():
        main()
