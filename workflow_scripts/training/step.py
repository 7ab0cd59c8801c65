"""One step of training: inputs made on the host, and the update that the device computes only from them.

If a GPU's kernels are launched one by one, the GPU is idle for most of a step (BERT-base, 64 sentences: 88%). So a
thread of the host makes a step's inputs while the device computes the step before. After some steps, the whole update
(forward and backward pass, clipping, AdamW) is a CUDA graph for each of the few shapes of inputs, which one call
replays. Long trainings compile the encoder's layers, too. A CPU runs the same functions directly.
"""

import sys
import warnings
from collections import deque
from collections.abc import Callable, Generator, Hashable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import nullcontext
from functools import lru_cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map_only
from transformers import PreTrainedModel

from workflow_scripts.models.backbone import max_position_embeddings
from workflow_scripts.models.contexts import Keys
from workflow_scripts.models.devices import first_line, mixed_precision
from workflow_scripts.models.dropout import DropoutMasks, dropout_keys, keys_of, patched_dropout
from workflow_scripts.models.packed import SITES, can_compile, compiled, packs
from workflow_scripts.models.readouts.base import ReadoutModule
from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.models.tokens import NATURAL, Packing, Shapes, TokenBatch, onto
from workflow_scripts.settings.training import Training
from workflow_scripts.training import ranks
from workflow_scripts.training.objective import Objective

CAPTURED_FROM = 100
"""Minimum number of steps of a training for which capturing pays: it takes a second for each shape (H200)."""
COMPILED_FROM = 640_000
"""Minimum number of sentences that a training encodes for which compiling pays.

It takes 15 to 45 s, and a step of 128 sentences then takes 6 ms less (BERT-base, H200).
"""
MOST_GRAPHS = 12
"""Number of shapes that are captured; steps of other shapes run eagerly."""
ROUNDED = Shapes(tokens=256, width=32)

_NO_SENTENCES = Packing.of(torch.ones(1, 1))

Inputs = tuple[Any, Keys]
"""Inputs of an objective's step, and the step's keys of dropout."""
Results = tuple[Tensor, list[str]]
"""Loss, norm of the gradient and metrics of a step in one tensor, in float64, and the names of the metrics."""


def shapes_for(device: torch.device, module: nn.Module, chunk: int | None) -> Shapes:
    """Return multiples for the shapes of batches: on a GPU larger than 1 if steps of ``module`` can be captured."""
    backbones = [part for part in module.modules() if isinstance(part, PreTrainedModel)]
    reads_padding = any(
        isinstance(part, ReadoutModule) and part.reads == "padded" for part in module.modules()
    )
    single = ranks.world() == 1 and chunk is None
    if device.type == "cpu" or not single or reads_padding or not all(map(packs, backbones)):
        if device.type == "cuda":
            _say("several processes, chunks, or an encoder or readout that is not packed")
        return NATURAL
    limits = [limit for limit in map(max_position_embeddings, backbones) if limit is not None]
    return ROUNDED._replace(longest=min(limits, default=None))


def prepare_inputs(objective: Objective, seed: int, step: int) -> Inputs:
    """Return inputs and keys of a step, on the host."""
    passes = objective.passes + draws_outside(objective.module)
    return objective.inputs(step), keys_of(seed, step, passes=passes, sites=SITES * _depth(objective.module))


@lru_cache(maxsize=1)  # called at every step
def _depth(module: nn.Module) -> int:
    """Return the number of layers of the deepest encoder."""
    models = (part for part in module.modules() if isinstance(part, PreTrainedModel))
    return max((int(model.config.num_hidden_layers) for model in models), default=0)


@lru_cache(maxsize=1)  # called at every step
def draws_outside(module: nn.Module) -> bool:
    """Return whether modules outside of encoders draw random numbers, such as dropout in a method's own head."""
    encoders = (part for part in module.modules() if isinstance(part, TextEncoder | PreTrainedModel))
    inside = {part for encoder in encoders for part in encoder.modules()}
    return any(isinstance(part, nn.Dropout | nn.RReLU) for part in {*module.modules()} - inside)


