"""S2Sent: adaptive fusion of an encoder's last blocks, with gates from a frequency squeeze of all these blocks.

    f = FS(U)                                        U: states of the last N blocks, N x L x D     (Eqs. 2, 10)
    e^(n) = sigmoid(max(0, f W1) W2^(n))                                                              (Eq. 3)
    v = sum_n exp(e^(n)) * u^(n) / sum_n exp(e^(n)), feature by feature                               (Eq. 4)

Zang et al. 2025, https://arxiv.org/abs/2508.18164. All tokens of a sentence have the same weights, so pooling
before the fusion gives the same vector as pooling after it, at 1/L of the cost.

Text and official code disagree in nine points. Each is a setting, and ``readings`` in config/methods.yaml name the
combinations. Defaults follow the text, but divide the frequency squeeze by N L: then a single frequency is the
average, as in Equation 6, and a gate does not depend on a sentence's length. With the text's readings, an embedding
does not depend on its batch. With the code's ``dct: grid`` and ``gate: batch`` it does, and runs have a label.

Frequencies of the block axis that N blocks cannot have (a >= N: 3 and 4 for the three blocks and sixteen frequencies
of Figure 6) are computed on six cells, into which the code pools any number of blocks. ASSUME: a repeated block
should have no frequency other than 0; in Equation 10 as printed, a = 2 of a single block is minus its average. With
three blocks, a = 4 becomes half of its value in Equation 10, which is minus a = 2, and a = 3 is 0 in both.
``dct: printed`` is Equation 10 over N L, ``sum`` is Equation 10; for a < N all three are the same up to N L.

Equation 4 with one branch is the identity: a softmax over one number is 1. The paper's rows "S2Sent (1D SS)"
cannot come from it. ``fusion: average`` runs them as a control, and ``gate: batch`` runs them like the code.

Shape suffixes: B sentences, N blocks, L tokens, D width, R bottleneck, M parts of the features, A frequencies of
the block axis, F frequencies of the token axis, G branches.
"""

import math
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from .base import ReadoutModule, own_masks, weighted_mean

GRID = 6
"""Number of cells into which the official code pools each axis."""

