"""Measure how much of the evaluation sets occurs in one corpus (rule measure_contamination)."""

from workflow_scripts.data.contamination import contamination
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.report import Contamination as Config


def main(job: Job) -> None:
    """Read corpus and evaluation sets, count their common texts, write."""
    config = Config.parse(job.settings["contamination"], "contamination")
    train = read_dataset_table(job.inputs["train"])
    evaluation = {path.stem: read_dataset_table(path) for path in job.many("datasets")}
    job.write({"table": contamination([train], evaluation, config.examples)})