def prefetch(
    make: Callable[[int], Inputs], device: torch.device, done: int, steps: int
) -> Generator[Inputs, None, None]:
    """Yield inputs of the remaining steps, on the host.

    For a GPU, a thread makes the next step's inputs in pinned memory while a step runs; on a CPU that saves no time.
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
        yield from (inputs.result() for inputs in later)


class TrainStep:
    """The device's half of a step: from inputs to updated weights.

    Raises:
        KeyError: if a rate budget is for an unknown parameter.
    """

    def __init__(self, objective: Objective, settings: Training, steps: int) -> None:
        self.objective, self.settings = objective, settings
        self.device = next(objective.module.parameters()).device
        self._trainable = {name: p for name, p in objective.module.named_parameters() if p.requires_grad}
        budgets = objective.lr_budgets
        self._common = [p for name, p in self._trainable.items() if name not in budgets]
        cycle = range(1, settings.cycle(steps) + 1)
        total = sum(settings.lr(step, steps) for step in cycle) if budgets else 1.0
        groups = [{"params": self._common, "share": 1.0}] + [
            {"params": [self._trainable[name]], "share": budget / total, "weight_decay": 0.0}
            for name, budget in budgets.items()
        ]
        self._outside = onto(_NO_SENTENCES, self.device) if draws_outside(objective.module) else None
        on_gpu = self.device.type == "cuda"
        # PyTorch warns at every eager step, such as the first of a shape.
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

    def begin(self, lr: float) -> None:
        """Set the learning rate of the next step, and training mode, which an evaluation may have switched off."""
        for group in self.optimiser.param_groups:
            if isinstance(group["lr"], Tensor):
                group["lr"].fill_(lr * group["share"])
            else:
                group["lr"] = lr * group["share"]
        self.objective.module.train()

    def __call__(self, inputs: Inputs) -> Results:
        """Update the weights once, and return the step's results."""
        objective_inputs, keys = inputs
        self.optimiser.zero_grad(set_to_none=True)
        with (
            dropout_keys(keys, ranks.rank(), ranks.world()),
            patched_dropout(DropoutMasks(self._outside) if self._outside else None),
            mixed_precision(self.settings.precision, self.device),
        ):
            step = self.objective.loss(objective_inputs)
        step.loss.backward()  # type: ignore[no-untyped-call]
        ranks.average_gradients(self._trainable.values())
        norm = nn.utils.clip_grad_norm_(self._common, self.settings.max_gradient_norm)
        self.optimiser.step()
        results = (step.loss.detach(), norm, *step.metrics.values())
        return torch.stack([value.double() for value in results]), list(step.metrics)


class EagerStep:
    """Steps that run eagerly, with compiled layers if ``compiles``."""

    def __init__(self, update: TrainStep, compiles: bool) -> None:
        self._update, self.compiles = update, compiles

    def __call__(self, inputs: Inputs, lr: float) -> Results:
        """Take a step from inputs on the host, and return its results."""
        self._update.begin(lr)
        return self._run(onto(inputs, self._update.device))

    def _run(self, inputs: Inputs) -> Results:
        with compiled() if self.compiles else nullcontext():
            return self._update(inputs)


class Graph(NamedTuple):
    """A captured update; its inputs and results have fixed addresses."""

    graph: torch.cuda.CUDAGraph
    inputs: Inputs
    results: Results


