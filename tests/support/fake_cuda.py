"""Steps, encoding and the one-pass study on tensors that are on a GPU and have no values.

``python -m tests.support.fake_cuda LIBRARY FAMILY NAME ...`` runs what is named, over a tiny encoder of a family, on FakeTensors
of the device cuda. It prints a line of JSON for each: its name, and null or the first operation that a GPU would have
to wait for, that draws from its generator, that has a tensor of the host, or that has no deterministic kernel. It needs
PyTorch's build without CUDA, and a process of its own, since ``fake_cuda.cpp`` must be loaded before PyTorch.
"""

import ctypes
import sys

if __name__ == "__main__":
    ctypes.CDLL(sys.argv[1], mode=ctypes.RTLD_GLOBAL)

import json
import tempfile
import warnings
from collections.abc import Callable
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only

from tests.support import small_methods
from tests.support.toy_objectives import objective_of, shapes_of
from tests.support.toys import training_of, write_random_encoder
from workflow_scripts.extraction.averages import sum_states
from workflow_scripts.extraction.representations import pool_layers
from workflow_scripts.models import encoding
from workflow_scripts.models.backbone import load_backbone, load_tokenizer
from workflow_scripts.models.tokens import tokenise
from workflow_scripts.training.objective import LossOutput
from workflow_scripts.training.step import TrainStep, prepare_inputs

GPU = torch.device("cuda", 0)
KNOWN_OF = "2.13"
"""The version of PyTorch whose kernels were looked up: ATen's sources, and torch.use_deterministic_algorithms."""
DETERMINISTIC = {
    "no numbers are computed": (
        "_to_copy", "_unsafe_view", "arange", "cat", "copy_", "diagonal_backward", "empty", "empty_like", "eye", "fill_",
        "full_like", "index_fill", "masked_fill_", "new_empty_strided", "new_full", "new_zeros", "ones", "ones_like", "promote_types",
        "scalar_tensor", "select_backward", "slice_backward", "stack", "zeros", "zeros_like",
    ),
    "rows are read": ("embedding", "gather", "index.Tensor", "index_select"),
    "each sum is taken by one thread block, or by cuBLAS with a workspace of its own": (
        "_adaptive_avg_pool2d", "_log_softmax", "_log_softmax_backward_data", "_safe_softmax", "_softmax",
        "_softmax_backward_data", "addmm", "amax", "argmax", "baddbmm", "bmm", "linalg_vector_norm", "max", "mean", "mm", "mse_loss",
        "mse_loss_backward", "native_batch_norm", "native_batch_norm_backward", "native_layer_norm",
        "native_layer_norm_backward", "nll_loss_backward", "nll_loss_forward", "std", "sum",
    ),
    "integers are summed": ("cumsum",),
    "rows are sorted first in deterministic mode": (
        "embedding_dense_backward", "index_add", "index_add_", "index_copy", "index_put", "scatter.src",
    ),
    "element by element, without the mark": ("_foreach_add_", "_fused_adamw_", "floor_divide", "log_sigmoid_forward"),
}  # fmt: skip
"""Operations other than views and element-wise ones, by the reason for which they give the same bytes each time."""
_KNOWN = {name for names in DETERMINISTIC.values() for name in names}
WAITS = (
    "_local_scalar_dense",
    "nonzero",
    "masked_select",
    "_unique2",
    "unique_dim",
    "unique_consecutive",
    "equal",
)
"""Operations whose result the host needs before it can go on."""
COPIES = ("_to_copy",)
"""Operations that copy between host and GPU."""
UNIMPLEMENTED = ("_fused_adamw_",)
"""Operations that FakeTensor cannot compute; they only change their arguments."""


class Refused(Exception):  # noqa: N818  (a finding)
    """An operation that a captured step must not have."""


