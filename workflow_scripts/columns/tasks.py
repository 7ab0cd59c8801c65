"""Columns of the data that are fetched for evaluations through mteb."""

import pyarrow as pa

TASKS = pa.schema(
    [
        ("task", pa.string()),
        ("repository", pa.string()),
        ("revision", pa.string()),
        ("sha256", pa.string()),
        ("missing", pa.string()),
    ]
)
"""A task of mteb per row, with the dataset and commit that it reads, the hash of the files that the Hub's client keeps
of it (of all names and hashes), or why there are none."""
