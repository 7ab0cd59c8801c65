"""Whether a training gives the same bytes again, whole or resumed after a kill, and what that costs."""

import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch

from workflow_scripts.gpu_check.lines import Line, judged
from workflow_scripts.gpu_check.material import SMALL, Size, blocks, prepared, training
from workflow_scripts.training.loop import prepare, train

PART = "the same again"
METHODS = ("simcse", "promptbert", "simcse_3r", "jtcse", "simcse_s2sent")
STEPS, KILLED_AFTER = 50, 23


class Killed(Exception):  # noqa: N818  (no error: what a check asks for)
    """Stands in for the end of the process."""


def check(folder: Path, device: torch.device, size: Size) -> Iterator[Line]:
    """Two trainings of each method, and a third that is killed and resumed; then the cost, at ``size``."""
    for name in METHODS:
        first, second = (weights(name, folder, device, folder / f"{name}{number}") for number in (1, 2))
        yield judged(PART, f"{name}: weights that differ after {STEPS} steps", differing(first, second), 0)
        place = folder / f"{name}-killed"
        try:
            weights(name, folder, device, place, killed_after=KILLED_AFTER)
        except Killed:
            resumed = weights(name, folder, device, place)
        differ = differing(first, resumed)
        yield judged(
            PART, f"{name}: weights that differ, killed at step {KILLED_AFTER} and resumed", differ, 0
        )
    yield cost(folder, device, size)


def weights(
    name: str, folder: Path, device: torch.device, checkpoints: Path, killed_after: int | None = None
) -> Mapping[str, torch.Tensor]:
    """Weights after a training as the rule train_encoder runs it."""
    minutes = 60 if killed_after is None else 0
    settings = training(SMALL, max_steps=STEPS, precision="float32", checkpoint_minutes=minutes)
    prepare(settings, seed=1)
    objective = prepared(blocks()[name], folder, SMALL, device).objective
    whole = objective.loss

    def loss(step: int) -> torch.Tensor:
        if killed_after is not None and step > killed_after:
            raise Killed
        return whole(step)

    objective.loss = loss  # type: ignore[method-assign]
    train(objective, settings, STEPS, seed=1, development=None, checkpoints=checkpoints, fingerprint="check")
    return {key: tensor.cpu() for key, tensor in objective.module.state_dict().items()}


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> int:
    """How many tensors of a state are not equal bit for bit."""
    return sum(not torch.equal(tensor, other[name]) for name, tensor in one.items())


def cost(folder: Path, device: torch.device, size: Size) -> Line:
    """Seconds of SimCSE's steps with deterministic algorithms, against any."""
    taken = {}
    for deterministic in (True, False):
        trained = prepared(blocks()["simcse"], folder, size, device)
        settings = training(size, max_steps=STEPS, checkpoint_minutes=60)
        prepare(settings, seed=1)
        torch.use_deterministic_algorithms(deterministic)
        start = time.perf_counter()
        place = folder / f"cost-{deterministic}"
        train(trained.objective, settings, STEPS, seed=1, development=None, checkpoints=place, fingerprint="")
        taken[deterministic] = time.perf_counter() - start
    torch.use_deterministic_algorithms(True)
    return Line(
        PART, "deterministic algorithms", f"{taken[True] / taken[False]:.2f} times the time", "", "measured"
    )
