"""Score one run on one suite of scored pairs (rule evaluate_sts)."""

from workflow_scripts.columns.scores import SCORES, SIMILARITIES
from workflow_scripts.evaluation.opened import open_run
from workflow_scripts.evaluation.sts_tasks import tasks_of
from workflow_scripts.evaluation.task_by_task import evaluate_tasks
from workflow_scripts.provenance.artefacts import write_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites.sts import Config


def main(job: Job) -> None:
    """Encode the suite's unique sentences once, correlate task by task, write."""
    config = Config.parse(job.settings["suite"], f"suites.sts.{job.wildcards['suite']}")
    tasks = tasks_of(config, job.many("datasets"))
    run = open_run(job)
    columns = {"scores": SCORES, "pairs": SIMILARITIES}
    made = evaluate_tasks(job, tasks, run.encoding(config.max_tokens), columns)
    record = job.record(labels=[*config.labels(run.tokenizer.tokenize), *made.labels])
    write_table(job.outputs["scores"], made.tables["scores"], record)
    write_table(job.outputs["pairs"], made.tables["pairs"], record)
