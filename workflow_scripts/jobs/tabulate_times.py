"""Lay out the measured columns of one experiment's table: latency, retrieval time (rule tabulate_times)."""

from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.tables import of_job


def main(job: Job) -> None:
    """Read times and what the paper printed, lay out, write."""
    write_table(job.outputs["table"], of_job(job, measured=True), job.record())
