"""Cosines of embeddings, and their correlation with judgements; also defined for degenerate input."""

import numpy as np
from numpy.typing import NDArray

from workflow_scripts.evaluation.embeddings import Vectors

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
    return pearson(_ranks(gold), _ranks(predicted))


def _ranks(values: Floats) -> Floats:
    """Ranks from 1, those of equal values averaged, as of ``scipy.stats``, which takes half a second to import."""
    _, group, sizes = np.unique(values, return_inverse=True, return_counts=True)
    ranks: Floats = (np.cumsum(sizes) - (sizes - 1) / 2)[group]
    return np.where(np.isnan(values), np.nan, ranks)  # so that no correlation comes of what is no number


def pearson(gold: Floats, predicted: Floats) -> float:
    """Linear correlation; 0 where either side is constant."""
    if np.ptp(gold) == 0 or np.ptp(predicted) == 0:
        return 0.0
    return float(np.corrcoef(gold, predicted)[0, 1])
