"""Score one run on one suite of scored pairs, and of their geometry (rule evaluate_sts)."""

from workflow_scripts.evaluation import sts
from workflow_scripts.evaluation.task_by_task import evaluate_suite
from workflow_scripts.provenance.job import Job


def main(job: Job) -> None:
    """Encode the suite's unique sentences once, evaluate task by task, write scores and cosines."""
    evaluate_suite(job, sts)
