"""Add up the sums of all shards and divide by the occurrences (rule merge_token_averages)."""

from workflow_scripts.columns.extraction import TOKEN_AVERAGES, TOKEN_SUMS
from workflow_scripts.extraction.averages import merge
from workflow_scripts.provenance.artefacts import opened_tables, writing_table
from workflow_scripts.provenance.job import Job


def main(job: Job) -> None:
    """Read, add, divide and write, some tokens at a time."""
    with (
        opened_tables(job.many("sums"), TOKEN_SUMS) as shards,
        writing_table(job.outputs["averages"], TOKEN_AVERAGES, job.record(), split_bytes=True) as writer,
    ):
        for averages in merge(shards):
            writer.write_table(averages)
