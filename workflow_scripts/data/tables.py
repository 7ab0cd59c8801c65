"""Datasets as the evaluators read them back."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from workflow_scripts.artefacts import check_seal, read_table
from workflow_scripts.errors import DataError
from workflow_scripts.schemas import FORMS


def read_dataset_table(path: Path) -> pa.Table:
    """Read a dataset of whatever form.

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
