"""Score one run on one suite by the evaluator of its kind (rule evaluate_suite)."""

import importlib
from pathlib import Path
from typing import Any

import pyarrow as pa

from workflow_scripts.columns.corpora import FORMS
from workflow_scripts.columns.scores import SCORES
from workflow_scripts.evaluation.base import Evaluator
from workflow_scripts.evaluation.embeddings import Encode
from workflow_scripts.evaluation.opened import open_run
from workflow_scripts.evaluation.scores import gap
from workflow_scripts.evaluation.task_by_task import Task, evaluate_tasks
from workflow_scripts.provenance.artefacts import read_table, write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites import SuiteConfig


def main(job: Job) -> None:
    """Encode each text of the suite once, evaluate task by task, write."""
    evaluator: Evaluator = importlib.import_module(f"workflow_scripts.evaluation.{job.wildcards['kind']}")
    config = evaluator.Config.parse(job.settings["suite"], f"suites ({job.wildcards['suite']})")
    form = FORMS[config.form]
    tasks = {
        path.stem: _task(path, read_table(path, form), evaluator, config) for path in job.many("datasets")
    }
    made = evaluate_tasks(job, tasks, open_run(job).encoding(config.max_tokens), {"scores": SCORES})
    write_table(
        job.outputs["scores"], made.tables["scores"], job.record(labels=[*config.labels, *made.labels])
    )


def _task(path: Path, table: pa.Table, evaluator: Evaluator, config: SuiteConfig) -> Task:
    alone = config.of_task(path.stem)

    def evaluate(encode: Encode) -> dict[str, Any]:
        if not len(table):
            return {"scores": [gap(path.stem, "no source of the dataset is available")]}
        return {"scores": evaluator.evaluate({path.stem: table}, encode, alone)}

    return Task(path, alone, evaluate)
