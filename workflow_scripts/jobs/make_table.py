"""Build the table of one experiment: means over seeds, differences, tests (rule make_table)."""

from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import parse_job
from workflow_scripts.reporting.tables import of_job


def main() -> None:
    """Read the scores and the paper's numbers, build the table, write."""
    job = parse_job(
        "make_table",
        __doc__,
        wildcards=["experiment"],
        many=["scores", "published"],
        optional=["metrics"],
        outputs=["table"],
    )
    write_table(job.outputs["table"], of_job(job, measured=False), job.record())


if __name__ == "__main__":
    with one_line_errors():
        main()
