"""Datasets and corpora of whatever form, as those read them back that take any."""

from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.artefacts import check_seal, read_table
from workflow_scripts.errors import DataError
from workflow_scripts.schemas import FORMS

TEXT_COLUMNS = ("sentence", "sentence1", "sentence2", "text1", "text2", "anchor", "positive", "negative")
"""Columns that hold text, in any of the tables that training or evaluation reads."""


def texts_of(table: pa.Table) -> Iterator[str]:
    """Every text of a table, column by column; a null is none."""
    for name in TEXT_COLUMNS:
        if name in table.column_names:
            for chunk in table[name].drop_null().chunks:
                yield from chunk.to_pylist()


def read_dataset_table(path: Path) -> pa.Table:
    """Read a dataset or corpus of whatever form.

    Raises:
        DataError: if the file is missing or damaged, or has the columns of no form.
    """
    if not path.exists():
        raise DataError(f"{path}: no such file. Run the rule that makes it: snakemake {path}.")
    check_seal(path)
    columns = pq.read_schema(path).remove_metadata()
    for schema in FORMS.values():
        if columns.equals(schema):
            return read_table(path, schema)
    raise DataError(f"{path}: columns {columns.names}; those of no form. Rerun read_dataset.")
