"""Print tables in the terminal: python -m workflow_scripts.show_table results/demo/tables/demo.parquet."""

import argparse
import os
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
from rich.console import Console

from workflow_scripts.artefacts import atomic, read_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.reporting.described import described
from workflow_scripts.reporting.experiment import Experiment
from workflow_scripts.reporting.laboratory_csv import to_csv
from workflow_scripts.reporting.layout import lay_out
from workflow_scripts.reporting.terminal import show
from workflow_scripts.schemas import TABLE

_PIPE_WIDTH = 160  # characters of a line where no terminal says how many it has


class Shown(NamedTuple):
    """A table with the grid and the level of significance that its record keeps."""

    name: str
    table: pa.Table
    experiment: Experiment
    alpha: float


def load(path: Path) -> Shown:
    """Read a table and what its record says about it.

    Raises:
        DataError: if the file is no table.
    """
    table, found = read_table(path, TABLE), described(path)
    return Shown(found.name, table, found.experiment, found.alpha)


def main() -> None:
    """Print every table, or write them all into one CSV."""
    parser = argparse.ArgumentParser(prog="python -m workflow_scripts.show_table", description=__doc__)
    parser.add_argument(
        "files", nargs="+", type=Path, metavar="FILE", help="tables: results/<study>/tables/*.parquet"
    )
    parser.add_argument("--csv", type=Path, help="write the rounded numbers to this file instead")
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
        show(lay_out(one.table, one.experiment, one.alpha), console)


if __name__ == "__main__":
    with one_line_errors():
        main()