FREQUENCIES = {
    # Pairs of frequencies of the block axis and the token axis. Low-m are the first m. The k-th acts on the k-th of m
    # equal parts of the features, so the order matters. Figure 4 is a grid that shows at which m each pair is added.
    # Pairs that are added together are in the order of its rows.
    "figure": (
        (0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (1, 2), (2, 0), (2, 1),
        (0, 3), (0, 4), (1, 3), (1, 4), (2, 2), (3, 0), (3, 1), (4, 0),
    ),
    # The official code's pairs, after FcaNet: another order from the sixth on, and (0, 5) in place of (1, 4).
    "fcanet": (
        (0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (2, 1), (1, 2),
        (2, 2), (0, 3), (3, 0), (4, 0), (0, 4), (1, 3), (3, 1), (0, 5),
    ),
}  # fmt: skip


def cosines(frequencies: Tensor, length: int | Tensor, positions: Tensor) -> Tensor:
    """Return the DCT-II basis cos(pi f / L (i + 1/2)); the arguments broadcast (Eq. 5)."""
    return torch.cos(math.pi * frequencies / length * (positions + 0.5))


def cells(length: int, device: torch.device) -> Tensor:
    """Return the linear map, (GRID, length), of adaptive average pooling from ``length`` positions to ``GRID``."""
    return F.adaptive_avg_pool1d(torch.eye(length, device=device).unsqueeze(0), GRID)[0].T


def grid_basis(frequencies_A: Tensor, length: int) -> Tensor:
    """Return the official code's orthonormal basis on ``GRID`` cells, applied to ``length`` positions: (A, length)."""
    numbers, device = frequencies_A.unsqueeze(1), frequencies_A.device
    basis = cosines(numbers, GRID, torch.arange(GRID, device=device)) / math.sqrt(GRID)
    return torch.where(numbers > 0, math.sqrt(2) * basis, basis) @ cells(length, device)


def block_basis(frequencies_A: Tensor, blocks: int, dct: str) -> Tensor:
    """Return the weights of the blocks under each frequency, (A, N).

    ``sum``: Equation 5 as printed. ``printed``: divided by N. ``mean``: divided by N, and a frequency that N blocks
    cannot have (f >= N: the basis vanishes or repeats a lower one) is computed on ``GRID`` cells that repeat the
    blocks. A single block is constant on the cells, too. Three blocks have frequencies 0, 1 and 2: as printed, 3
    vanishes and 4 is minus 2; on the cells, 3 also vanishes and 4 is half of that.
    """
    numbers, device = frequencies_A.unsqueeze(1), frequencies_A.device
    basis = cosines(numbers, blocks, torch.arange(blocks, device=device))
    if dct != "mean":
        return basis / blocks if dct == "printed" else basis
    resampled = cosines(numbers, GRID, torch.arange(GRID, device=device)) @ cells(blocks, device) / GRID
    return torch.where(numbers < blocks, basis / blocks, resampled)


def token_basis(frequencies_A: Tensor, mask_BL: Tensor, scaled: bool) -> Tensor:
    """Return the weights of each sentence's tokens under each frequency, (B, A, L); 0 for padding."""
    length_B11 = mask_BL.sum(dim=1).view(-1, 1, 1)
    positions_L = torch.arange(mask_BL.shape[1], device=mask_BL.device)
    basis_BAL = cosines(frequencies_A.unsqueeze(1), length_B11, positions_L) * mask_BL.unsqueeze(1)
    return basis_BAL / length_B11 if scaled else basis_BAL


def squeeze(states_BNLD: Tensor, mask_BL: Tensor, frequencies_A2: Tensor, dct: str) -> Tensor:
    """Return the selected frequencies: each part of the features under its basis function, (B, D) (Eqs. 9 to 11).

    Args:
        states_BNLD: States of the blocks, last block last.
        mask_BL: 1 for a token, 0 for padding; [CLS] and [SEP] are tokens.
        frequencies_A2: Frequencies of the block axis and the token axis, one pair for each part.
        dct: ``mean``: over each sentence's own length, divided by N L; (0, 0) is then the average.
            ``printed``: the same with all frequencies of the blocks as printed (``block_basis``). ``sum``:
            Equation 10 as printed, without the division. ``grid``: both axes, including padding, pooled to 6 x 6 cells
            under an orthonormal basis, as in the official code; depends on the other sentences of the batch.
    """
    batch, blocks, length, width = states_BNLD.shape
    of_blocks_A, of_tokens_A = frequencies_A2.unbind(dim=1)
    if dct == "grid":
        blocks_MN, tokens_ML = grid_basis(of_blocks_A, blocks), grid_basis(of_tokens_A, length)
        tokens_BML = tokens_ML.unsqueeze(0).expand(batch, -1, -1)
    else:
        blocks_MN = block_basis(of_blocks_A, blocks, dct)
        tokens_BML = token_basis(of_tokens_A, mask_BL, dct != "sum")
    parts = states_BNLD.reshape(batch, blocks, length, len(frequencies_A2), -1)
    weights_BMNL = blocks_MN[None, :, :, None] * tokens_BML[:, :, None]
    return torch.einsum("bnlmd,bmnl->bmd", parts, weights_BMNL.to(parts.dtype)).reshape(batch, width)


class Readout(ReadoutModule):
    """Nested selector, from hidden states to one vector."""

    mask_id: Tensor
    mask_counts: Tensor
    frequencies: Tensor

    def __init__(self, width: int, **settings: Any) -> None:
        super().__init__(width, **settings)
        options = self.options = SimpleNamespace(**settings)
        self.blocks = slice(-options.blocks, None) if options.last_block else slice(-options.blocks - 1, -1)
        is_average = options.squeeze == "gap"
        pairs = FREQUENCIES[options.frequency_set][: 1 if is_average else options.frequencies]
        # A buffer: a tensor made of numbers within a step would wait for the GPU, and could not be captured.
        self.register_buffer("frequencies", torch.tensor(pairs), persistent=False)
        self.dct = "mean" if is_average else options.dct
        self.branches = 1 if options.fusion == "average" or options.gate == "linear" else options.blocks
        is_identity = options.gate == "softmax" and self.branches == 1
        without = options.squeeze == "none"
        reads_batch = options.gate == "batch" if without else self.dct == "grid" and not is_identity
        self.reads = "padded" if reads_batch else "all"
        low, high = width // options.reduction, self.branches * width
        if low == 0 or (options.squeeze == "dct" and width % options.frequencies):
            raise ValueError(
                f"readout.reduction and frequencies: one does not divide the width {width}. Lower it."
            )
        self.reduce = nn.Linear(width, low, bias=options.bias)  # W1
        self.activation = nn.ReLU() if options.activation == "relu" else nn.Tanh()
        self.expand = nn.Linear(low, high, bias=options.bias)  # W2^(n) of all branches
        # One BatchNorm for all branches equals one for each, since it normalises feature by feature.
        self.norm = nn.BatchNorm1d(high, eps=1e-6, momentum=0.1) if options.batch_norm else nn.Identity()
        if options.pooling == "mask":
            self.register_buffer("mask_id", torch.tensor(-1))
            self.register_buffer("mask_counts", torch.tensor([0, 0]))

    def read(self, hidden_states: Sequence[Tensor], ids_BL: Tensor, mask_BL: Tensor) -> Tensor:
        """Return the fused and pooled blocks, (B, D), in the precision of the weights.

        An encoder's products may be in bfloat16, but gates start within a thousandth of 1/2, and bfloat16 rounds such
        differences away.
        """
        with torch.autocast(mask_BL.device.type, enabled=False):
            states_BNLD = torch.stack(tuple(hidden_states[self.blocks]), dim=1).to(self.reduce.weight.dtype)
            if self.options.fusion == "average":
                states_BNLD = states_BNLD.mean(dim=1, keepdim=True)
            if self.options.squeeze == "none":
                return self.pool(self.fuse(states_BNLD, self.excite_tokens(states_BNLD)), ids_BL, mask_BL)
            gates_BGD = self.excite(squeeze(states_BNLD, mask_BL, self.frequencies, self.dct))
            return self.fuse(self.pool(states_BNLD, ids_BL, mask_BL), gates_BGD)

    def excite(self, features_BD: Tensor) -> Tensor:
        """Return the gates of every branch in (0, 1), shape (B, G, D) (Eq. 3)."""
        gates = torch.sigmoid(self.norm(self.expand(self.activation(self.reduce(features_BD)))))
        return gates.view(len(features_BD), self.branches, self.width)

    def excite_tokens(self, states_BNLD: Tensor) -> Tensor:
        """Return gates without a squeeze, (B, G, L, D), from each token of a block through the branch of the block.

        ASSUME: the paper says only that fully connected layers act on the hidden states directly (section
        5.1.2). Here, a branch reads its own block, and a single branch the average of the blocks.
        """
        read_BGLD = states_BNLD if self.branches > 1 else states_BNLD.mean(dim=1, keepdim=True)
        low_BGLR = self.activation(self.reduce(read_BGLD))
        weight_GDR = self.expand.weight.view(self.branches, self.width, -1)
        gates_BGLD = torch.einsum("bglr,gdr->bgld", low_BGLR, weight_GDR)
        if self.expand.bias is not None:
            gates_BGLD = gates_BGLD + self.expand.bias.view(self.branches, 1, self.width)
        return torch.sigmoid(gates_BGLD)

    def fuse(self, branches: Tensor, gates: Tensor) -> Tensor:
        """Return the sum of the blocks, (B, N, ..., D), weighted by gates, (B, G, ..., D).

        ``softmax``: Eq. 4. ``batch``: exp(e) over its sum over branches, sentences and features, as in the
        official code: one number for a whole batch. ``linear``: e * U, the average of the blocks under one
        gate without adaptive weights (appendix C).
        """
        if self.options.gate == "softmax":
            return (gates.softmax(dim=1) * branches).sum(dim=1)
        if self.options.gate == "batch":
            weights = gates.exp()
            return (weights / weights.sum() * branches).sum(dim=1)
        return gates.squeeze(1) * branches.mean(dim=1)

    def pool(self, states: Tensor, ids_BL: Tensor, mask_BL: Tensor) -> Tensor:
        """Return the average of the tokens, the first token, or [MASK]: (B, ..., L, D) to (B, ..., D)."""
        if self.options.pooling == "cls":
            return states.select(-2, 0)
        weight_BL = mask_BL
        if self.options.pooling == "mask":
            weight_BL = own_masks(ids_BL, mask_BL, self.mask_id, self.mask_counts)
        return weighted_mean(states, weight_BL)
