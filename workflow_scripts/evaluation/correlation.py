"""Cosines of embeddings, and their correlation with judgements, also for degenerate input."""

import numpy as np

from workflow_scripts.arrays import Floats, Vectors

_DECIMALS = 9
"""Decimals to which cosines are rounded.

Sums in float64 are wrong by at most 3e-14 (widths up to 30,000, measured in extended precision). The closest two
different cosines of STS12 to STS15 and STS-B with MiniLM are 5e-8 apart, and float32 vectors give cosines to 2e-7.
"""


def tied(values_N: Floats) -> Floats:
    """Return values rounded to 9 decimals, which makes values tie that differ only by the order of sums.

    Otherwise rounding errors, which depend on the processor, decide the ranks of equal values. With MiniLM, STS12 has
    79 pairs of equal vectors: Spearman is .723676, and was .72365 on one machine and .72368 on another.
    """
    return np.round(values_N, _DECIMALS)


def cosine(left_ND: Vectors, right_ND: Vectors) -> Floats:
    """Return row-wise cosines, shape (N,), which tie if equal; 1 for equal vectors, 0 for a zero vector (SentEval)."""
    left, right = left_ND.astype(np.float64), right_ND.astype(np.float64)
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    products = np.einsum("nd,nd->n", left, right)
    return tied(np.divide(products, norms, out=np.zeros_like(products), where=norms > 0))


def spearman(gold: Floats, predicted: Floats) -> float:
    """Return the rank correlation, with averaged ties; 0 if either side is constant."""
    return pearson(ranks(gold), ranks(predicted))


def pearson(gold: Floats, predicted: Floats) -> float:
    """Return the linear correlation; 0 if either side is constant."""
    if np.ptp(gold) == 0 or np.ptp(predicted) == 0:
        return 0.0
    return float(np.corrcoef(gold, predicted)[0, 1])


def ranks(values_N: Floats) -> Floats:
    """Return ranks from 1, averaged over equal values; all NaN if a value is NaN.

    The result is that of scipy.stats.rankdata, which takes a second to import.
    """
    if np.isnan(values_N).any():
        return np.full(len(values_N), np.nan)
    _, group_N, sizes_G = np.unique(values_N, return_inverse=True, return_counts=True)
    last_G = np.cumsum(sizes_G)  # the last rank of each group of equal values
    means_G: Floats = last_G - (sizes_G - 1) / 2
    return means_G[group_N]
