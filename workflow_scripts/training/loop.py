"""The training loop: one optimiser step after another, evaluated, kept, and resumable to the bit.

State that a resumed training needs is small by design. Batches and learning rate are functions of seed
and step; what is left is weights, optimiser moments, random state, the best weights so far and the
history. All of it is in every checkpoint, so a training that was killed at any point and started again
ends in the same bytes as one that was not.
"""

import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor, nn
from tqdm import tqdm

from workflow_scripts.errors import TrainingError
from workflow_scripts.models.precision import products
from workflow_scripts.schemas import HISTORY, WATCHED
from workflow_scripts.training import ranks
from workflow_scripts.training.checkpoints import Checkpoint, Tensors, load_checkpoint, save_checkpoint
from workflow_scripts.training.settings import Training


class Preempted(Exception):  # noqa: N818  (a request, no error)
    """The job was asked to stop; its state is saved."""


class Objective(Protocol):
    """What a method gives the loop: modules to train, and the loss of one step."""

    @property
    def module(self) -> nn.Module:
        """The modules."""

    def loss(self, step: int) -> Tensor:
        """Loss of ``step`` (from 1), a scalar with a gradient."""


@runtime_checkable
class Watching(Protocol):
    """An objective that keeps an eye on quantities of its own."""

    quantities: Sequence[str]

    def watched(self) -> Sequence[float]:
        """Their values at the step whose loss was asked for last, in the order of ``quantities``."""


@runtime_checkable
class OwnRates(Protocol):
    """An objective with parameters that do not learn at the common rate.

    ``own_rates`` maps a parameter's name in ``module`` to its peak rate. They share the schedule, and know
    neither weight decay nor the bound on the gradient's norm.
    """

    own_rates: Mapping[str, float]


class Outcome(NamedTuple):
    """Tables of a training (``schemas.HISTORY``, ``schemas.WATCHED``), and the seconds of this process's steps."""

    history: pa.Table
    watched: pa.Table
    seconds: dict[int, float]


