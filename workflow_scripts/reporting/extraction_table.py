"""Build one table of the extraction study (rule tabulate_extraction)."""

from workflow_scripts.data.printed import as_printed
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.extraction import Scores, build
from workflow_scripts.settings.extraction import ExtractionTable, Names


def tabulate_extraction(job: Job) -> None:
    """Write the table of a study's scores next to the paper's numbers."""
    name = job.wildcards["table"]
    table = ExtractionTable.parse(job.settings["table"], f"extraction.tables.{name}")
    names = Names.parse(job.settings["names"], "extraction")
    printed = {path.stem: as_printed(path.read_bytes(), path.as_posix()) for path in job.inputs("published")}
    of_tasks = {task: printed[file] for task, file in job.settings["single"].items() if file in printed}
    scores = Scores.read(job.inputs("scores"), names)
    job.write({"cells": build(table, names, scores, printed.get(name, {}), of_tasks)})
