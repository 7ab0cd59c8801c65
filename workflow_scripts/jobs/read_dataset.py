"""Read one dataset from the first of its sources that is available (rule read_dataset)."""

from workflow_scripts.columns import DROPPED, FORMS
from workflow_scripts.data.sources import data_root, load_planned
from workflow_scripts.data.tables import table_of
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.datasets import Dataset


def read_dataset(job: Job) -> None:
    """Read, check the contract, write the rows and the number of dropped ones."""
    name, planned = job.wildcards["dataset"], job.settings["source"]
    dataset = Dataset.parse(job.operational["contract"], f"datasets.{name}")
    (table, counts), origin, gap = load_planned(name, dataset, data_root(), planned)
    tables = {"table": table.cast(FORMS[dataset.form]), "dropped": table_of(counts.items(), DROPPED)}
    job.write(tables, foreign=origin, labels=[f"gap: {gap}"] if gap else [])
