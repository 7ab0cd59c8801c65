"""Several processes that train one model, a GPU each, started by torchrun; without torchrun there is one.

A rank embeds its share of a step's rows, gathers every rank's vectors, and computes the loss of the joint
batch: negatives, batch statistics and the printed loss are those of one process with the same batch. Each
rank's loss is the whole loss, and the gradient of ``gathered`` sums what all ranks ask of a rank's vectors,
so the mean of the ranks' gradients is the gradient of the joint batch.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
import torch.distributed as dist
from torch import Tensor, nn

from workflow_scripts.errors import ConfigError


@contextmanager
def joined() -> Iterator[None]:
    """Meet the other ranks, if torchrun started any, for as long as the block runs."""
    if "WORLD_SIZE" not in os.environ:
        yield
        return
    backend = "cpu:gloo,cuda:nccl" if torch.cuda.is_available() else "gloo"
    dist.init_process_group(backend)
    try:
        yield
    finally:
        dist.destroy_process_group()


def world() -> int:
    """Number of ranks."""
    return dist.get_world_size() if dist.is_initialized() else 1


def rank() -> int:
    """Number of this one, from 0; only rank 0 writes files."""
    return dist.get_rank() if dist.is_initialized() else 0


def device() -> torch.device:
    """The device of this rank: a GPU of its own, or the CPU."""
    if not torch.cuda.is_available():
        return torch.device("cpu")
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", "0")))


def share(batch_size: int) -> slice:
    """This rank's part of a step's rows; the parts in order are the whole.

    Raises:
        ConfigError: if the batch cannot be dealt out evenly.
    """
    if batch_size % world():
        raise ConfigError(
            f"training.batch_size: {batch_size} rows for {world()} processes. Make it a multiple."
        )
    size = batch_size // world()
    return slice(rank() * size, (rank() + 1) * size)


def gathered(local_BD: Tensor) -> Tensor:
    """Rows of all ranks in order, (world * B, D), with a gradient to every rank; the same without others."""
    if world() == 1:
        return local_BD
    rows_BD: Tensor = _Gather.apply(local_BD)  # type: ignore[no-untyped-call]
    return rows_BD


class _Gather(torch.autograd.Function):
    """Rows of all ranks; the gradient of a rank's rows sums what every rank's loss asks of them."""

    @staticmethod
    def forward(context: Any, local_BD: Tensor) -> Tensor:
        return of_every_rank(local_BD.contiguous()).flatten(0, 1)

    @staticmethod
    def backward(context: Any, gradient_BD: Tensor) -> Tensor:
        total_BD = gradient_BD.clone()
        dist.all_reduce(total_BD)
        return total_BD.chunk(world())[rank()]


def average_gradients(parameters: Iterable[nn.Parameter]) -> None:
    """Set every gradient to its mean over the ranks, in one message."""
    if world() == 1:
        return
    gradients = [parameter.grad for parameter in parameters if parameter.grad is not None]
    flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
    dist.all_reduce(flat)
    flat /= world()
    for gradient, mean in zip(gradients, torch.split(flat, [g.numel() for g in gradients]), strict=True):
        gradient.copy_(mean.view_as(gradient))


def any_rank(answer: bool) -> bool:
    """Whether ``answer`` is true on any rank."""
    if world() == 1:
        return answer
    votes = torch.tensor(int(answer))
    dist.all_reduce(votes, dist.ReduceOp.MAX)
    return bool(votes.item())


def of_every_rank(state: Tensor) -> Tensor:
    """A tensor of every rank, (world, ...), on all of them."""
    if world() == 1:
        return state.unsqueeze(0)
    states = [torch.empty_like(state) for _ in range(world())]
    dist.all_gather(states, state)
    return torch.stack(states)
