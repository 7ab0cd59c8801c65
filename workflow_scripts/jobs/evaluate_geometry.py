"""Measure the geometry of one run's embedding space (rule evaluate_geometry)."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.evaluation import geometry
from workflow_scripts.evaluation.embeddings import Encode
from workflow_scripts.evaluation.opened import open_run
from workflow_scripts.evaluation.task_by_task import Task, evaluate_tasks
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites.geometry import Config


def main(job: Job) -> None:
    """Encode the suite's unique sentences once, take one measure after the other, write."""
    config = Config.parse(job.settings["suite"], f"suites.geometry.{job.wildcards['suite']}")
    paths = {path.stem: path for path in job.many("datasets")}
    tables = {name: read_dataset_table(path) for name, path in paths.items()}
    found = {name: table for name, table in tables.items() if len(table)}
    measures = config.measures.items()
    tasks = {name: _task(paths[one.dataset], found, config.of_task(name)) for name, one in measures}
    made = evaluate_tasks(job, tasks, open_run(job).encoding(config.max_tokens), {"scores": SCORES})
    write_table(job.outputs["scores"], made.tables["scores"], job.record(labels=made.labels))


def _task(dataset: Path, found: Mapping[str, pa.Table], alone: Config) -> Task:
    def evaluate(encode: Encode) -> dict[str, Any]:
        return {"scores": geometry.evaluate(found, encode, alone)}

    return Task(dataset, alone, evaluate)
