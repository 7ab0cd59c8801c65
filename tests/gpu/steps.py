"""How much of the time a card computes, by PyTorch's profiler."""

from collections.abc import Callable
from typing import NamedTuple

import torch
from torch.profiler import ProfilerActivity, profile


class Busy(NamedTuple):
    """Seconds from the first kernel of some work to the end of the last, and those of them in which a kernel ran."""

    kernels: float
    whole: float

    @property
    def idle(self) -> float:
        """The share of the time in which no kernel ran."""
        return 1 - self.kernels / self.whole


def busy(work: Callable[[], object]) -> Busy:
    """Run ``work`` under the profiler."""
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CUDA]) as profiled:
        work()
        torch.cuda.synchronize()
    ranges = [event.time_range for event in profiled.events() or () if event.device_type.name == "CUDA"]
    spans = sorted((one.start, one.end) for one in ranges)
    first = end = spans[0][0]
    kernels = 0.0
    for start, stop in spans:
        kernels += max(0.0, stop - max(start, end))
        end = max(end, stop)
    return Busy(kernels / 1e6, (end - first) / 1e6)
