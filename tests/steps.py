"""Steps of an objective taken by hand: both halves, one after the other."""

from typing import Any

from torch import Tensor

from workflow_scripts.methods.base import Step


def step_of(objective: Any, step: int) -> Step:
    """What a step leaves."""
    return objective.loss(objective.inputs(step))


def loss_of(objective: Any, step: int) -> Tensor:
    """The loss of a step."""
    return step_of(objective, step).loss


def metrics_of(objective: Any, step: int) -> dict[str, float]:
    """What a step measures."""
    return {name: float(value) for name, value in step_of(objective, step).metrics.items()}


def views_of(objective: Any, step: int) -> Tensor:
    """The vectors of a step, view by view."""
    return objective.views(objective.inputs(step))
