"""Hold the papers' claims to the study's scores (rule judge_claims)."""

from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.verdicts import of_job


def main(job: Job) -> None:
    """Read the tables and scores that claims are compared in, judge, write."""
    job.write({"verdicts": of_job(job)})
