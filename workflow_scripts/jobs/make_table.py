"""Build the table of one experiment: means over seeds, differences, tests (rule make_table)."""

from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.tables import of_job


def main(job: Job) -> None:
    """Read the scores and the paper's numbers, build the table, write."""
    job.write({"table": of_job(job, measured=False)})
