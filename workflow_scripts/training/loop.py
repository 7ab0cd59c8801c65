"""The training loop: optimiser steps with evaluation and checkpoints, resumable bit for bit.

A resumed training needs little state by design. Batches, learning rate and dropout are functions of seed and step; the
state is weights, optimiser moments, the best weights so far and the history. Every checkpoint contains all of them, so
a training that is killed at any point and restarted ends with the same bytes as an uninterrupted one.

The host never waits for a GPU within a step (``training.step``). Losses, norms and metrics stay on the GPU until
several steps are read at once; a checkpoint is copied to the host and written by a thread.
"""

import os
import signal
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import torch
from torch import Tensor

from workflow_scripts.columns import HISTORY, METRICS
from workflow_scripts.errors import EXIT_TRY_AGAIN, DataError, TrainingError
from workflow_scripts.evaluation.correlation import cosine, spearman
from workflow_scripts.models.devices import kind_of, make_deterministic
from workflow_scripts.models.encoding import encode_tokens
from workflow_scripts.models.templates import tokenise_in
from workflow_scripts.models.text_encoder import TokenEncoder
from workflow_scripts.models.tokens import NATURAL, Shapes
from workflow_scripts.progress import progress
from workflow_scripts.settings.training import Training
from workflow_scripts.training import ranks
from workflow_scripts.training.checkpoints import (
    Checkpoint,
    Tensors,
    in_host_memory,
    load_checkpoint,
    save_checkpoint,
)
from workflow_scripts.training.following import following
from workflow_scripts.training.objective import Metrics, Objective
from workflow_scripts.training.step import TrainStep, prefetch, prepare_inputs, step_runner

STEPS_READ_AT_ONCE = {"cuda": 50}
"""Steps between reads of results by type of device; others read every step. A read waits for a GPU's pending work."""
VOTE_EVERY = {"cuda": 10}
"""Steps between votes of processes on stopping, by type of device; others vote at every step. Hosts wait for votes."""


class Preempted(Exception):  # noqa: N818  (a request, not an error)
    """A request to stop has arrived, and the job's state is saved."""


def prepare(settings: Training, seed: int) -> torch.device:
    """Set threads, deterministic algorithms and the random state, and return the device for training.

    Raises:
        ConfigError: as ``models.devices.finds_gpu``.
    """
    device = ranks.device()
    # The host of a GPU computes no sums in a step. A second thread of PyTorch would only spin next to the one that
    # makes inputs: 62 ms per step instead of 1.7 (512 sentences three times, two loaded cores).
    torch.set_num_threads(1 if device.type == "cuda" else settings.cpu_threads)
    # The corpus is tokenised before the first step, while a GPU has nothing to do.
    if device.type == "cuda":
        os.environ["TOKENIZERS_PARALLELISM"] = "true"
    make_deterministic()
    torch.manual_seed(seed)
    return device


def development_score(encoder: TokenEncoder, pairs: pa.Table, max_tokens: int) -> Callable[[], float]:
    """Return a function that scores ``encoder`` in its current state: Spearman over ``pairs`` (``columns.PAIRS``).

    Raises:
        DataError: if ``pairs`` is empty, or all pairs have the same judgement.
    """
    if not len(pairs):
        raise DataError(
            "development set: no pairs. Set development.dataset to a dataset of pairs or, if the corpus "
            "has documents of several sentences, set corpora.<name>.dev_sentences, such as 1000."
        )
    gold = pairs["score"].to_numpy()
    if gold.min() == gold.max():
        raise DataError(
            f"development set: all {len(gold)} judgements are {gold[0]:g}, so no checkpoint can be "
            "chosen. Set development.dataset to a dataset with different judgements."
        )
    left, right = pairs["sentence1"].to_pylist(), pairs["sentence2"].to_pylist()
    row = {text: number for number, text in enumerate(dict.fromkeys(left + right))}
    left_P, right_P = ([row[text] for text in side] for side in (left, right))
    text = tokenise_in(encoder.template, encoder.tokenizer, list(row), max_tokens)

    def score() -> float:
        vectors_UD = encode_tokens(encoder, text)
        return spearman(gold, cosine(vectors_UD[left_P], vectors_UD[right_P]))

    return score


