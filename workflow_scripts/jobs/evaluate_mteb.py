"""Score one run on lists of tasks of mteb (rule evaluate_mteb)."""

from functools import partial

from workflow_scripts.columns import TASKS
from workflow_scripts.evaluation import mteb_tasks
from workflow_scripts.evaluation.base import Failures, score_table
from workflow_scripts.models.devices import granted_device
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites import Mteb as Config


def evaluate_mteb(job: Job) -> None:
    """Run the tasks that are not finished yet, write the scores of all and the means over each list.

    What is finished can be read and submitted by mteb's ``ResultCache``, under the name of run and seed.
    """
    config = Config.parse(job.settings["suite"], f"suites.mteb.{job.wildcards['suite']}")
    lists, failures = job.settings["lists"], Failures(job)
    job.record()  # checks the model, which mteb would load unchecked
    fetched = job.read("tasks", TASKS).to_pylist()
    missing = {row["task"]: row["missing"] for row in fetched if row["missing"]}
    scores = mteb_tasks.evaluate(
        job.inputs["model"].parent,
        mteb_tasks.find_tasks(mteb_tasks.task_names(lists, config.lists)),
        config,
        results_folder=job.outputs["scores"].with_suffix(".checkpoints"),
        key_of=partial(mteb_tasks.mteb_key, job, config),
        lost=failures.add,
        missing=missing,
        named={
            "name": f"semblance/{job.wildcards['run']}-seed{job.wildcards['seed']}",
            "revision": job.start.inputs["model"].sha256[:40],
        },
        device=granted_device(job.operational["gpu"]).type,
    )
    scores += mteb_tasks.list_means(scores, lists, config)
    table = score_table(scores, **job.wildcards)
    job.write({"scores": table}, labels=[config.label, *failures.labels(table)])
