"""Processes that train one model, each on its own GPU, started by torchrun; without torchrun a single process.

Each rank embeds its part of a step's rows, gathers the vectors of all ranks, and computes the loss of the whole batch:
negatives and the logged loss are the same as in one process with the same batch. Every rank computes the full loss, and
the backward pass of ``gathered`` sums the gradients from all ranks for each rank's vectors, so the mean of the ranks'
gradients is the gradient of the whole batch.

Exceptions, computed per rank: BatchNorm, DiffCSE's masks, dropout of bare templates.
"""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from workflow_scripts.models.devices import finds_gpu


@contextmanager
def joined() -> Iterator[None]:
    """Join the process group inside the block, if torchrun has started one."""
    if "WORLD_SIZE" not in os.environ:
        yield
        return
    if torch.cuda.is_available():
        dist.init_process_group("cpu:gloo,cuda:nccl", device_id=device())
    else:
        dist.init_process_group("gloo")
    try:
        yield
    finally:
        dist.destroy_process_group()


def world() -> int:
    """Return the number of ranks."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Return the number of this rank, from 0; only rank 0 writes files."""
    return dist.get_rank() if dist.is_initialized() else 0


def device() -> torch.device:
    """Return the device of this rank: its own GPU, which becomes PyTorch's current one, or the CPU.

    Raises:
        ConfigError: as ``models.devices.finds_gpu``.
    """
    if not finds_gpu("training"):
        return torch.device("cpu")
    gpu = torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))
    torch.cuda.set_device(gpu)  # otherwise code without a device would use the first GPU in every rank
    return gpu


def gathered(local_BD: Tensor) -> Tensor:
    """Return rows of all ranks in the batch's order, (world * B, D), differentiable; with one rank, its own rows."""
    if world() == 1:
        return local_BD
    rows_BD: Tensor = _Gather.apply(local_BD)  # type: ignore[no-untyped-call]
    return rows_BD


class _Gather(torch.autograd.Function):
    """Rows of all ranks; the gradient of a rank's rows is summed over the losses of all ranks."""

    @staticmethod
    def forward(context: Any, local_BD: Tensor) -> Tensor:
        local_BD = local_BD.contiguous()
        rows = [torch.empty_like(local_BD) for _ in range(world())]
        dist.all_gather(rows, local_BD)
        return torch.stack(rows, dim=1).flatten(0, 1)

    @staticmethod
    def backward(context: Any, gradient_BD: Tensor) -> Tensor:
        total_BD = gradient_BD.clone()
        dist.all_reduce(total_BD)
        return total_BD[rank() :: world()]


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Set every gradient to its mean over the ranks, in one communication."""
    if world() == 1:
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    dist.all_reduce(flat)
    flat /= world()
    for gradient, mean in zip(gradients, torch.split(flat, [g.numel() for g in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def any_rank(*answers: bool) -> Sequence[bool]:
    """Return whether each answer is true on any rank."""
    if world() == 1:
        return answers
    votes = torch.tensor([int(answer) for answer in answers])
    dist.all_reduce(votes, dist.ReduceOp.MAX)
    return [bool(vote) for vote in votes.tolist()]
