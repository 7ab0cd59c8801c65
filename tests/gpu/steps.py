"""The device, steps on it as a long training takes them, and how much of the time it computes."""

import os
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch.profiler import ProfilerActivity, profile

from workflow_scripts.settings.training import Training
from workflow_scripts.training.objective import Objective
from workflow_scripts.training.sampler import Sampler
from workflow_scripts.training.step import (
    CUDAGraphStep,
    EagerStep,
    Results,
    TrainStep,
    prefetch,
    prepare_inputs,
)

DEVICE = torch.device(os.environ.get("SEMBLANCE_GPU_TEST_DEVICE", "cuda"))
"""Tests and benchmarks of a card can be tried out on a CPU, where steps are not captured."""
ON_CARD = DEVICE.type == "cuda"
BATCHES, SETTLED = 4, 12
"""Batches of ``Cycling``, and steps after which each of them is captured."""


class Cycling(Sampler):
    """The same few batches again and again, so that soon every shape is captured."""

    def rows_of(self, step: int) -> NDArray[np.int64]:
        """Rows of a step."""
        return super().rows_of((step - 1) % BATCHES + 1)


def settled(objective: Objective, settings: Training, *, compiles: bool) -> Iterator[Results]:
    """Steps, taken when they are asked for, after some that capture every shape."""
    update = TrainStep(objective, settings, 1)
    run = (CUDAGraphStep if ON_CARD else EagerStep)(update, compiles and ON_CARD)
    inputs = prefetch(partial(prepare_inputs, objective, 1), DEVICE, 0, 1_000_000)
    taken = (run(one, settings.learning_rate) for one in inputs)
    for _ in range(SETTLED if ON_CARD else 0):
        next(taken)
    return taken


class Busy(NamedTuple):
    """Seconds of some work in which a kernel ran, and of all of it."""

    kernels: float
    whole: float

    @property
    def idle(self) -> float:
        """The share of the time in which no kernel ran."""
        return 1 - self.kernels / self.whole


def busy(work: Callable[[], object]) -> Busy:
    """Run ``work`` twice: by the clock, and under the profiler, which measures kernels and slows down all else."""
    torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    torch.cuda.synchronize()
    whole = time.perf_counter() - started
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        work()
        torch.cuda.synchronize()
    ranges = [event.time_range for event in profiled.events() or () if event.device_type.name == "CUDA"]
    kernels, end = 0.0, 0.0
    for start, stop in sorted((one.start, one.end) for one in ranges):
        kernels += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return Busy(kernels / 1e6, whole)
