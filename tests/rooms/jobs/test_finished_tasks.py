"""Tasks that are taken from the cache, computed, without data, broken, or with data that are elsewhere."""

from functools import partial

import pytest

from workflow_scripts.errors import DataError, MissingError, UnreachableError
from workflow_scripts.evaluation.base import gap
from workflow_scripts.evaluation.finished_tasks import TaskRun, run_tasks

NAMES = ["one", "two", "three"]


@pytest.fixture
def evaluate(tmp_path, cached):
    """Run three tasks, some with errors; returns those that were computed, and the gaps."""

    def evaluated(**errors):
        computed = []

        def compute(name):
            computed.append(name)
            if name in errors:
                raise errors[name]
            (tmp_path / name).write_text(name)

        for name in NAMES:
            (tmp_path / name).unlink(missing_ok=True)
        runs = [
            TaskRun(name, str(number) * 64, {"scores": tmp_path / name}, partial(compute, name))
            for number, name in enumerate(NAMES)
        ]
        gaps = run_tasks(runs, cached, lambda task, error: gap(task, f"failed: {error}"))
        assert all((tmp_path / name).read_text() == name for name in {*NAMES} - {*gaps})
        return computed, {task: score.note for task, score in gaps.items()}

    return evaluated


def test_a_failed_task_is_a_gap_and_tried_again(evaluate):
    """A failed task and one without data are gaps and tried again."""
    found = evaluate(one=DataError("broken"), two=MissingError("nobody has it"))
    assert found == (NAMES, {"one": "failed: broken", "two": "nobody has it"})
    assert evaluate() == (["one", "two"], {})
    assert evaluate() == ([], {})


def test_data_that_may_be_elsewhere_end_the_job(evaluate):
    """Data that may be elsewhere end the job behind finished tasks."""
    with pytest.raises(UnreachableError):
        evaluate(two=UnreachableError("not on this machine"))
    assert evaluate() == (["two", "three"], {})
