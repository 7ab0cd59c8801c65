"""Whether the host ever waits for the card within a step, and how long the card has nothing to do.

On a card PyTorch itself says when something waits. Everywhere else a step's operations are watched: one that brings a
number of a computed tensor to the host, or whose result's size depends on one, would wait on a card; so would a tensor
that is made without naming a device and has to be copied there, or a copy that its host waits for.
"""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch.overrides import TorchFunctionMode
from torch.profiler import ProfilerActivity, profile
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves
from torch.utils.weak import WeakIdKeyDictionary

from workflow_scripts.gpu_check.again import METHODS
from workflow_scripts.gpu_check.lines import Line, judged, left_open
from workflow_scripts.gpu_check.material import Size, Trained, blocks, prepared, training
from workflow_scripts.training.loop import State, prepare, take_step

PART = "no waiting"
IDLE = 0.05
"""The share of its time that a card may have nothing to do."""
STEPS = 200
WAITING = {"_local_scalar_dense", "nonzero", "masked_select", "_unique2", "unique_consecutive", "equal"}
"""Operations that need a number on the host."""
READING = {"cpu", "tolist", "numpy", "__array__"}
"""Calls that bring numbers to the host; on a CPU they are no operation."""
NOT_DETERMINISTIC = {
    "histc", "bincount", "kthvalue", "median", "nanmedian", "put_", "_embedding_bag", "adaptive_avg_pool2d",
    "avg_pool3d", "grid_sampler_2d", "multi_margin_loss", "nll_loss2d_forward", "_ctc_loss",
}  # fmt: skip
"""Operations without a deterministic kernel on a card: PyTorch's list in ``use_deterministic_algorithms``."""


class Watched(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Notes operations inside it that would make the host wait for a card, or let the card's result vary.

    Args:
        parameters: Of the model; they, and all that is computed from them, would lie on a card.
    """

    def __init__(self, parameters: Iterator[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.found: list[str] = []
        self.computed: Any = WeakIdKeyDictionary()
        """Tensors that would lie on a card: True of what was computed there, False of what was only copied there."""
        for parameter in parameters:
            self.computed[parameter] = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run one operation, noted if it waits."""
        kwargs = kwargs or {}
        name = func.overloadpacket.__name__
        tensors = [one for one in tree_leaves((args, kwargs)) if isinstance(one, torch.Tensor)]
        there = [self.computed[one] for one in tensors if one in self.computed]
        computed = any(there)
        if computed and name in WAITING:
            self.found.append(f"{name} waits")
        if computed and name == "index" and any(one.dtype == torch.bool for one in tensors):
            self.found.append("an index by a mask waits")
        if computed and name in NOT_DETERMINISTIC:
            self.found.append(f"{name} has no deterministic kernel")
        result = func(*args, **kwargs)
        for one in tree_leaves(result):
            if there and isinstance(one, torch.Tensor):
                self.computed[one] = computed
        return result


class Copies(TorchFunctionMode):
    """Notes calls that copy between host and card while the host waits, or from memory that is not pinned.

    Args:
        computed: Tensors that would lie on a card, as ``Watched`` knows them; None on a card.
    """

    def __init__(self, computed: Any = None) -> None:
        super().__init__()
        self.found: list[str] = []
        self._computed = computed

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Call one function, noted if it waits."""
        kwargs = kwargs or {}
        name, on_card = getattr(func, "__name__", ""), self._computed is None
        result = func(*args, **kwargs)
        if not on_card and name in READING and self._computed.get(args[0]):
            self.found.append(f"{name} waits")
        named = any(isinstance(one, torch.device | str) for one in (*args[1:], *kwargs.values()))
        if name == "cuda" or (name == "to" and named):
            there = args[0].is_cuda if on_card else args[0] in self._computed
            if not there and not kwargs.get("non_blocking"):
                self.found.append("a copy to the card waits")
            elif not there and on_card and not args[0].is_pinned():
                self.found.append("a copy from memory that is not pinned")
            elif not there and not on_card:
                self._computed[result] = False
        return result


def check(folder: Path, device: torch.device, size: Size) -> Iterator[Line]:
    """A line for each method, and the idle share of SimCSE's steps."""
    for name in METHODS:
        trained = prepared(blocks()[name], folder, size, device)
        step = one_step(trained, size)
        found = ", ".join(sorted(set(waits_of(step, device, trained))))
        yield Line(PART, f"{name}: steps that wait", found or "none", "none", "fails" if found else "holds")
    if device.type == "cpu":
        yield left_open(PART, "idle share of the card", "a card")
        return
    yield judged(PART, "idle share of the card", idle_share(one_step(trained, size), device), IDLE)


def one_step(trained: Trained, size: Size) -> Callable[[], None]:
    """The next step of a training, each time that it is called: the part of the loop in which nothing may wait."""
    settings = training(size, max_steps=STEPS)
    prepare(settings, seed=1)
    state = State(trained.objective, settings, STEPS)
    return partial(take_step, state, trained.objective, settings, STEPS, seed=1)


def waits_of(step: Callable[[], None], device: torch.device, trained: Trained) -> list[str]:
    """What waited in some steps, the first of which is not looked at."""
    step()
    if device.type == "cpu":
        watched = Watched(trained.objective.module.parameters())
        copies = Copies(watched.computed)
        with watched, copies:
            step()
        return [*watched.found, *copies.found, *_without_a_device(step)]
    copies = Copies()
    with copies:
        step()
    if copies.found:
        return copies.found
    torch.cuda.set_sync_debug_mode("error")
    try:
        for _number in range(2, STEPS):
            step()
    except RuntimeError as error:
        return [str(error).splitlines()[0]]
    finally:
        torch.cuda.set_sync_debug_mode("default")
    return []


def _without_a_device(step: Callable[[], None]) -> Iterator[str]:
    """Where tensors that name no device lie on another one than the encoder, as they would beside a card."""
    try:
        with torch.device("meta"):
            step()
    except (RuntimeError, NotImplementedError) as error:
        yield f"a tensor that names no device: {str(error).splitlines()[0]}"


def idle_share(step: Callable[[], None], device: torch.device, steps: int = 20) -> float:
    """The share of the time, from the first kernel of some steps to the last, in which no kernel runs."""
    step()
    torch.cuda.synchronize(device)
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiled:
        for _number in range(steps):
            step()
        torch.cuda.synchronize(device)
    spans = sorted(
        (event.time_range.start, event.time_range.end)
        for event in profiled.events()
        if event.device_type.name == "CUDA"
    )
    busy, end = 0.0, spans[0][0]
    for first, last in spans:
        busy += max(0.0, last - max(first, end))
        end = max(end, last)
    return float(1 - busy / (end - spans[0][0]))
