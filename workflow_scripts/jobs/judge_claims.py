"""Hold the papers' claims to the study's scores (rule judge_claims)."""

from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import parse_job
from workflow_scripts.reporting.verdicts import of_job


def main() -> None:
    """Read the tables and scores that claims are compared in, judge, write."""
    job = parse_job(
        "judge_claims",
        __doc__,
        optional=["tables", "scores", "pairs"],
        outputs=["verdicts"],
    )
    write_table(job.outputs["verdicts"], of_job(job), job.record())


if __name__ == "__main__":
    with one_line_errors():
        main()
