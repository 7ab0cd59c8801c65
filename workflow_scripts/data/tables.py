"""Tables from rows, and tables of datasets and corpora in any form."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.columns import FORMS
from workflow_scripts.errors import DataError, how_to_make
from workflow_scripts.provenance.artefacts import read_table, verify_checksum

TEXT_COLUMNS = ("sentence", "sentence1", "sentence2", "text1", "text2", "anchor", "positive", "negative")
"""Text columns of all tables that training or evaluation reads."""


def table_of(rows: Iterable[Sequence[Any]], schema: pa.Schema) -> pa.Table:
    """A table of rows whose cells are in the order of the columns."""
    columns = list(zip(*rows, strict=True)) or [()] * len(schema)
    return pa.table(dict(zip(schema.names, columns, strict=True)), schema)


def in_form(
    rows: pa.Table, form: str, columns: Mapping[str, str], constants: Mapping[str, str | None], place: str
) -> pa.Table:
    """Convert a table to the columns of ``form``; a column without a source is null.

    Args:
        rows: The table.
        form: The form.
        columns: Column of the form to column of the table.
        constants: Column of the form to its constant value.
        place: Source of the table, for the message.

    Raises:
        DataError: if the table lacks a column, or has one of another type.
    """
    if missing := sorted({*columns.values()} - {*rows.column_names}):
        raise DataError(
            f"{place}: no column {missing[0]!r}; has {rows.column_names}. Correct the option columns."
        )
    made = []
    for field in FORMS[form]:
        if field.name not in columns:
            made.append(pa.array([constants.get(field.name)] * len(rows), field.type))
            continue
        column = rows[columns[field.name]]
        try:
            made.append(column.cast(field.type))
        except pa.ArrowException as error:
            problem = f"column {columns[field.name]!r} cannot be read as {field.type}: {error}"
            raise DataError(f"{place}: {problem}. Correct the column, or name another.") from error
    return pa.table(made, schema=FORMS[form])


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
