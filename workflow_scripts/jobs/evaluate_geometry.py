"""Measure the geometry of one run's embedding space (rule evaluate_geometry, or behind evaluate_sts in its process).

``beside`` are the datasets of a suite of scored pairs that the run is evaluated on as well, ``settings.beside`` its
block. Their sentences are encoded as for that suite, so that vectors can be shared and are the same to the bit
whichever of the two is measured first, or anew.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.data.tables import read_dataset_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation import geometry
from workflow_scripts.evaluation.embeddings import Encode
from workflow_scripts.evaluation.opened import Opened, open_run
from workflow_scripts.evaluation.sts_tasks import tasks_of
from workflow_scripts.evaluation.task_by_task import Task, evaluate_tasks, shared_texts
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import Job, parse_job
from workflow_scripts.settings.suites.geometry import Config
from workflow_scripts.settings.suites.sts import Config as Pairs


def main() -> None:
    """Encode the suite's unique sentences once, take one measure after the other, write."""
    job = parse_job(
        "evaluate_geometry",
        __doc__,
        wildcards=["suite", "run", "seed"],
        inputs=["model"],
        many=["datasets"],
        optional=["beside"],
        beside="beside",
        operational=["gpus"],
        outputs=["scores"],
    )
    config = Config.parse(job.settings["suite"], f"suites.geometry.{job.wildcards['suite']}")
    paths = {path.stem: path for path in job.many("datasets")}
    tables = {name: read_dataset_table(path) for name, path in paths.items()}
    found = {name: table for name, table in tables.items() if len(table)}
    measures = config.measures.items()
    tasks = {name: _task(paths[one.dataset], found, config.of_task(name)) for name, one in measures}
    made = evaluate_tasks(job, tasks, _encoding(job, open_run(job), config.max_tokens), {"scores": SCORES})
    write_table(job.outputs["scores"], made.tables["scores"], job.record(labels=made.labels))


def _encoding(job: Job, run: Opened, max_tokens: int) -> Encode:
    """Texts to vectors, those of the suite beside as that one has them, where both cut at the same length."""
    encode = run.encoding(max_tokens)
    if "beside" not in job.settings:
        return encode
    suite = Pairs.parse(job.settings["beside"], "suites.sts")
    if suite.max_tokens != max_tokens:
        return encode
    return shared_texts(encode, tasks_of(suite, job.many("beside"))).beside()


def _task(dataset: Path, found: Mapping[str, pa.Table], alone: Config) -> Task:
    def evaluate(encode: Encode) -> dict[str, Any]:
        return {"scores": geometry.evaluate(found, encode, alone)}

    return Task(dataset, alone, evaluate)


if __name__ == "__main__":
    with one_line_errors():
        main()
