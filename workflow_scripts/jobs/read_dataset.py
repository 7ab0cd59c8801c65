"""Read one dataset from the first of its sources that is available (rule read_dataset)."""

import sys
from collections import Counter

import pyarrow as pa

from workflow_scripts.columns.corpora import DROPPED, FORMS
from workflow_scripts.data.readers.base import Rows
from workflow_scripts.data.sources import Dataset, data_root, load
from workflow_scripts.errors import MissingError, one_line_errors
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Read, check the contract, write the rows and the number of dropped ones."""
    job = parse_job(
        "read_dataset", __doc__, wildcards=["dataset"], outputs=["table", "dropped"], asks_outside=True
    )
    name, block = job.wildcards["dataset"], job.settings["dataset"]
    dataset = Dataset.parse(block, f"datasets.{name}")
    labels: list[str] = []
    try:
        rows, origin = load(name, dataset, data_root())
    except MissingError as error:
        if not dataset.optional:
            raise
        print(f"Gap: {error}", file=sys.stderr)  # noqa: T201
        labels.append(f"gap: {name}, of which no source is available")
        rows, origin = Rows(FORMS[dataset.form].empty_table(), Counter()), {}
    record = job.record(foreign=origin, labels=labels)
    write_table(job.outputs["table"], rows.table.cast(FORMS[dataset.form]), record)
    dropped = {"reason": list(rows.dropped), "count": list(rows.dropped.values())}
    write_table(job.outputs["dropped"], pa.table(dropped, schema=DROPPED), record)


if __name__ == "__main__":
    with one_line_errors():
        main()
