"""Batches larger than memory: gradient caching.

    u = dL/dh,   dL/dw = sum over chunks of  (du.h)/dw                 (Gao et al. 2021, Equations 5 to 7)

Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup (GradCache), https://arxiv.org/abs/2101.06983.
A first pass encodes the batch chunk by chunk and keeps only the vectors. The loss is computed from all vectors, those
of other processes too, and its gradient by each vector is all that a chunk needs. A second pass encodes each chunk
again, now with its intermediate states, and takes that gradient back to the weights. Only one chunk's states are in
memory at a time. The price is a second forward pass: about 4/3 of a step's time.

The two passes are those of PyTorch's checkpoints, one for each chunk, so loss and backward pass are written as without
chunks. Both passes have the same dropout (``models.dropout.with_one_draw``), which is also that of the whole batch,
because a mask depends on a sentence's number. Methods that look at a whole batch are refused
(``MethodConfig.chunk_errors``).
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.utils.checkpoint import checkpoint

from workflow_scripts.models.dropout import with_one_draw
from workflow_scripts.models.tokens import TokenBatch


def in_chunks(read: Callable[[TokenBatch], Tensor], chunks: Sequence[TokenBatch]) -> Tensor:
    """Return the result of ``read`` for a batch, sentences first, from its chunks."""
    if len(chunks) == 1:
        return read(chunks[0])
    again = with_one_draw(read)
    return torch.cat([checkpoint(again, chunk, use_reentrant=False) for chunk in chunks])
