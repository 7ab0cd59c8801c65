"""Score one run on one suite by the evaluator of its kind (rule evaluate_suite)."""

import importlib

from workflow_scripts.evaluation.task_by_task import evaluate_suite
from workflow_scripts.provenance.job import Job


def main(job: Job) -> None:
    """Encode each text of the suite once, evaluate task by task, write."""
    evaluate_suite(job, importlib.import_module(f"workflow_scripts.evaluation.{job.wildcards['kind']}"))
