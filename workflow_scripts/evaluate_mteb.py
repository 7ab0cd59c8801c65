"""Score one run on lists of mteb's tasks (rule evaluate_mteb)."""

from workflow_scripts.artefacts import write_table
from workflow_scripts.errors import one_line_errors
from workflow_scripts.evaluation import mteb_tasks
from workflow_scripts.evaluation.scores import score_table
from workflow_scripts.job import parse_job


def main() -> None:
    """Run the tasks that are not finished yet, write the scores of all."""
    job = parse_job(
        "evaluate_mteb", __doc__, wildcards=["suite", "run", "seed"], inputs=["model"], outputs=["scores"]
    )
    config = mteb_tasks.Config.parse(job.settings["suite"], f"suites.mteb.{job.wildcards['suite']}")
    lists = mteb_tasks.Lists.parse(job.settings["mteb"], "mteb")
    record = job.record()  # checks the model, which mteb would load unseen
    scores_file = job.outputs["scores"]
    scores = mteb_tasks.evaluate(
        job.inputs["model"].parent,
        mteb_tasks.find_tasks(mteb_tasks.task_names(lists, config.lists)),
        config,
        run=f"{job.wildcards['run']}.seed{job.wildcards['seed']}",
        # No rule's output, so that a job that is stopped, or asked for more tasks, goes on from there.
        cache_folder=scores_file.with_suffix(".checkpoints"),
    )
    write_table(scores_file, score_table(scores, **job.wildcards), record)


if __name__ == "__main__":
    with one_line_errors():
        main()
