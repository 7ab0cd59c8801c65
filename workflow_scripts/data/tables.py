"""Tables from rows, and tables of datasets and corpora in any form."""

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
"""How programs write missing values, without case."""


def table_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """A table of rows whose cells are in the order of the columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table(dict(zip(schema.names, columns, strict=True)), schema)


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?", re.ASCII | re.IGNORECASE)


def number_of(text: str) -> float:
    """Return the number that a text is, with a point before its decimals.

    Raises:
        ValueError: if it is not one, as 1,5 and, though Python reads them, 1_0 and digits of other scripts.
    """
    value = float(text) if _NUMBER.fullmatch(text.strip()) else math.nan
    if math.isfinite(value):
        return value
    if "," in text:
        raise ValueError(
            f"score {text!r} is not a number; decimals follow a point, and thousands are not set off"
        )
    raise ValueError(f"score {text!r} is not a number")


def texts_of(table: pa.Table) -> Iterator[str]:
    """Every text of a table, column by column, without nulls."""
    for name in TEXT_COLUMNS:
        if name in table.column_names:
            yield from table[name].drop_null().to_pylist()


def read_dataset_table(path: Path) -> pa.Table:
    """Read a dataset or corpus of any form.

    Raises:
        DataError: if the file is missing or damaged, or its columns belong to no form.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file. {how_to_make(path)}")
    verify_checksum(path)
    columns = pq.read_schema(path).remove_metadata()
    schema = next((schema for schema in FORMS.values() if columns.equals(schema)), None)
    if schema is None:
        raise DataError(f"{path}: columns {columns.names} belong to no form. Rerun read_dataset.")
    return read_table(path, schema)
