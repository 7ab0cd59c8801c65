"""The training loop: optimiser steps with evaluation and checkpoints, resumable bit for bit.

A resumed training needs little state by design. Batches and learning rate are functions of seed and step; what remains
are weights, optimiser moments, random state, the best weights so far and the history. Every checkpoint holds all of
this, so a training that is killed at any point and restarted ends with the same bytes as an uninterrupted one.
"""

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import nn

from workflow_scripts.columns.training import HISTORY, METRICS
from workflow_scripts.errors import TrainingError
from workflow_scripts.methods.base import Metrics, Objective
from workflow_scripts.models.precision import mixed_precision
from workflow_scripts.progress import Progress
from workflow_scripts.training import ranks
from workflow_scripts.training.checkpoints import Checkpoint, Tensors, load_checkpoint, save_checkpoint
from workflow_scripts.training.settings import Training


class Preempted(Exception):  # noqa: N818  (a request, no error)
    """The job has been asked to stop, and its state is saved."""


class Outcome(NamedTuple):
    """Tables of a training (``columns.training``), and the seconds of the steps that this process took."""

    history: pa.Table
    metrics: pa.Table
    seconds: dict[int, float]

    @property
    def paths(self) -> Metrics:
        """Value of every metric at every step."""
        names = dict.fromkeys(self.metrics["metric"].to_pylist())
        values = self.metrics["value"].to_numpy().reshape(-1, max(1, len(names)))
        return dict(zip(names, values.T, strict=True)) if names else {}


class _State:
    """Everything that changes during training."""

    def __init__(self, objective: Objective, settings: Training, steps: int) -> None:
        self.module = objective.module
        self.trainable = {name: p for name, p in self.module.named_parameters() if p.requires_grad}
        travels = objective.travels
        self.common = [p for name, p in self.trainable.items() if name not in travels]
        whole = sum(settings.rate(step, steps) for step in range(1, steps + 1)) if travels else 1.0
        groups = [{"params": self.common, "share": 1.0}] + [
            {"params": [self.trainable[name]], "share": travel / whole, "weight_decay": 0.0}
            for name, travel in travels.items()
        ]
        self.optimiser = torch.optim.AdamW(
            groups, lr=settings.learning_rate, weight_decay=settings.weight_decay, fused=True
        )
        self.step = 0
        self.rows: list[tuple[float, ...]] = []  # HISTORY; nan where there was no evaluation
        self.metrics: list[tuple[float, ...]] = []  # a row per step, a value per metric
        self.best_score = -float("inf")
        self.best: Tensors = {}

    def keep_if_best(self, score: float) -> None:
        if score > self.best_score:
            self.best_score = score
            self.best = {name: tensor.detach().clone() for name, tensor in self.module.state_dict().items()}

    def shown(self) -> str:
        """Loss of the last step, and the best development score once there is one."""
        scored = f", best dev {self.best_score:.4f}" if self.best else ""
        return f"loss {self.rows[-1][1]:.4f}{scored}"

    def to_checkpoint(self) -> Checkpoint:
        moments = {
            f"{name}/{key}": value
            for name, parameter in self.trainable.items()
            for key, value in self.optimiser.state[parameter].items()
        }
        state = {
            "rows": torch.tensor(self.rows, dtype=torch.float64),
            "metrics": torch.tensor(self.metrics, dtype=torch.float64),
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
        self.metrics = [tuple(row) for row in groups["state"]["metrics"].tolist()]
        self.best_score = groups["state"]["best_score"].item()
        self.best = groups["best"]
        # A clone, because torch reads the state with instructions that require alignment, which a row may lack.
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
    """Train ``objective.module`` in place and leave it with the weights that scored best on the dev set.

    Args:
        objective: The modules to train and their loss.
        settings: Learning rates, lengths and intervals.
        steps: Number of optimiser steps.
        development: The number of steps between evaluations (there is one after the last step, too), and the score,
            higher is better; None keeps the last weights.
        checkpoints: Folder of this training's checkpoints, created and cleared by the loop.
        fingerprint: Identifies everything that the training depends on; other checkpoints are ignored.

    Raises:
        TrainingError: at the first loss, gradient, development score or weight that is not finite.
        Preempted: after SIGTERM, SIGUSR1 or Ctrl-C, once a checkpoint is written.
    """
    state = _State(objective, settings, steps)
    # Dropout differs between kinds of devices, and the order of summation with the number of processes.
    fingerprint = f"{fingerprint} {next(objective.module.parameters()).device.type} {ranks.world()}"
    if ranks.rank() > 0:
        torch.manual_seed(
            torch.initial_seed() + ranks.rank()
        )  # all ranks start from the same weights, but draw different dropout
    if found := load_checkpoint(checkpoints, fingerprint):
        state.resume(found)
    seconds: dict[int, float] = {}
    with (
        _stop_requests() as stop_requested,
        Progress(steps, "train", "step", done=state.step, hidden=ranks.rank() > 0) as progress,
    ):
        while state.step < steps:
            started = time.monotonic()
            _step(state, objective, settings, steps, development)
            seconds[state.step] = time.monotonic() - started
            progress.update(note=state.shown())
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
    return Outcome(_history(state.rows), _metrics(state.metrics, objective.metric_names), seconds)


def _save(state: _State, checkpoints: Path, fingerprint: str) -> None:
    checkpoint = state.to_checkpoint()  # a collective call: every rank contributes its random state
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
        group["lr"] = rate * group["share"]
    state.module.train()
    state.optimiser.zero_grad(set_to_none=True)
    with mixed_precision(settings.precision, next(state.module.parameters()).device):
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
    if objective.metric_names:
        state.metrics.append(tuple(objective.metrics()))


@contextmanager
def _stop_requests() -> Iterator[Callable[[], bool]]:
    """Catch Ctrl-C, and SIGTERM and SIGUSR1, which schedulers send before a kill, and report whether one arrived."""
    noted: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        noted.append(number)

    signals = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
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


def _metrics(rows: list[tuple[float, ...]], metric_names: Sequence[str]) -> pa.Table:
    """Long form: the metrics of step 1, then those of step 2, and so on."""
    steps = np.repeat(np.arange(1, len(rows) + 1, dtype=np.int32), len(metric_names))
    values = np.array(rows, dtype=np.float64).ravel()
    arrays = [pa.array(steps), pa.array(list(metric_names) * len(rows), pa.string())]
    return pa.table([*arrays, pa.array(values, from_pandas=True)], schema=METRICS)  # nan becomes null
