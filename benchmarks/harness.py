"""What all benchmarks have in common: ways to do the same thing take turns, and every round of them gives one ratio.

What else happens on the machine meets all ways of a round alike, so a ratio is taken within a round, and the median of
the rounds counts, shown with the lowest and the highest. Seconds are the processor's on one thread, those of commands
that were started and awaited included, unless a benchmark asks for the time that passes.
"""

import importlib
import os
import resource
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Literal, NamedTuple

from threadpoolctl import threadpool_limits

ROUNDS = 5
"""The fewest that are kept."""
THREADS = 1
Clock = Literal["cpu", "wall"]
Seconds = Mapping[str, Sequence[float]]
"""Of every way, in each round."""


class Measured(NamedTuple):
    """One ratio, a value for each round."""

    name: str
    values: Sequence[float]
    unit: str
    comparison: str
    """What against what, in one word."""
    clock: Clock = "cpu"
    card: str = ""
    """The GPU, its driver and PyTorch, where one was timed."""

    def __str__(self) -> str:
        """The line that is printed; what stands in brackets is the lowest and the highest."""
        spread = f"({figure(min(self.values))} to {figure(max(self.values))}, {len(self.values)} rounds)"
        return f"bench {self.name} {figure(median(self.values))} {self.unit} {self.comparison} {spread}"


class Timing(NamedTuple):
    """How much to measure."""

    rounds: int
    small: bool
    """Little material, one round and none to warm up: whether the benchmark runs, not how fast anything is."""

    def interleaved(self, ways: Mapping[str, Callable[[], object]], clock: Clock = "cpu") -> Seconds:
        """Seconds of each way; a round before those that count warms up."""
        now = _CLOCKS[clock]
        seconds: dict[str, list[float]] = {name: [] for name in ways}
        for _round in range(self.rounds + (not self.small)):
            for name, work in ways.items():
                started = now()
                work()
                seconds[name].append(now() - started)
        counted = {name: taken[-self.rounds :] for name, taken in seconds.items()}
        shown = ", ".join(f"{name} {median(taken):.3g}" for name, taken in counted.items())
        print(f"# median seconds ({clock}): {shown}", file=sys.stderr, flush=True)
        return counted


def ratios(seconds: Seconds, of: str, to: str) -> list[float]:
    """The seconds of one way in those of another, round by round."""
    return [one / other for one, other in zip(seconds[of], seconds[to], strict=True)]


def figure(value: float) -> str:
    """A ratio with three digits, or all digits before the point."""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}"


@contextmanager
def one_thread() -> Iterator[None]:
    """Everything here, and in commands that are started, computes on as many threads as ``THREADS`` says."""
    libraries = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS))
    os.environ |= libraries | {"TOKENIZERS_PARALLELISM": "false"}
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(THREADS)
    with threadpool_limits(THREADS):
        yield


def measured(name: str, timing: Timing) -> list[Measured]:
    """What the benchmark of that name measures, each printed as soon as it is known."""
    found = []
    with one_thread():
        for one in importlib.import_module(f"benchmarks.{name}").measure(timing):
            print(one, flush=True)
            found.append(one)
    return found


def _cpu() -> float:
    """Seconds of the processor in this process and in those that it has waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


_CLOCKS: Mapping[Clock, Callable[[], float]] = {"cpu": _cpu, "wall": time.perf_counter}
