"""Print tables or scores: python -m workflow_scripts.tools.show_table results/demo/tables/demo.parquet."""

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from workflow_scripts.audit.printing import console
from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import ConfigError, DataError, one_line_errors
from workflow_scripts.graph.findings import advice
from workflow_scripts.provenance.artefacts import (
    CHECKSUMMED_SUFFIXES,
    atomic,
    read_checksum,
    read_table,
    verify_checksum,
)
from workflow_scripts.reporting.experiment import Experiment
from workflow_scripts.reporting.headings import headings_of
from workflow_scripts.reporting.laboratory_csv import to_csv
from workflow_scripts.reporting.layout import lay_out
from workflow_scripts.reporting.records import record_of
from workflow_scripts.reporting.score_list import scores_csv, show_scores
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
    shown: Mapping[str, str]
    """Rows and columns under another name."""


def load(path: Path) -> Shown:
    """Read a table and its record.

    Raises:
        DataError: if the file is not a table.
    """
    table, found = read_table(path, TABLE), headings_of(path)
    times = times_of(path)
    measured = read_table(times, TABLE) if times.exists() else TABLE.empty_table()
    return Shown(found.name, table, measured, found.experiment, found.alpha, found.shown)


def times_of(path: Path) -> Path:
    """Where the measured columns of the table at results/<study>/tables/<name>.parquet are, if it has any."""
    study = path.absolute().parent.parent
    return study.parent.parent / "benchmarks" / study.name / "tabulate_times" / path.name


def holds_scores(path: Path) -> bool:
    """Whether a file holds scores, as one of results/<study>/scores does, and not a table.

    Raises:
        DataError: if it is neither, or damaged.
    """
    what = "Give files of results/<study>/tables or results/<study>/scores."
    if path.is_dir() or path.suffix not in CHECKSUMMED_SUFFIXES:
        raise DataError(f"{path}: neither a table nor scores. {what}")
    if not path.exists():
        beside = sorted(map(str, path.parent.glob(f"*{path.suffix}")))
        near = f"{advice(str(path), beside)} " if beside else ""
        raise DataError(
            f"{path}: no such file. {near}snakemake makes it, with the --configfile of its study."
        )
    if read_checksum(path) is None:
        raise DataError(f"{path}: no checksum: cut off, or not written by this pipeline. {what}")
    verify_checksum(path)
    found = pq.read_schema(path).remove_metadata() if path.suffix == ".parquet" else None
    if found not in (TABLE, SCORES):
        raise DataError(f"{path}: made by {record_of(path).rule}, neither a table nor scores. {what}")
    return bool(found == SCORES)


def print_tables(files: Sequence[Path], console: Console) -> None:
    """Print each table, with its measured columns."""
    for one in map(load, files):
        show(lay_out(pa.concat_tables([one.table, one.times]), one.experiment, one.alpha, one.shown), console)


def print_scores(files: Sequence[Path], console: Console) -> None:
    """Print the scores of all files below each other."""
    scores = pa.concat_tables([read_table(path, SCORES) for path in files])
    show_scores(scores, [label for path in files for label in record_of(path).labels], console)


def as_csv(tables: Sequence[Path], scores: Sequence[Path]) -> str:
    """All tables, or all scores, as one CSV.

    Raises:
        DataError: if there are both, whose columns differ.
    """
    if tables and scores:
        raise DataError(f"--csv: {tables[0]} is a table and {scores[0]} holds scores. Write two files.")
    if scores:
        return scores_csv([read_table(path, SCORES) for path in scores])
    return to_csv((one.name, one.table, one.experiment) for one in map(load, tables))


def main() -> None:
    """Print every file, or write them all into one CSV."""
    parser = argparse.ArgumentParser(prog="python -m workflow_scripts.tools.show_table", description=__doc__)
    parser.add_argument(
        "files",
        nargs="+",
        type=Path,
        metavar="FILE",
        help="tables (results/<study>/tables/*.parquet) or scores (below results/<study>/scores)",
    )
    parser.add_argument(
        "--csv", type=Path, help="write the numbers to this file instead: of tables rounded and without times"
    )
    arguments = parser.parse_args()
    if arguments.csv and (arguments.csv.suffix != ".csv" or arguments.csv.is_dir()):
        raise ConfigError(f"--csv: {arguments.csv} is no name of a CSV file. Give one that ends in .csv.")
    scores = [path for path in arguments.files if holds_scores(path)]
    tables = [path for path in arguments.files if path not in scores]
    if arguments.csv:
        text = as_csv(tables, scores)
        with atomic(arguments.csv) as temporary:
            temporary.write_text(text, "utf-8")
        return
    out = console(_PIPE_WIDTH)
    print_tables(tables, out)
    if scores:
        print_scores(scores, out)


if __name__ == "__main__":
    with one_line_errors():
        main()
