"""Measure how much of the evaluation sets occurs in one corpus (rule measure_contamination)."""

from workflow_scripts.data.contamination import contamination
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import parse_job
from workflow_scripts.settings.contamination import Config


def main() -> None:
    """Read corpus and evaluation sets, count their common texts, write."""
    job = parse_job(
        "measure_contamination",
        __doc__,
        wildcards=["corpus"],
        inputs=["train"],
        many=["datasets"],
        outputs=["table"],
    )
    config = Config.parse(job.settings["contamination"], "contamination")
    train = read_dataset_table(job.inputs["train"])
    evaluation = {path.stem: read_dataset_table(path) for path in job.many("datasets")}
    write_table(job.outputs["table"], contamination([train], evaluation, config.examples), job.record())


if __name__ == "__main__":
    with one_line_errors():
        main()
