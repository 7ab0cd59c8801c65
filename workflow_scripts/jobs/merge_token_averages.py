"""Add up the sums of all shards and divide by the occurrences (rule merge_token_averages)."""

import numpy as np

from workflow_scripts.columns.extraction import TOKEN_SUMS
from workflow_scripts.errors import one_line_errors
from workflow_scripts.extraction.averages import merge
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Read, add, divide, write."""
    job = parse_job("merge_token_averages", __doc__, many=["sums"], outputs=["averages"])
    paths = job.many("sums")
    ids = [read_table(path, TOKEN_SUMS, ["token_id"])["token_id"].to_numpy() for path in paths]
    averages = merge(np.unique(np.concatenate(ids)), (read_table(path, TOKEN_SUMS) for path in paths))
    write_table(job.outputs["averages"], averages, job.record())


if __name__ == "__main__":
    with one_line_errors():
        main()
