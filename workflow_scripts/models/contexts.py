"""State of the block of code around a forward pass: the only state of this process that models read.

A forward pass is not called by its user: Transformers' layers, hooks, ``torch.compile``, a captured CUDA graph and
PyTorch's checkpointing call the layers in between, and pass on no argument of ours. So the keys of dropout, and the way
to compute layers, are those of the innermost block around the pass. They are plain lists, and not context variables: on
a GPU, PyTorch recomputes chunks in another thread, where context variables are not set. No two threads run passes at
once.

``models.dropout`` and ``models.packed`` have the context managers; nothing else writes here.
"""

from dataclasses import dataclass
from typing import NamedTuple

from torch import Tensor


class Keys(NamedTuple):
    """Keys of a step's passes, 64 bits each, as int64; made on the host."""

    passes_P: Tensor
    sites_PK: Tensor
    """A key for each site of a packed encoder at which it drops values."""


@dataclass
class Draws:
    """The current keys, the process that draws by them, and the number of passes that have begun."""

    keys: Keys
    rank: int = 0
    ranks: int = 1
    passes: int = 0


DRAWS: list[Draws] = []
"""An entry for each block of ``dropout.dropout_keys``."""
UNPACKED: list[bool] = []
"""An entry for each block of ``packed.unpacked``."""
COMPILING: list[bool] = []
"""An entry for each block of ``packed.compiled``."""
COMPILER_FAILURES: list[str] = []
"""Reasons why compilation has stopped in this process."""
