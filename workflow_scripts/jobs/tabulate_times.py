"""Lay out the measured columns of one experiment's table: latency, retrieval time (rule tabulate_times)."""

from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.tables import of_job


def main(job: Job) -> None:
    """Read times and what the paper printed, lay out, write."""
    job.write({"table": of_job(job, measured=True)})
