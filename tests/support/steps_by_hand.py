"""Steps of an objective taken by hand: both halves, one after the other."""

from collections.abc import Callable
from typing import Any

from torch import Tensor

from workflow_scripts.models.dropout import dropout_keys
from workflow_scripts.training import ranks
from workflow_scripts.training.objective import LossOutput
from workflow_scripts.training.step import prepare_inputs


def step_of(objective: Any, step: int) -> LossOutput:
    """The result of a step."""
    return objective.loss(objective.inputs(step))


def loss_of(objective: Any, step: int) -> Tensor:
    """The loss of a step."""
    return step_of(objective, step).loss


def metrics_of(objective: Any, step: int) -> dict[str, float]:
    """The metrics of a step."""
    return {name: float(value) for name, value in step_of(objective, step).metrics.items()}


def views_of(objective: Any, step: int) -> Tensor:
    """The vectors of a step, view by view."""
    return objective.views(objective.inputs(step))


def found_in(
    objective: Any, step: int = 1, seed: int = 1, loss: Callable[[Any], LossOutput] | None = None
) -> dict[str, Tensor]:
    """The gradients of a step by parameter, and its loss; of the joint batch where several processes share it."""
    own, keys = prepare_inputs(objective, seed, step)
    module = objective.module.train()
    module.zero_grad()
    with dropout_keys(keys, ranks.rank(), ranks.world()):
        left = (loss or objective.loss)(own)
    left.loss.backward()
    ranks.average_gradients(module.parameters())
    found = {name: p.grad.clone() for name, p in module.named_parameters() if p.grad is not None}
    return found | {"loss": left.loss.detach()}
