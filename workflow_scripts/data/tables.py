"""Functions that make tables from rows, and read tables of datasets and corpora in any form."""

import math
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.columns import FORMS
from workflow_scripts.errors import DataError, how_to_make
from workflow_scripts.provenance.artefacts import read_table, verify_checksum

TEXT_COLUMNS = ("sentence", "sentence1", "sentence2", "text1", "text2", "anchor", "positive", "negative")
"""Text columns of all tables that training or evaluation reads."""

MISSING = frozenset({"nan", "na", "n/a", "#n/a", "<na>", "null", "none"})
"""Spellings of missing values in common programs, in lower case."""


def table_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """Return a table of rows whose cells are in the order of the columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table(dict(zip(schema.names, columns, strict=True)), schema)


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def number_of(text: str) -> float:
    """Return a text as a number, with a point before its decimals.

    Raises:
        ValueError: if it is not a number, such as 1,5; also for 1_0 and digits of other scripts, which Python reads.
    """
    value = float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
    if math.isfinite(value):
        return value
    if "," in text:
        raise ValueError(
            f"score {text!r} is not a number. Write decimals after a point, and thousands without separators"
        )
    raise ValueError(f"score {text!r} is not a number")


def texts_of(table: pa.Table) -> Iterator[str]:
    """Yield all texts of a table, column by column, without nulls."""
    for name in TEXT_COLUMNS:
        if name in table.column_names:
            yield from table[name].drop_null().to_pylist()


def read_dataset_table(path: Path) -> pa.Table:
    """Return a dataset or corpus of any form, read from its file.

    Raises:
        DataError: if the file is missing or damaged, or its columns fit no form.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file. {how_to_make(path)}")
    verify_checksum(path)
    columns = pq.read_schema(path).remove_metadata()
    schema = next((schema for schema in FORMS.values() if columns.equals(schema)), None)
    if schema is None:
        raise DataError(f"{path}: columns {columns.names} fit no form. Rerun read_dataset.")
    return read_table(path, schema)
