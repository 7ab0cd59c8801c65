"""Measure the geometry of one run's embedding space (rule evaluate_geometry)."""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation import geometry
from workflow_scripts.evaluation.embeddings import Encode
from workflow_scripts.evaluation.task_by_task import Task, evaluate_tasks
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import parse_job


def main() -> None:
    """Encode the suite's unique sentences once, take one measure after the other, write."""
    job = parse_job(
        "evaluate_geometry",
        __doc__,
        wildcards=["suite", "run", "seed"],
        inputs=["model"],
        many=["datasets"],
        operational=["gpus"],
        outputs=["scores"],
    )
    config = geometry.Config.parse(job.settings["suite"], f"suites.geometry.{job.wildcards['suite']}")
    paths = {path.stem: path for path in job.many("datasets")}
    tables = {name: read_dataset_table(path) for name, path in paths.items()}
    found = {name: table for name, table in tables.items() if len(table)}
    measures = config.measures.items()
    tasks = {name: _task(paths[one.dataset], found, config.of_task(name)) for name, one in measures}
    encoder, tokenizer = load_encoder(job.inputs["model"].parent)
    encoder.to(granted_device(job.operational["gpus"]))
    once = partial(encode, encoder, tokenizer, max_tokens=config.max_tokens)
    made = evaluate_tasks(job, tasks, once, {"scores": SCORES})
    write_table(job.outputs["scores"], made.tables["scores"], job.record(labels=made.labels))


def _task(dataset: Path, found: Mapping[str, pa.Table], alone: geometry.Config) -> Task:
    def evaluate(encode: Encode) -> dict[str, Any]:
        return {"scores": geometry.evaluate(found, encode, alone)}

    return Task(dataset, alone, evaluate)


if __name__ == "__main__":
    with one_line_errors():
        main()