class Outcome(NamedTuple):
    """Results of a training other than its weights."""

    history: pa.Table
    metrics: pa.Table
    paths: Metrics


class State:
    """State of a training."""

    def __init__(self, objective: Objective, settings: Training, steps: int) -> None:
        self.module = objective.module
        self.device = next(self.module.parameters()).device
        self.update = TrainStep(objective, settings, steps)
        self.optimiser = self.update.optimiser
        self.step, self.steps = 0, steps
        self.patience = settings.patience
        self.gave_up = False  # no better score at ``patience`` evaluations
        self.unread: list[tuple[int, float, Tensor]] = []  # step, lr; loss, norm and metrics on the device
        self.rows: list[tuple[float, ...]] = []  # HISTORY; nan without an evaluation
        self.metrics: list[tuple[float, ...]] = []  # a row per step, a value per metric
        self.metric_names: list[str] = []
        self.best_score = -float("inf")
        self.best: Tensors = {}

    def read(self) -> None:
        """Copy results of the last steps to the host.

        Raises:
            TrainingError: at the first loss or gradient that is not finite.
        """
        values = torch.stack([results for *_, results in self.unread]).tolist() if self.unread else []
        for (step, lr, _), (loss, norm, *metrics) in zip(self.unread, values, strict=True):
            _check_finite("loss", loss, step)
            _check_finite("gradient norm", norm, step)
            self.rows.append((step, loss, lr, norm, float("nan")))
            if metrics:
                self.metrics.append(tuple(metrics))
        self.unread = []

    def score(self, score: float) -> None:
        """Record the last step's development score, and keep the weights if it is the best.

        Raises:
            TrainingError: if it is not finite.
        """
        _check_finite("development score", score, self.step)
        self.rows[-1] = (*self.rows[-1][:-1], score)
        self.gave_up = self._gives_up()
        if score > self.best_score:
            self.best_score = score
            self.best = {name: tensor.detach().clone() for name, tensor in self.changing().items()}

    def _gives_up(self) -> bool:
        """Return whether the last ``patience`` development scores are not better than an earlier one, on any rank."""
        if self.patience is None:
            return False
        scores = np.array([score for *_, score in self.rows if not np.isnan(score)])
        looks = len(scores) - 1 - int(scores.argmax()) if len(scores) else 0
        (gives_up,) = ranks.any_rank(looks >= self.patience)
        return gives_up

    def goes_on(self) -> bool:
        """Return whether another step follows."""
        return self.step < self.steps and not self.gave_up

    def changing(self) -> Tensors:
        """Return the module's state without frozen weights."""
        frozen = {name for name, parameter in self.module.named_parameters() if not parameter.requires_grad}
        return {name: tensor for name, tensor in self.module.state_dict().items() if name not in frozen}

    def note(self) -> str:
        """Return a note for the progress bar: the last loss on the host, and the best development score so far."""
        if not self.rows:
            return ""
        scored = f", best dev {self.best_score:.4f}" if self.best else ""
        return f"loss {self.rows[-1][1]:.4f}{scored}"

    def to_checkpoint(self) -> Checkpoint:
        """Return the state, copied to the host."""
        moments = {
            f"{number}/{key}": value
            for number, parameter_state in self.optimiser.state_dict()["state"].items()
            for key, value in parameter_state.items()
        }
        state = {
            "rows": torch.tensor(self.rows, dtype=torch.float64),
            "metrics": torch.tensor(self.metrics, dtype=torch.float64),
            "best_score": torch.tensor(self.best_score, dtype=torch.float64),
        }
        groups = {"model": self.changing(), "optimiser": moments, "state": state, "best": self.best}
        return Checkpoint(self.step, {name: in_host_memory(tensors) for name, tensors in groups.items()})

    def resume(self, checkpoint: Checkpoint) -> None:
        """Continue from a checkpoint."""
        groups = checkpoint.groups
        self.step = checkpoint.step
        self.module.load_state_dict(groups["model"], strict=False)
        moments: dict[int, Tensors] = defaultdict(dict)
        for name, value in groups["optimiser"].items():
            number, key = name.split("/")
            moments[int(number)][key] = value
        self.optimiser.load_state_dict(self.optimiser.state_dict() | {"state": moments})
        self.rows = [tuple(row) for row in groups["state"]["rows"].tolist()]
        self.metrics = [tuple(row) for row in groups["state"]["metrics"].tolist()]
        self.best_score = groups["state"]["best_score"].item()
        self.best = groups["best"]

    def outcome(self) -> Outcome:
        """Return the outcome after the last step; loads the weights with the best development score into the module."""
        if self.gave_up and ranks.rank() == 0:
            looks = f"{self.patience} evaluations without a better development score"
            print(f"ended after step {self.step} of {self.steps}: {looks}", file=sys.stderr)  # noqa: T201
        if self.best:
            self.module.load_state_dict(self.best, strict=False)
        for name, parameter in self.module.named_parameters():
            if not torch.isfinite(torch.stack(parameter.aminmax())).all():
                raise TrainingError(
                    f"training: {name} is not finite after step {self.step}. Reduce "
                    "training.learning_rate, for example by half."
                )
        values = np.array(self.metrics).reshape(self.step, len(self.metric_names))
        paths = dict(zip(self.metric_names, values.T, strict=True))
        return Outcome(_history(self.rows), _metrics(paths, self.step), paths)


