"""Lay out the measured columns of one experiment's table: latency, retrieval time (rule tabulate_times)."""

from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import parse_job
from workflow_scripts.reporting.tables import of_job


def main() -> None:
    """Read times and what the paper printed, lay out, write."""
    job = parse_job(
        "tabulate_times", __doc__, wildcards=["experiment"], many=["scores", "published"], outputs=["table"]
    )
    write_table(job.outputs["table"], of_job(job, measured=True), job.record())


if __name__ == "__main__":
    with one_line_errors():
        main()