class Watching(TorchDispatchMode):
    """Refuses operations for which a GPU would wait, or whose results it could not repeat.

    Args:
        whole: Whether all work is the GPU's, as in a captured step. Else the host may compute, and copy what it has
            made to the GPU and back, as long as it does not wait for the copy.
    """

    def __init__(self, *, whole: bool) -> None:
        super().__init__()
        self._whole = whole
        self.on_gpu = 0

    def __torch_dispatch__(self, op: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        given = [leaf for leaf in tree_leaves((args, kwargs)) if isinstance(leaf, Tensor)]
        device = kwargs.get("device") or torch.device("cpu")
        if op.namespace in (
            "profiler",
            "prim",
        ):  # marks of the optimiser's step; questions without a tensor's value
            return op(*args, **kwargs)
        if not (self._whole or device.type == "cuda" or any(isinstance(one, FakeTensor) for one in given)):
            with unset_fake_temporarily():
                return op(*args, **kwargs)
        name = op._schema.name.removeprefix("aten::")
        if refusal := self._refusal(op, name, args, kwargs):
            raise Refused(f"{name}: {refusal}")
        if name in COPIES and not isinstance(args[0], FakeTensor):  # of the host
            made = torch.empty(args[0].shape, dtype=kwargs.get("dtype") or args[0].dtype, device=device)
        else:
            made = None if name in UNIMPLEMENTED else op(*args, **kwargs)
        of_host = [one for one in (*given, *tree_leaves(made)) if isinstance(one, Tensor) and not one.is_cuda]
        if of_host and (self._whole or name not in COPIES):
            raise Refused(f"{name}: has a tensor of the host, of shape {tuple(of_host[0].shape)}")
        self.on_gpu += 1
        return made

    def _refusal(self, op: Any, name: str, args: Any, kwargs: Any) -> str | None:
        if name in WAITS:
            return "the host waits for the value of a tensor"
        at_test = name == "rrelu_with_noise" and not (args[4:5] or (False,))[0]
        if torch.Tag.nondeterministic_seeded in op.tags and not at_test:
            return "draws from the GPU's generator"
        device = kwargs.get("device")
        moves = name in COPIES and device is not None and device.type != args[0].device.type
        if moves and not kwargs.get("non_blocking"):
            return "the host waits for a copy"
        if name == "cumsum" and args[0].is_floating_point():
            return "no deterministic kernel of real numbers"
        if at_test:
            return None
        named = {name, f"{name}.{op._schema.overload_name}"}
        if not (op.is_view or torch.Tag.pointwise in op.tags or named & _KNOWN):
            return f"no deterministic kernel is known (PyTorch {KNOWN_OF})"
        return None


class Card:
    """Moves what a step reads to the GPU that computes nothing."""

    def __init__(self) -> None:
        self.mode = FakeTensorMode(allow_non_fake_inputs=True)
        self._moved: dict[int, tuple[Tensor, Tensor]] = {}

    def tensor(self, real: Tensor) -> Tensor:
        """A tensor without values; the same one each time."""
        if id(real) not in self._moved:
            with self.mode:
                fake = self.mode.from_tensor(real.detach()).to(GPU)
            fake = nn.Parameter(fake, real.requires_grad) if isinstance(real, nn.Parameter) else fake
            self._moved[id(real)] = real, fake
        return self._moved[id(real)][1]

    def tree(self, tree: Any) -> Any:
        """Nested tuples of tensors."""
        return tree_map_only(Tensor, self.tensor, tree)

    def module(self, module: nn.Module) -> None:
        """All weights and buffers of a module."""
        for part in module.modules():
            for tensors in (part._parameters, part._buffers):
                tensors.update({key: self.tensor(one) for key, one in tensors.items() if one is not None})

    def objective(self, objective: Any) -> None:
        """All modules of an objective and of those underneath, and tensors that they have made before the first step."""
        for name, value in vars(objective).items():
            if isinstance(value, nn.Module):
                self.module(value)
            elif isinstance(value, Tensor):
                setattr(objective, name, self.tensor(value))
            elif name == "under":
                self.objective(value)


# What is watched


def step_of(folder: Path, name: str) -> None:
    """Take a step of a method or reading, as a long training takes it."""
    objective = objective_of(folder, name, shapes_of(name))
    inputs = prepare_inputs(objective, 1, 1)
    card = Card()
    card.objective(objective)
    with card.mode:
        update, inputs = (
            TrainStep(objective, training_of(small_methods.SIZE, precision="bfloat16"), 2),
            card.tree(inputs),
        )
        update.begin(1e-3)
        with Watching(whole=True):
            results, _names = update(inputs)
    assert results.is_cuda


def vectors_of(folder: Path, name: str) -> None:
    """Encode sentences by a readout."""
    encoder = small_methods.encoder_with(folder, small_methods.readouts()[name])
    card = Card()
    card.module(encoder)
    with card.mode, Watching(whole=False):
        encoder.encode(small_methods.TEXTS, small_methods.SIZE.tokens)


def teacher_of(folder: Path, name: str) -> None:
    """Encode sentences by a trained run of a method, such as the two encoders of a teacher."""
    made = small_methods.made(folder, small_methods.with_members(folder, small_methods.readings()[name]))
    card = Card()
    card.module(made.encoder)
    with card.mode, Watching(whole=False):
        made.encoder.encode(small_methods.TEXTS, small_methods.SIZE.tokens)


def study_of(folder: Path, precision: Any) -> None:
    """Average and pool hidden states in one pass, as the study without training."""
    backbone, tokenizer = (
        load_backbone(small_methods.bert(folder)),
        load_tokenizer(small_methods.bert(folder)),
    )
    text = tokenise(tokenizer, small_methods.TEXTS, small_methods.SIZE.tokens)
    weights = {"plain": np.ones(len(text.ids), np.float32)}
    card = Card()
    card.module(backbone)
    with card.mode, Watching(whole=False):
        sum_states(backbone, text, 8, precision)
        pool_layers(backbone, text, weights, [("1", "plain"), ("1+2", "plain")], precision)


FAULTS: dict[str, Callable[[Tensor], Any]] = {
    "item": lambda loss: loss.item(),
    "if": lambda loss: bool(loss > 0),
    "tensor": lambda loss: torch.tensor([1.0], device=loss.device),
    "rand": lambda loss: torch.rand(2, device=loss.device),
    "dropout": lambda loss: torch.dropout(loss, 0.1, True),
    "host": lambda loss: loss + torch.ones(2),
    "copied": lambda loss: loss.to("cpu", non_blocking=True),
    "mask": lambda loss: loss[loss > 0],
    "kernel": lambda loss: loss.new_zeros(2).float().cumsum(0),
    "unknown kernel": lambda loss: torch.logcumsumexp(loss.new_zeros(2), 0),
}
"""What must not be in a step."""


def faulty_step_of(folder: Path, fault: str) -> None:
    """Take a step of SimCSE with a fault in it."""
    loss = small_methods.load_method("simcse").Objective.loss

    def with_fault(self: Any, inputs: Any) -> LossOutput:
        left = loss(self, inputs)
        FAULTS[fault](left.loss)
        return left

    small_methods.load_method("simcse").Objective.loss = with_fault
    try:
        step_of(folder, "simcse")
    finally:
        small_methods.load_method("simcse").Objective.loss = loss


WATCHED = {
    "step": step_of,
    "encode": vectors_of,
    "teacher": teacher_of,
    "study": study_of,
    "fault": faulty_step_of,
}


class Event:
    """Stands in for a CUDA event; nothing has to be waited for."""

    def record(self) -> None:
        """Do nothing."""

    def synchronize(self) -> None:
        """Do nothing."""


def pretend() -> None:
    """Replace the few functions that look for a GPU, or need values."""
    torch.cuda.amp.common.amp_definitely_not_available = lambda: False
    torch.cuda.is_bf16_supported = lambda **_how: True
    torch.cuda.Event = Event
    # Outside of inference mode, composite operations are seen by their parts.
    torch.inference_mode = lambda mode=True: torch.no_grad() if mode else nullcontext()
    encoding.SENTENCES_AT_ONCE = 10
    torch.cuda.get_device_name = lambda _device: "fake"
    Tensor.pin_memory = lambda self: self
    FakeTensor.numpy = lambda self: np.zeros(self.shape, np.float32)


def main(family: str, names: list[str]) -> None:
    """Print what is refused of each."""
    warnings.filterwarnings("ignore")
    torch.use_deterministic_algorithms(True)
    torch.utils.deterministic.fill_uninitialized_memory = False
    pretend()
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        write_random_encoder(folder, small_methods.SIZE, family, "bert")
        for name in names:
            work, case = name.split(" ", 1)
            try:
                WATCHED[work](folder, case)
                found = None
            except Refused as refused:
                found = str(refused)
            print(json.dumps([name, found]), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[2], sys.argv[3:])
