"""One step of training: inputs made on the host, and the update that the device computes from them alone.

On a GPU whose host does all that it can, most of a step's time goes by between kernels (BERT-base, 64 sentences: 88%).
So the host makes a step's inputs in a thread while the device computes the step before, and after some steps the whole
update (forward and backward pass, clipping, AdamW) is a CUDA graph for each of the few shapes that inputs have, which
one call replays. Long trainings compile the encoder's layers, too. A CPU runs the same functions as they are.
"""

import sys
import warnings
from collections import deque
from collections.abc import Callable, Generator, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only
from transformers import PreTrainedModel

from workflow_scripts.methods.base import Objective
from workflow_scripts.models.devices import mixed_precision
from workflow_scripts.models.dropout import Keys, Masks, answering, keyed, keys_of
from workflow_scripts.models.encoder import TextEncoder, max_position_embeddings
from workflow_scripts.models.packed import PLACES, compiled, packs
from workflow_scripts.models.tokens import NATURAL, Packing, Shapes, onto
from workflow_scripts.settings.training import Training
from workflow_scripts.training import ranks

CAPTURED_FROM, COMPILED_FROM = 100, 5_000
"""Steps of a training from which capturing and compiling pay: a second for each shape, and up to a minute (H200)."""
MOST_GRAPHS = 12
"""Shapes that are captured; steps of other shapes run as they are."""
ROUNDED = Shapes(tokens=256, width=32)

_NO_SENTENCES = Packing.of(torch.ones(1, 1))

Inputs = tuple[Any, Keys]
"""An objective's inputs and the keys of a step's draws."""
Left = tuple[Tensor, list[str]]
"""Loss, norm of the gradient and metrics of a step in one tensor, in float64, and the names of the metrics."""


def shapes_for(device: torch.device, module: nn.Module, chunk: int | None) -> Shapes:
    """How batches are rounded up: on a GPU so that steps of ``module`` can be captured, if they can be."""
    backbones = [one for one in module.modules() if isinstance(one, PreTrainedModel)]
    reads_padding = any(getattr(one, "reads", None) == "padded" for one in module.modules())
    whole = ranks.world() == 1 and chunk is None
    if device.type == "cpu" or not whole or reads_padding or not all(map(packs, backbones)):
        if device.type == "cuda":
            reason = "several processes, chunks, or an encoder or readout that is not packed"
            print(f"steps are not captured: {reason}", file=sys.stderr)  # noqa: T201
        return NATURAL
    limits = [limit for limit in map(max_position_embeddings, backbones) if limit is not None]
    return ROUNDED._replace(longest=min(limits, default=None))


def host_half(objective: Objective, seed: int, step: int) -> Inputs:
    """All that ``step`` reads, on the host."""
    models = [one for one in objective.module.modules() if isinstance(one, PreTrainedModel)]
    depth = max((int(one.config.num_hidden_layers) for one in models), default=0)
    passes = objective.passes + draws_outside(objective.module)
    return objective.inputs(step), keys_of(seed, step, passes=passes, places=PLACES * depth)


def draws_outside(module: nn.Module) -> bool:
    """Whether anything outside of encoders draws, such as dropout in a head that a method adds."""
    inside = {
        part
        for whole in module.modules()
        if isinstance(whole, TextEncoder | PreTrainedModel)
        for part in whole.modules()
    }
    return any(isinstance(part, nn.Dropout | nn.RReLU) for part in {*module.modules()} - inside)


def ahead(
    make: Callable[[int], Inputs], device: torch.device, done: int, steps: int
) -> Generator[Inputs, None, None]:
    """Inputs of the steps that are left, on the host.

    For a GPU, a thread makes those of the next step meanwhile, in pinned memory; a CPU has no time to spare.
    """
    numbers = range(done + 1, steps + 1)
    if device.type != "cuda":
        yield from map(make, numbers)
        return

    def pinned(step: int) -> Inputs:
        inputs: Inputs = tree_map_only(Tensor, Tensor.pin_memory, make(step))
        return inputs

    with ThreadPoolExecutor(1) as thread:
        later: deque[Future[Inputs]] = deque()
        for step in numbers:
            later.append(thread.submit(pinned, step))
            if len(later) > 1:
                yield later.popleft().result()
        yield from (one.result() for one in later)


