"""Write the page about one study: main comparison, claims, tables, figures, data (rule write_report)."""

from workflow_scripts.provenance.artefacts import write_page
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.page import page


def main(job: Job) -> None:
    """Read the study's results, fill the template, write."""
    write_page(job.outputs["report"], page(job), job.record())
