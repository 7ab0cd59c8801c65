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


def ranks(values: Floats) -> Floats:
    """The rank of each value, from 1; equal ones share the mean of theirs."""
    from scipy.stats import rankdata  # slow to import, for every training and figure

    found: Floats = rankdata(values)
    return found


def pearson(gold: Floats, predicted: Floats) -> float:
    """Linear correlation; 0 where either side is constant."""
    if np.ptp(gold) == 0 or np.ptp(predicted) == 0:
        return 0.0
    return float(np.corrcoef(gold, predicted)[0, 1])