class Update:
    """The device's half of a step: from inputs to updated weights.

    Raises:
        KeyError: if a rate budget names no parameter.
    """

    def __init__(self, objective: Objective, settings: Training, steps: int) -> None:
        self.objective, self.settings = objective, settings
        self.device = next(objective.module.parameters()).device
        self._trainable = {name: p for name, p in objective.module.named_parameters() if p.requires_grad}
        budgets = objective.rate_budgets
        self._common = [p for name, p in self._trainable.items() if name not in budgets]
        cycle = range(1, settings.cycle(steps) + 1)
        whole = sum(settings.rate(step, steps) for step in cycle) if budgets else 1.0
        groups = [{"params": self._common, "share": 1.0}] + [
            {"params": [self._trainable[name]], "share": travel / whole, "weight_decay": 0.0}
            for name, travel in budgets.items()
        ]
        self._outside = onto(_NO_SENTENCES, self.device) if draws_outside(objective.module) else None
        on_gpu = self.device.type == "cuda"
        # It says so of every step that runs as it is, such as the first one of a shape.
        warnings.filterwarnings("ignore", "This instance was constructed with capturable=True")
        for group in groups if on_gpu else ():
            group["lr"] = torch.tensor(settings.learning_rate, device=self.device)
        self.optimiser = torch.optim.AdamW(
            groups,
            lr=settings.learning_rate,
            weight_decay=settings.weight_decay,
            fused=True,
            capturable=on_gpu,
        )

    def begin(self, rate: float) -> None:
        """Set the learning rate of the next step, and training mode, which an evaluation may have ended."""
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(rate * group["share"])
            else:
                group["lr"] = rate * group["share"]
        self.objective.module.train()

    def __call__(self, inputs: Inputs) -> Left:
        """Update the weights once."""
        own, keys = inputs
        self.optimiser.zero_grad(set_to_none=True)
        with (
            keyed(keys, ranks.rank(), ranks.world()),
            answering(Masks(self._outside) if self._outside else None),
            mixed_precision(self.settings.precision, self.device),
        ):
            step = self.objective.loss(own)
        step.loss.backward()  # type: ignore[no-untyped-call]
        ranks.average_gradients(self._trainable.values())
        norm = nn.utils.clip_grad_norm_(self._common, self.settings.max_gradient_norm)
        self.optimiser.step()
        left = (step.loss.detach(), norm, *step.metrics.values())
        return torch.stack([value.double() for value in left]), list(step.metrics)


class Eager:
    """Steps that run as they are; compiled layers where ``compiles``."""

    def __init__(self, update: Update, compiles: bool) -> None:
        self._update, self._compiles = update, compiles

    def __call__(self, inputs: Inputs, rate: float) -> Left:
        """Take a step from inputs on the host."""
        self._update.begin(rate)
        return self._run(onto(inputs, self._update.device))

    def _run(self, inputs: Inputs) -> Left:
        with compiled() if self._compiles else nullcontext():
            return self._update(inputs)


class Graph(NamedTuple):
    """A captured update: it reads its inputs and leaves its results at fixed addresses."""

    graph: torch.cuda.CUDAGraph
    inputs: Inputs
    left: Left


class Captured(Eager):
    """Steps that are captured as CUDA graphs, each when its shape occurs for the second time, and then replayed.

    The first step of a shape runs as it is, which makes ready whatever is made at first use: optimiser state, compiled
    layers, workspaces. All run on one stream, since no part of a captured backward pass may belong to the default one.
    """

    def __init__(self, update: Update, compiles: bool) -> None:
        super().__init__(update, compiles)
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._seen: set[Hashable] = set()
        self._graphs: dict[Hashable, Graph] = {}
        self._pool: Any = None

    def __call__(self, inputs: Inputs, rate: float) -> Left:
        """Take a step from inputs on the host."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self._update.begin(rate)
            left, names = self._replayed(inputs)
        torch.cuda.current_stream().wait_stream(self._stream)
        return left, names

    def _replayed(self, inputs: Inputs) -> Left:
        shape = _shape(inputs)
        if shape not in self._graphs:
            if shape not in self._seen or len(self._graphs) == MOST_GRAPHS:
                self._seen.add(shape)
                return self._run(onto(inputs, self._update.device))
            self._graphs[shape] = self._capture(inputs)
        captured = self._graphs[shape]
        for fixed, given in zip(tree_leaves(captured.inputs), tree_leaves(inputs), strict=True):
            if isinstance(fixed, Tensor):
                fixed.copy_(given, non_blocking=True)
        captured.graph.replay()
        left, names = captured.left
        return left.clone(), names

    def _capture(self, inputs: Inputs) -> Graph:
        graph, fixed = torch.cuda.CUDAGraph(), onto(inputs, self._update.device)
        # thread_local, since a thread pins the next inputs meanwhile (``ahead``), which would end a global capture.
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            left = self._run(fixed)
        self._pool = self._pool or graph.pool()
        return Graph(graph, fixed, left)


def _shape(inputs: Inputs) -> Hashable:
    """Shapes of all tensors and whatever else inputs consist of."""
    leaves, structure = tree_flatten(inputs)
    return str(structure), tuple(tuple(one.shape) if isinstance(one, Tensor) else one for one in leaves)


def step_runner(update: Update, shapes: Shapes, steps: int) -> Eager:
    """What takes the steps of a training of ``steps``: captured ones if shapes are rounded up for that."""
    compiles = update.device.type == "cuda" and steps >= COMPILED_FROM
    captures = shapes != NATURAL and steps >= CAPTURED_FROM
    return (Captured if captures else Eager)(update, compiles)
