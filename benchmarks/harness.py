"""Common parts of benchmarks: ways to do the same work take turns, and every round gives one ratio.

Other work on the machine slows all ways of a round equally, so ratios are computed within rounds; the result is their
median, shown with the lowest and the highest. Times are seconds of the CPU on one thread, including those of started
commands, unless a benchmark asks for wall-clock time.
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
"""Minimum number of rounds for figures to be saved."""
THREADS = 1
Clock = Literal["cpu", "wall"]
Seconds = Mapping[str, Sequence[float]]
"""Seconds of each way, round by round."""


class Measured(NamedTuple):
    """A ratio, with a value for each round."""

    name: str
    values: Sequence[float]
    unit: str
    comparison: str
    """The two sides of the ratio, in one word."""
    clock: Clock = "cpu"
    card: str = ""
    """The GPU, its driver and PyTorch, if a GPU was timed."""

    def __str__(self) -> str:
        """Return the line to print, with the lowest and the highest value in parentheses."""
        spread = f"({figure(min(self.values))} to {figure(max(self.values))}, {len(self.values)} rounds)"
        return f"bench {self.name} {figure(median(self.values))} {self.unit} {self.comparison} {spread}"


class Timing(NamedTuple):
    """Amount of work to measure."""

    rounds: int
    small: bool
    """Whether to use little material and one round without a warm-up, to check that the benchmark runs."""

    def interleaved(self, ways: Mapping[str, Callable[[], object]], clock: Clock = "cpu") -> Seconds:
        """Return the seconds of each way in each round, after a round as warm-up."""
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
    """Return the seconds of one way divided by those of another, round by round."""
    return [numerator / denominator for numerator, denominator in zip(seconds[of], seconds[to], strict=True)]


def figure(value: float) -> str:
    """Return a ratio with three significant digits, or all digits before the point."""
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:.{digits}f}"


@contextmanager
def one_thread() -> Iterator[None]:
    """Limit this process and started commands to ``THREADS`` threads."""
    libraries = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), str(THREADS))
    os.environ |= libraries | {"TOKENIZERS_PARALLELISM": "false"}
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(THREADS)
    with threadpool_limits(THREADS):
        yield


def measured(name: str, timing: Timing) -> list[Measured]:
    """Return the ratios of a benchmark; each is printed as soon as it is measured."""
    measurements = []
    with one_thread():
        for measurement in importlib.import_module(f"benchmarks.{name}").measure(timing):
            print(measurement, flush=True)
            measurements.append(measurement)
    return measurements


def _cpu() -> float:
    """Return CPU seconds of this process and of finished child processes."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in used)


_CLOCKS: Mapping[Clock, Callable[[], float]] = {"cpu": _cpu, "wall": time.perf_counter}
