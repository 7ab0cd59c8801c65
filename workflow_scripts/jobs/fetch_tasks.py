"""Bring the data of a suite of mteb's tasks onto this machine (rule fetch_tasks)."""

from workflow_scripts.evaluation import mteb_tasks
from workflow_scripts.provenance.job import Job


def fetch_tasks(job: Job) -> None:
    """Download what is not in the cache of the Hub's client, write which files there are."""
    tasks = mteb_tasks.find_tasks(job.settings["tasks"])
    fetched = mteb_tasks.fetch(tasks)
    for row in fetched.to_pylist():
        print(row["task"], row["missing"] or f"{row['repository']}@{row['revision']}")  # noqa: T201
    job.write({"tasks": fetched})
