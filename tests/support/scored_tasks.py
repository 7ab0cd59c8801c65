"""Scores of tasks, with one encoding for each."""

from workflow_scripts.evaluation.task_by_task import SharedTexts


def scores_of(task, encode):
    return task.score(*SharedTexts(encode, {"": task.columns}).vectors(""))


def evaluate(evaluator, datasets, encode, config):
    """Scores of each dataset by the task with its name."""
    return [
        score
        for name, table in datasets.items()
        for score in scores_of(evaluator.load(name, table, config), encode)
    ]