class CUDAGraphStep(EagerStep):
    """Steps that are captured as CUDA graphs, each when its shape occurs for the second time, and then replayed.

    The first step of a shape runs eagerly, and creates everything that is created at first use: optimiser state,
    compiled layers, workspaces. All steps run on one stream, because no part of a captured backward pass may belong to
    the default stream. Steps that cannot be captured run eagerly, with the same bytes.
    """

    def __init__(self, update: TrainStep, compiles: bool) -> None:
        super().__init__(update, compiles)
        self._stream = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        self._graphs: dict[Hashable, Graph] = {}
        self._most = MOST_GRAPHS
        self._pool: Any = None
        self._taken: dict[Hashable, int] = {}  # bytes that an eager step of a shape takes
        self._pooled = 0  # bytes of the largest captured step; the others share them

    def __call__(self, inputs: Inputs, lr: float) -> Results:
        """Take a step from inputs on the host, and return its results."""
        self._stream.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(self._stream):
            self._update.begin(lr)
            results = self._step(inputs)
        torch.cuda.current_stream().wait_stream(self._stream)
        return results

    def _step(self, inputs: Inputs) -> Results:
        shape = _shape(inputs)
        if shape not in self._graphs and shape in self._taken:
            self._try_capture(shape, inputs)
        if shape not in self._graphs:
            return self._eager(shape, inputs)
        captured = self._graphs[shape]
        for fixed, value in zip(tree_leaves(captured.inputs), tree_leaves(inputs), strict=True):
            if isinstance(fixed, Tensor):
                fixed.copy_(value, non_blocking=True)
        captured.graph.replay()
        values, names = captured.results
        return values.clone(), names

    def _eager(self, shape: Hashable, inputs: Inputs) -> Results:
        """Take a step eagerly, note its memory, and return its results."""
        device = self._update.device
        self._update.optimiser.zero_grad(set_to_none=True)
        torch.cuda.reset_peak_memory_stats(device)
        before = torch.cuda.memory_allocated(device)
        results = self._run(onto(inputs, device))
        self._taken[shape] = torch.cuda.max_memory_allocated(device) - before
        return results

    def _try_capture(self, shape: Hashable, inputs: Inputs) -> None:
        """Capture a step, unless enough graphs exist or its memory is needed; after a failure, capture no more."""
        if len(self._graphs) >= self._most or not self._fits(taken := self._taken[shape]):
            return
        try:
            self._graphs[shape] = self._capture(inputs)
        except Exception as error:  # before anything is computed
            self._most = 0
            self._update.optimiser.zero_grad(set_to_none=True)
            _say(f"{first_line(error)}. The training continues without capture, and takes longer.")
        else:
            self._pooled = max(self._pooled, taken)

    def _fits(self, taken: int) -> bool:
        """Return whether a graph fits into the GPU next to an eager step of the same size, which shares no memory."""
        device = self._update.device
        free, whole = torch.cuda.mem_get_info(device)
        room = free + torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        fits = taken + max(taken, self._pooled) <= room
        if not fits and self._most:
            self._most = 0
            _say(f"two steps of {taken / 1e9:.1f} GB do not fit into the GPU's {whole / 1e9:.0f} GB.")
        return fits

    def _capture(self, inputs: Inputs) -> Graph:
        graph, fixed = torch.cuda.CUDAGraph(), onto(inputs, self._update.device)
        # thread_local: pinning the next inputs in another thread (``prefetch``) would end a global capture.
        with torch.cuda.graph(graph, pool=self._pool, stream=self._stream, capture_error_mode="thread_local"):
            results = self._run(fixed)
        self._pool = self._pool or graph.pool()
        return Graph(graph, fixed, results)


def _say(reason: str) -> None:
    print(f"steps are not captured: {reason}", file=sys.stderr)  # noqa: T201


def _shape(inputs: Inputs) -> Hashable:
    """Return the structure of inputs, with the shapes of all tensors and the values of other leaves."""
    leaves, structure = tree_flatten(inputs)
    return str(structure), tuple(tuple(leaf.shape) if isinstance(leaf, Tensor) else leaf for leaf in leaves)


def step_runner(update: TrainStep, shapes: Shapes, steps: int) -> EagerStep:
    """Return the runner of a training's steps: captured if shapes are rounded up and the training is long enough."""
    pays = update.device.type == "cuda" and steps * _sentences(update.objective) >= COMPILED_FROM
    captures = shapes != NATURAL and steps >= CAPTURED_FROM
    return (CUDAGraphStep if captures else EagerStep)(update, pays and can_compile())


def _sentences(objective: Objective) -> int:
    """Return the number of sentences in the inputs of a step, repeated ones included."""
    parts = tree_leaves(objective.inputs(1), is_leaf=lambda part: isinstance(part, TokenBatch))
    return sum(len(part.ids_BT) for part in parts if isinstance(part, TokenBatch))
