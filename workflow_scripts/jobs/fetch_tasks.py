"""Bring the data of a suite of mteb's tasks onto this machine (rule fetch_tasks)."""

from workflow_scripts.evaluation import mteb_tasks
from workflow_scripts.evaluation.benchmarks import select
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites import MtebSelection as Selection


def fetch_tasks(job: Job) -> None:
    """Download what is not in the cache of the Hub's client, write which files there are."""
    chosen = Selection.parse(job.settings.get("selection", {}), "selection")
    tasks = select(chosen, "selection") if chosen.benchmark else mteb_tasks.find_tasks(job.settings["tasks"])
    fetched = mteb_tasks.fetch(tasks, job.settings["missing_data"])
    for row in fetched.to_pylist():
        print(row["task"], row["missing"] or f"{row['repository']}@{row['revision']}")  # noqa: T201
    job.write({"tasks": fetched})
