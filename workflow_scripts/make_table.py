"""Lay out the table of one experiment: means over seeds, differences, tests (rule make_table)."""

from workflow_scripts.artefacts import read_table, write_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation.significance import Config as Significance
from workflow_scripts.job import parse_job
from workflow_scripts.reporting.experiment import Experiment
from workflow_scripts.reporting.records import record_of
from workflow_scripts.reporting.tables import ScoreFile, build, read_published
from workflow_scripts.schemas import SCORES


def main() -> None:
    """Read the scores and what the paper printed, lay out, write."""
    job = parse_job(
        "make_table", __doc__, wildcards=["experiment"], many=["scores", "published"], outputs=["table"]
    )
    place = f"experiments.{job.wildcards['experiment']}"
    experiment = Experiment.parse(job.settings["experiment"], place)
    significance = Significance.parse(job.settings["significance"], "significance")
    files = [ScoreFile(read_table(path, SCORES), record_of(path).labels) for path in job.many("scores")]
    contents = {str(path): path.read_bytes() for path in job.many("published")}
    published = read_published(contents, experiment)
    table = build(experiment, files, published, significance, place)
    write_table(job.outputs["table"], table, job.record())


if __name__ == "__main__":
    with one_line_errors():
        main()