class _State:
    """Everything that changes while training."""

    def __init__(self, objective: Objective, settings: Training) -> None:
        self.module = objective.module
        self.trainable = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        own_rates = objective.own_rates if isinstance(objective, OwnRates) else {}
        self.common = [p for name, p in self.trainable.items() if name not in own_rates]
        groups = [{"params": self.common, "peak": settings.learning_rate}] + [
            {"params": [self.trainable[name]], "peak": rate, "weight_decay": 0.0}
            for name, rate in own_rates.items()
        ]
        self.optimiser = torch.optim.AdamW(
            groups, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.step = 0
        self.rows: list[tuple[float, ...]] = []  # HISTORY; nan where there was no evaluation
        self.watched: list[tuple[float, ...]] = []  # a row a step, a value a quantity
        self.best_score = -float("inf")
        self.best: Tensors = {}

    def keep_if_best(self, score: float) -> None:
        if score > self.best_score:
            self.best_score = score
            self.best = {name: tensor.detach().clone() for name, tensor in self.module.state_dict().items()}

    def to_checkpoint(self) -> Checkpoint:
        moments = {
            f"{name}/{key}": value
            for name, parameter in self.trainable.items()
            for key, value in self.optimiser.state[parameter].items()
        }
        state = {
            "rows": torch.tensor(self.rows, dtype=torch.float64),
            "watched": torch.tensor(self.watched, dtype=torch.float64),
            "best_score": torch.tensor(self.best_score, dtype=torch.float64),
            "random": ranks.of_every_rank(torch.get_rng_state()),
        }
        if torch.cuda.is_available():
            state["random_cuda"] = ranks.of_every_rank(torch.cuda.get_rng_state(ranks.device()))
        groups = {"model": self.module.state_dict(), "optimiser": moments, "state": state, "best": self.best}
        return Checkpoint(self.step, groups)

    def resume(self, checkpoint: Checkpoint) -> None:
        groups = checkpoint.groups
        self.step = checkpoint.step
        self.module.load_state_dict(groups["model"])
        for name, parameter in self.trainable.items():
            prefix = f"{name}/"
            moments = {
                key.removeprefix(prefix): v
                for key, v in groups["optimiser"].items()
                if key.startswith(prefix)
            }
            if moments:
                step = moments.pop("step")
                self.optimiser.state[parameter] = {"step": step.to(parameter.device)} | {
                    key: value.to(parameter.device) for key, value in moments.items()
                }
        self.rows = [tuple(row) for row in groups["state"]["rows"].tolist()]
        self.watched = [tuple(row) for row in groups["state"]["watched"].tolist()]
        self.best_score = groups["state"]["best_score"].item()
        self.best = groups["best"]
        # A clone, because torch reads the state with instructions that want it aligned, and a row may not be.
        torch.set_rng_state(groups["state"]["random"][ranks.rank()].clone())
        if "random_cuda" in groups["state"]:
            torch.cuda.set_rng_state(groups["state"]["random_cuda"][ranks.rank()].clone(), ranks.device())


def train(
    objective: Objective,
    settings: Training,
    steps: int,
    *,
    development: tuple[int, Callable[[], float]] | None,
    checkpoints: Path,
    fingerprint: str,
) -> Outcome:
    """Train ``objective.module`` in place; it ends with the weights that scored best on the dev set.

    Args:
        objective: What is trained and its loss.
        settings: Rates, lengths and intervals.
        steps: Number of optimiser steps.
        development: Every how many steps to evaluate (and after the last), and the score, higher is better;
            None keeps the last weights.
        checkpoints: Folder of this training's checkpoints, made and emptied by the loop.
        fingerprint: What the training depends on; checkpoints of any other are passed over.

    Raises:
        TrainingError: at the first loss, gradient, development score or weight that is not finite.
        Preempted: after SIGTERM or SIGUSR1, once a checkpoint is written.
    """
    state = _State(objective, settings)
    # Each kind of device draws its own dropout, and each number of processes sums in its own order.
    fingerprint = f"{fingerprint} {next(objective.module.parameters()).device.type} {ranks.world()}"
    if ranks.rank() > 0:
        torch.manual_seed(
            torch.initial_seed() + ranks.rank()
        )  # one start for all, dropout of its own for each
    if found := load_checkpoint(checkpoints, fingerprint):
        state.resume(found)
    seconds: dict[int, float] = {}
    with (
        _stop_requests() as stop_requested,
        tqdm(total=steps, initial=state.step, desc="train", unit="step", disable=ranks.rank() > 0) as bar,
    ):
        while state.step < steps:
            started = time.monotonic()
            _step(state, objective, settings, steps, development)
            seconds[state.step] = time.monotonic() - started
            bar.update()
            bar.set_postfix(loss=f"{state.rows[-1][1]:.4f}", dev=f"{state.best_score:.4f}", refresh=False)
            if ranks.any_rank(stop_requested()) and state.step < steps:
                _save(state, checkpoints, fingerprint)
                raise Preempted(f"stopped after step {state.step} of {steps}; run the job again to go on")
            if state.step % settings.checkpoint_every == 0 and state.step < steps:
                _save(state, checkpoints, fingerprint)
    if state.best:
        objective.module.load_state_dict(state.best)
    for name, parameter in objective.module.named_parameters():
        if not torch.isfinite(parameter).all():
            raise TrainingError(f"training: {name} is not finite after step {steps}. Lower learning_rate.")
    quantities = objective.quantities if isinstance(objective, Watching) else ()
    return Outcome(_history(state.rows), _watched(state.watched, quantities), seconds)


def _save(state: _State, checkpoints: Path, fingerprint: str) -> None:
    checkpoint = state.to_checkpoint()  # every rank gives its random state
    if ranks.rank() == 0:
        save_checkpoint(checkpoints, fingerprint, checkpoint)


def _step(
    state: _State,
    objective: Objective,
    settings: Training,
    steps: int,
    development: tuple[int, Callable[[], float]] | None,
) -> None:
    step = state.step + 1
    rate = settings.rate(step, steps)
    for group in state.optimiser.param_groups:
        group["lr"] = rate * (group["peak"] / settings.learning_rate)
    state.module.train()
    state.optimiser.zero_grad(set_to_none=True)
    with products(settings.precision, next(state.module.parameters()).device):
        loss = objective.loss(step)
    if not torch.isfinite(loss):
        raise TrainingError(f"training: loss {loss.item()} at step {step}. Lower learning_rate.")
    loss.backward()  # type: ignore[no-untyped-call]
    ranks.average_gradients(state.trainable.values())
    norm = nn.utils.clip_grad_norm_(state.common, settings.max_gradient_norm)
    if not torch.isfinite(norm):
        raise TrainingError(f"training: gradient norm {norm.item()} at step {step}. Lower learning_rate.")
    state.optimiser.step()
    state.step = step
    score = float("nan")
    if development and (step % development[0] == 0 or step == steps):
        score = development[1]()
        if not np.isfinite(score):
            raise TrainingError(f"training: development score {score} at step {step}. Lower learning_rate.")
        state.keep_if_best(score)
    state.rows.append((step, loss.item(), rate, norm.item(), score))
    if isinstance(objective, Watching):
        state.watched.append(tuple(objective.watched()))


@contextmanager
def _stop_requests() -> Iterator[Callable[[], bool]]:
    """Note SIGTERM and SIGUSR1, which schedulers send before they kill, instead of dying of them."""
    noted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)

    signals = (signal.SIGTERM, signal.SIGUSR1)
    before = {number: signal.signal(number, note) for number in signals}
    try:
        yield lambda: bool(noted)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _history(rows: list[tuple[float, ...]]) -> pa.Table:
    columns = np.array(rows, dtype=np.float64).reshape(len(rows), len(HISTORY)).T
    arrays = [pa.array(column, from_pandas=True) for column in columns]  # nan becomes null
    return pa.table(
        [array.cast(field.type) for array, field in zip(arrays, HISTORY, strict=True)], schema=HISTORY
    )


def _watched(rows: list[tuple[float, ...]], quantities: Sequence[str]) -> pa.Table:
    """Long form: the quantities of step 1, then those of step 2."""
    steps = np.repeat(np.arange(1, len(rows) + 1, dtype=np.int32), len(quantities))
    values = np.array(rows, dtype=np.float64).ravel()
    arrays = [pa.array(steps), pa.array(list(quantities) * len(rows), pa.string())]
    return pa.table([*arrays, pa.array(values, from_pandas=True)], schema=WATCHED)  # nan becomes null
