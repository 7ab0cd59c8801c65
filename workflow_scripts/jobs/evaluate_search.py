"""Score one run on one suite of semantic search (rule evaluate_search)."""

from pathlib import Path
from typing import Any

import pyarrow as pa

from workflow_scripts.columns.corpora import LABELLED
from workflow_scripts.columns.scores import SCORES
from workflow_scripts.evaluation import search
from workflow_scripts.evaluation.embeddings import Encode
from workflow_scripts.evaluation.opened import open_run
from workflow_scripts.evaluation.task_by_task import Task, evaluate_tasks
from workflow_scripts.evaluation.times import write_times
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites.search import Config


def main(job: Job) -> None:
    """Encode the suite's unique questions once, search task by task, write scores and times separately."""
    config = Config.parse(job.settings["suite"], f"suites.search.{job.wildcards['suite']}")
    tasks = {path.stem: _task(path, read_table(path, LABELLED), config) for path in job.many("datasets")}
    made = evaluate_tasks(
        job,
        tasks,
        open_run(job, config.readout).encoding(config.max_tokens),
        {"scores": SCORES, "times": SCORES},
    )
    record = job.record(labels=made.labels)
    write_table(job.outputs["scores"], made.tables["scores"], record)
    write_times(job.outputs["times"], made.tables["times"], record)


def _task(path: Path, table: pa.Table, config: Config) -> Task:
    alone = config.of_task(path.stem)

    def evaluate(encode: Encode) -> dict[str, Any]:
        scores, times = search.evaluate({path.stem: table}, encode, alone)
        return {"scores": scores, "times": times}

    return Task(path, alone, evaluate)