def train(
    objective: Objective,
    settings: Training,
    steps: int,
    *,
    seed: int,
    development: tuple[int, Callable[[], float]] | None,
    checkpoints: Path,
    fingerprint: str,
    shapes: Shapes = NATURAL,
    log: Path | None = None,
) -> Outcome:
    """Train ``objective.module`` in place, ending with the weights of the best development score.

    Args:
        objective: The modules to train and their loss.
        settings: Learning rates, lengths and intervals.
        steps: Number of optimiser steps, and length of the schedule; ``settings.patience`` may end it earlier.
        seed: Seed of dropout.
        development: Steps between evaluations (the last step also has one), and the score to maximise; None keeps the
            last weights.
        checkpoints: Folder of checkpoints, created by the loop; the caller deletes it after saving the outcome.
        fingerprint: Hash of everything that the training depends on; other checkpoints are ignored.
        shapes: Multiples to which the shapes of batches are rounded up (``training.step.shapes_for``).
        log: The job's log, next to which rows are written (``training.following``); None for no rows.

    Raises:
        TrainingError: if a loss, gradient, development score or weight is not finite, or the GPU's memory is full.
        Preempted: after SIGTERM, SIGUSR1 or Ctrl-C, once a checkpoint is written.
    """
    if settings.warmup_steps > (most := settings.cycle(steps)):
        problem = f"training.warmup_steps: {settings.warmup_steps}, but the schedule has {most} steps"
        raise TrainingError(f"{problem}. Set it to {most} or less.")
    state = State(objective, settings, steps)
    run = step_runner(state.update, shapes, steps)
    fingerprint = f"{fingerprint} {_rounding(state.device, run.compiles, settings.chunk)}"
    if checkpoint := load_checkpoint(checkpoints, fingerprint):
        state.resume(checkpoint)
    at_once = STEPS_READ_AT_ONCE.get(state.device.type, 1)
    with (
        _stop_requests() as stop_requested,
        _Writer(checkpoints, fingerprint, settings.checkpoint_minutes) as writer,
        progress(steps, "train", "step", initial=state.step, disable=ranks.rank() > 0) as bar,
        following(None if ranks.rank() else log, steps, state.rows) as write_rows,
        closing(
            prefetch(partial(prepare_inputs, objective, seed), state.device, state.step, steps)
        ) as inputs,
    ):
        while state.goes_on():
            state.step += 1
            lr = settings.lr(state.step, steps)
            with _memory_explained(settings):
                results, state.metric_names = run(next(inputs), lr)
            state.unread.append((state.step, lr, results))
            scored = development and (state.step % development[0] == 0 or state.step == steps)
            votes = ranks.world() == 1 or state.step % VOTE_EVERY.get(state.device.type, 1) == 0
            stops, is_due = ranks.any_rank(stop_requested(), writer.is_due()) if votes else (False, False)
            if scored or stops or is_due or len(state.unread) >= at_once or state.step == steps:
                state.read()
            if scored:
                assert development
                state.score(development[1]())
            write_rows()
            bar.set_postfix_str(state.note(), refresh=False)
            bar.update()
            if (stops or is_due) and state.goes_on():
                writer.write(state.to_checkpoint())
            if stops and state.goes_on():
                raise Preempted(f"stopped after step {state.step} of {steps}; run the job again to go on")
    return state.outcome()


