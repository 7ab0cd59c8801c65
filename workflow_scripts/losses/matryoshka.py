"""A loss at several widths at once, so that an embedding may be cut to its first entries (Matryoshka).

    L = sum over m in M of c_m L(h[1:m]),   c_m = 1, M holds the whole width          (Kusupati et al. 2022, Equation 1)

Matryoshka Representation Learning, https://arxiv.org/abs/2205.13147. All widths have the same weight, as in the paper.
The loss is a sum, as in the paper and in sentence-transformers' MatryoshkaLoss, not a mean: Adam divides by the size of
the gradient anyway, and other terms, such as that of DiffCSE's discriminator, keep their weight relative to the loss of
the whole embedding.
"""

from collections.abc import Callable, Iterator, Sequence

import torch
from torch import Tensor


def at_widths(vectors_xD: Tensor, widths: Sequence[int]) -> Iterator[Tensor]:
    """First entries of vectors at each width, and all of them, whether ``widths`` has D or not."""
    whole = vectors_xD.shape[-1]
    yield from (vectors_xD[..., :width] for width in dict.fromkeys((*widths, whole)))


def matryoshka(loss: Callable[[Tensor], Tensor], vectors_xD: Tensor, widths: Sequence[int]) -> Tensor:
    """Sum of a loss over vectors cut to each of ``widths`` and whole vectors, a scalar."""
    return torch.stack([loss(narrow) for narrow in at_widths(vectors_xD, widths)]).sum()
