"""Add up the sums of all shards and divide by the occurrences (rule merge_token_averages)."""

from workflow_scripts.columns.extraction import TOKEN_AVERAGES, TOKEN_SUMS
from workflow_scripts.errors import one_line_errors
from workflow_scripts.extraction.averages import merge
from workflow_scripts.provenance.artefacts import opened_tables, writing_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Read, add, divide and write, some tokens at a time."""
    job = parse_job("merge_token_averages", __doc__, many=["sums"], outputs=["averages"])
    with (
        opened_tables(job.many("sums"), TOKEN_SUMS) as shards,
        writing_table(job.outputs["averages"], TOKEN_AVERAGES, job.record(), split_bytes=True) as writer,
    ):
        for averages in merge(shards):
            writer.write_table(averages)


if __name__ == "__main__":
    with one_line_errors():
        main()
