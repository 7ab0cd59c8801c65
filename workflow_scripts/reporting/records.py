"""What reporting reads from records: the run that a file belongs to, and the job that made it."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa

from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_record, read_table
from workflow_scripts.provenance.record import Record


class RunTable(NamedTuple):
    """The table of one run and seed."""

    run: str
    seed: int
    table: pa.Table


def record_of(path: Path) -> Record:
    """The record of the artefact at ``path``.

    Raises:
        DataError: if it has none.
    """
    record = read_record(path)
    if record is None:
        raise DataError(f"{path}: no record, so not made by this pipeline. Delete it and rerun.")
    return record


def wildcard(path: Path, name: str) -> str:
    """The value of one wildcard of the job that made ``path``.

    Raises:
        DataError: if that job had no such wildcard.
    """
    record = record_of(path)
    if name not in record.wildcards:
        raise DataError(f"{path}: made by {record.rule}, which has no {name}. Correct the rule's input.")
    return record.wildcards[name]


def run_and_seed(path: Path) -> tuple[str, int]:
    """The run and seed that the artefact at ``path`` belongs to.

    Raises:
        DataError: if the job that made it had no such wildcards.
    """
    return wildcard(path, "run"), int(wildcard(path, "seed"))


def run_tables(paths: Iterable[Path], schema: pa.Schema) -> Iterator[RunTable]:
    """Read tables of runs, one after another.

    Raises:
        DataError: if one is damaged, has other columns, or does not belong to a run.
    """
    for path in paths:
        yield RunTable(*run_and_seed(path), read_table(path, schema))
