"""Build one table of the extraction study (rule tabulate_extraction)."""

from workflow_scripts.columns.extraction import EXTRACTION
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.reporting.extraction_cells import Scores
from workflow_scripts.reporting.extraction_tables import build, read_printed
from workflow_scripts.reporting.records import record_of, wildcard
from workflow_scripts.settings.extraction.cells import Names
from workflow_scripts.settings.extraction.tables import ExtractionTable


def main(job: Job) -> None:
    """Read the scores and the paper's numbers, build the table, write."""
    name = job.wildcards["table"]
    table = ExtractionTable.parse(job.settings["table"], f"extraction.tables.{name}")
    names = Names.parse(job.settings["names"], "extraction")
    files = job.many("scores")
    scores = Scores((read_table(path, EXTRACTION) for path in files), names.measures.values())
    labels: dict[str, set[str]] = {}
    for path in files:
        labels.setdefault(wildcard(path, "representation"), set()).update(record_of(path).labels)
    printed = {path.stem: read_printed(path.read_bytes(), str(path)) for path in job.many("published")}
    of_tasks = {task: printed[file] for task, file in job.settings["single"].items() if file in printed}
    rows = build(table, names, scores, printed.get(name, {}), of_tasks, labels)
    write_table(job.outputs["cells"], rows, job.record())
