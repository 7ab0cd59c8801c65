"""Cosines of embeddings, and their correlation with judgements; also defined for degenerate input."""

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]


def cosine(left_ND: Vectors, right_ND: Vectors) -> Floats:
    """Row-wise cosine in float64, shape (N,); 0 where a vector is 0, as in SentEval."""
    left, right = left_ND.astype(np.float64), right_ND.astype(np.float64)
    norms = np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1)
    products = np.einsum("nd,nd->n", left, right)
    cosines: Floats = np.divide(products, norms, out=np.zeros_like(products), where=norms > 0)
    return cosines


def spearman(gold: Floats, predicted: Floats) -> float:
    """Rank correlation, ties averaged; 0 where either side is constant."""
    return pearson(ranks(gold), ranks(predicted))


def pearson(gold: Floats, predicted: Floats) -> float:
    """Linear correlation; 0 where either side is constant."""
    if np.ptp(gold) == 0 or np.ptp(predicted) == 0:
        return 0.0
    return float(np.corrcoef(gold, predicted)[0, 1])


def ranks(values_N: Floats) -> Floats:
    """Ranks from 1, the mean of their ranks for equal values; NaN for all if one is NaN.

    As scipy.stats.rankdata, which takes a second to import and three times as long for a few hundred values.
    """
    order_N = np.argsort(values_N)
    sorted_N = values_N[order_N]
    if np.isnan(sorted_N[-1:]).any():  # NaN is sorted last
        return np.full(len(values_N), np.nan)
    starts_G = np.flatnonzero(
        np.concatenate([[True], sorted_N[1:] != sorted_N[:-1]])
    )  # groups of equal values
    sizes_G = np.diff(starts_G, append=len(values_N))
    ranks_N = np.empty(len(values_N))
    ranks_N[order_N] = np.repeat(starts_G + (sizes_G + 1) / 2, sizes_G)
    return ranks_N
