"""Score one run on one suite of scored pairs (rule evaluate_sts)."""

from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from workflow_scripts.columns.corpora import PAIRS
from workflow_scripts.columns.scores import SCORES, SIMILARITIES
from workflow_scripts.evaluation import sts
from workflow_scripts.evaluation.embeddings import Encode
from workflow_scripts.evaluation.opened import open_run
from workflow_scripts.evaluation.scores import gap
from workflow_scripts.evaluation.task_by_task import Task, evaluate_tasks
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites.sts import Config


def main(job: Job) -> None:
    """Encode the suite's unique sentences once, correlate task by task, write."""
    config = Config.parse(job.settings["suite"], f"suites.sts.{job.wildcards['suite']}")
    tasks = {path.stem: _task(path, read_table(path, PAIRS), config) for path in job.many("datasets")}
    run = open_run(job)
    columns = {"scores": SCORES, "pairs": SIMILARITIES}
    made = evaluate_tasks(job, tasks, run.encoding(config.max_tokens), columns)
    record = job.record(labels=[*config.labels(run.tokenizer.tokenize), *made.labels])
    write_table(job.outputs["scores"], made.tables["scores"], record)
    write_table(job.outputs["pairs"], made.tables["pairs"], record)


def _task(path: Path, table: pa.Table, config: Config) -> Task:
    return Task(path, config.of_task(path.stem), partial(_evaluate, path.stem, table, config.text))


def _evaluate(task: str, table: pa.Table, text: str, encode: Encode) -> dict[str, Any]:
    if not len(table):
        missing = gap(task, "no source of the dataset is available")
        return {"scores": [missing], "pairs": SIMILARITIES.empty_table()}
    scores, pairs = sts.evaluate({task: sts.in_text(task, table, text)}, encode)
    return {"scores": scores, "pairs": pairs}
