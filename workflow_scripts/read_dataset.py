"""Bring one dataset from the first of its sources that is there into its form (rule read_dataset)."""

import sys
from collections import Counter

import pyarrow as pa

from workflow_scripts.artefacts import write_table
from workflow_scripts.data.readers import Reading
from workflow_scripts.data.sources import Dataset, data_root, load, reader_modules
from workflow_scripts.errors import MissingError, one_line_errors
from workflow_scripts.job import parse_job
from workflow_scripts.schemas import DROPPED, FORMS


def main() -> None:
    """Read, check the contract, write the rows and the count of what was dropped."""
    job = parse_job("read_dataset", __doc__, wildcards=["dataset"], outputs=["table", "dropped"])
    name, block = job.wildcards["dataset"], job.settings["dataset"]
    dataset = Dataset.parse(block, f"datasets.{name}")
    labels: list[str] = []
    try:
        reading, origin = load(name, dataset, data_root())
    except MissingError as error:
        if not dataset.optional:
            raise
        print(f"Gap: {error}", file=sys.stderr)  # noqa: T201
        labels.append(f"gap: {name}, of which no source is there")
        reading, origin = Reading(FORMS[dataset.form].empty_table(), Counter()), {}
    record = job.record(modules=reader_modules(block), foreign=origin, labels=labels)
    write_table(job.outputs["table"], reading.table.cast(FORMS[dataset.form]), record)
    dropped = {"reason": list(reading.dropped), "count": list(reading.dropped.values())}
    write_table(job.outputs["dropped"], pa.table(dropped, schema=DROPPED), record)


if __name__ == "__main__":
    with one_line_errors():
        main()