def _rounding(device: torch.device, compiles: bool, chunk: int | None) -> str:
    """Return a text of the causes of rounding: device, compiler, chunks and number of processes."""
    kind = f"{kind_of(device)} compiled" if compiles else kind_of(device)
    return f"{kind} {ranks.world()} {chunk}"


def _check_finite(name: str, value: float, step: int) -> None:
    if not np.isfinite(value):
        raise TrainingError(
            f"training: {name} {value} at step {step}. Reduce training.learning_rate, for example by half."
        )


@contextmanager
def _memory_explained(settings: Training) -> Iterator[None]:
    """Turn PyTorch's error of a full GPU into a ``TrainingError`` with a remedy."""
    try:
        yield
    except torch.OutOfMemoryError as error:
        chunk = settings.chunk or settings.batch_size
        raise TrainingError(
            f"training: {chunk} sentences at a time of a batch of {settings.batch_size} do not fit into "
            f"the GPU's memory. Set training.chunk to {max(1, chunk // 2)} or less, which changes no "
            "result, or use a larger GPU."
        ) from error


class _Writer:
    """Thread that writes checkpoints, one at a time, with a clock for the next one."""

    def __init__(self, folder: Path, fingerprint: str, minutes: float) -> None:
        self._folder = folder
        self._fingerprint = fingerprint
        self._seconds = 60 * minutes
        self._last = time.monotonic()
        self._thread = ThreadPoolExecutor(1)
        self._writing = self._thread.submit(lambda: None)

    def __enter__(self) -> "_Writer":
        return self

    def __exit__(self, *_: object) -> None:
        """Wait for the last checkpoint.

        Raises:
            OSError: if it could not be written.
        """
        self._thread.shutdown()
        self._writing.result()

    def is_due(self) -> bool:
        """Return whether it is time for the next checkpoint.

        Raises:
            OSError: if the last checkpoint could not be written.
        """
        if self._writing.done():
            self._writing.result()
        return time.monotonic() - self._last >= self._seconds

    def write(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint as soon as the last one is finished; ranks other than 0 write nothing."""
        self._last = time.monotonic()
        if ranks.rank() == 0:
            self._writing.result()
            self._writing = self._thread.submit(save_checkpoint, self._folder, self._fingerprint, checkpoint)


@contextmanager
def _stop_requests() -> Iterator[Callable[[], bool]]:
    """Yield a function that reports Ctrl-C, SIGTERM and SIGUSR1, which schedulers send before a kill."""
    received: list[int] = []

    def note(number: int, _frame: FrameType | None) -> None:
        received.append(number)

    signals = (signal.SIGTERM, signal.SIGUSR1, signal.SIGINT)
    before = {number: signal.signal(number, note) for number in signals}
    try:
        yield lambda: bool(received)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _history(rows: list[tuple[float, ...]]) -> pa.Table:
    columns = zip(np.array(rows).T, HISTORY.types, strict=True)
    arrays = [pa.array(column, kind, from_pandas=True) for column, kind in columns]  # nan becomes null
    return pa.table(arrays, schema=HISTORY)


def _metrics(paths: Metrics, steps: int) -> pa.Table:
    """Return metrics in long form: all of step 1, then all of step 2, and so on."""
    numbers = np.repeat(np.arange(1, steps + 1, dtype=np.int32), len(paths))
    values = np.array([*paths.values()], dtype=np.float64).T.ravel()
    arrays = [pa.array(numbers), pa.array([*paths] * steps, pa.string())]
    return pa.table([*arrays, pa.array(values, from_pandas=True)], schema=METRICS)  # nan becomes null


@contextmanager
def try_again_when_stopped() -> Iterator[None]:
    """Exit with code 75 after a stop request or Ctrl-C: a checkpoint is written, and the job should be run again."""
    try:
        yield
    except (Preempted, KeyboardInterrupt) as stop:
        # Ctrl-C before the first step or after the last has no message.
        message = str(stop) or "stopped outside the training's steps; run the job again to go on"
        print(f"Preempted: {message}.", file=sys.stderr)  # noqa: T201
        sys.exit(EXIT_TRY_AGAIN)
