"""Facts from records: a file's run, its job, and its labels."""

from collections.abc import Iterable, Iterator
from itertools import chain, product
from pathlib import Path
from string import ascii_lowercase
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from workflow_scripts.columns import TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_record, read_table
from workflow_scripts.provenance.record import Label, Record
from workflow_scripts.settings.grids import Experiment


class RunTable(NamedTuple):
    """A table of one run and seed."""

    run: str
    seed: int
    table: pa.Table


def record_of(path: Path) -> Record:
    """Return the record of the artefact at ``path``.

    Raises:
        DataError: if the file has no record.
    """
    record = read_record(path)
    if record is None:
        raise DataError(f"{path}: no record, so not made by this pipeline. Delete it and rerun.")
    return record


def experiment_of(table: Path) -> Experiment:
    """Return the grid of the table at ``table``, from its record."""
    return Experiment.parse(record_of(table).settings["experiment"], f"{table}: experiment")


def wildcard(path: Path, name: str) -> str:
    """Return the value of one wildcard of the job that made ``path``."""
    return record_of(path).wildcards[name]


def run_and_seed(path: Path) -> tuple[str, int]:
    """Return the run and seed of the artefact at ``path``."""
    return wildcard(path, "run"), int(wildcard(path, "seed"))


def run_tables(paths: Iterable[Path], schema: pa.Schema) -> Iterator[RunTable]:
    """Yield tables of runs, read one after another.

    Raises:
        DataError: if a table is damaged or has other columns.
    """
    for path in paths:
        yield RunTable(*run_and_seed(path), read_table(path, schema))


def claimed_tables(tables: Iterable[Path], figures: Iterable[Path]) -> dict[str, tuple[Path, pa.Table]]:
    """Return the tables of which claims compare cells, by name, each with the artefact that has its record.

    Args:
        tables: Files of tables.
        figures: Records of figures, some of which are drawn from the cells of a table.
    """
    by_name = {path.stem: (path, read_table(path, TABLE)) for path in tables}
    for record in figures:
        for path in record.parent.glob("*.parquet"):
            if pq.read_schema(path).remove_metadata() == TABLE:
                by_name[path.stem] = (record, pq.read_table(path))
    return by_name


class Labels(NamedTuple):
    """Texts of the two kinds of labels, each sorted."""

    substitutions: tuple[str, ...]
    gaps: tuple[str, ...]

    @property
    def letters(self) -> dict[str, str]:
        """Return the mark of each substitution: a to z, then aa, ab, ..."""
        letters = chain(ascii_lowercase, map("".join, product(ascii_lowercase, repeat=2)))
        return dict(zip(self.substitutions, letters, strict=False))

    def marks(self, labels: Iterable[str]) -> list[str]:
        """Return the marks of those of some labels that are substitutions, in order."""
        wanted = {*labels}
        return [letter for label, letter in self.letters.items() if label in wanted]

    def sentences(self) -> list[str]:
        """Return all labels, as a sentence for each kind."""
        kinds = {"Substitution": self.substitutions, "Gap": self.gaps}
        return [
            f"{kind}{'s' if len(labels) > 1 else ''}: {'; '.join(labels)}."
            for kind, labels in kinds.items()
            if labels
        ]


def split_labels(labels: Iterable[Label]) -> Labels:
    """Return labels separated into substitutions and gaps."""
    unique = sorted(set(labels), key=str)
    return Labels(
        substitutions=tuple(label.text for label in unique if label.kind == "substitution"),
        gaps=tuple(label.text for label in unique if label.kind == "gap"),
    )


def steps(history: pa.Table) -> int:
    """Return the number of optimiser steps of a training (``columns.HISTORY``)."""
    return int(history["step"][-1].as_py()) if len(history) else 0


def kept(history: pa.Table) -> tuple[int, float | None]:
    """Return step and development score of the weights that a training kept.

    These are the weights with the best score, the first among equals. Without scores, they are the last weights, and
    the score is None.
    """
    measured = history.filter(pc.field("dev_score").is_valid()).to_pylist()
    if not measured:
        return steps(history), None
    best = max(measured, key=lambda row: row["dev_score"])
    return best["step"], best["dev_score"]
