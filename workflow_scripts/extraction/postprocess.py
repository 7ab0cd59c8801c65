"""Post-processing of sentence vectors, fitted on the task's own vectors or on those of Wikitext.

    zscore            (x - mean) / sd per feature; a feature that does not vary becomes 0
    quantile_uniform  each feature mapped to its quantile, 0 to 1, as in scikit-learn's QuantileTransformer
    whiten            mean 0, covariance I, as in scikit-learn's PCA(whiten=True), without directions of no variance
    abtt              all but the top d principal directions (Mu and Viswanath 2018) of sentence vectors
    normalise         length 1

Stankevicius and Lukosevicius 2025, section 3.4. Unless ``fit`` is wikitext (the paper's superscript W), fits are
transductive. ASSUME: they use every text of the task as often as it occurs, both sides of pairs; for quantiles,
scikit-learn draws a sample of more than 100,000. Quantiles follow its formula with one sort per feature and, if no
quantile repeats, one interpolation instead of two. Values that several post-processings of the same vectors need, such
as their principal directions, are computed once.

Shape suffixes: U distinct vectors, N vectors with repetitions, D width, Q quantiles, K directions.
"""

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from workflow_scripts.arrays import Floats, Vectors
from workflow_scripts.settings.extraction import Abtt, Plain, Postprocessing, Quantile

Fit = dict[str, NDArray[np.float32]]
"""Fitted vectors and matrices by name."""

_NO_VARIANCE = 1e-10
"""Fraction of the largest eigenvalue below which a direction has no variance: float32 noise squared."""


class FittedSample:
    """Vectors for fits and transformations, with cached values that several post-processings need.

    Args:
        vectors_UD: The distinct vectors, at least one.
        occurrences_N: The vectors to fit, in order, as indices of distinct vectors; None to use each of these once.
    """

    def __init__(self, vectors_UD: Vectors, occurrences_N: NDArray[np.int64] | None = None) -> None:
        self.vectors_UD = vectors_UD
        self._occurrences_N = occurrences_N

    @cached_property
    def repeated(self) -> Vectors:
        """Return the vectors with repetitions."""
        return self.vectors_UD if self._occurrences_N is None else self.vectors_UD[self._occurrences_N]

    @cached_property
    def mean(self) -> Floats:
        """Return the mean of the vectors with repetitions."""
        mean_D: Floats = self.repeated.mean(axis=0, dtype=np.float64)
        return mean_D

    @cached_property
    def principal(self) -> tuple[Floats, Floats]:
        """Return variances (D,), largest first, and their principal directions as columns (D, D)."""
        centred_ND = self.repeated - self.mean
        covariance_DD = centred_ND.T @ centred_ND / max(len(centred_ND) - 1, 1)
        variances, directions = np.linalg.eigh(covariance_DD)
        return np.maximum(variances[::-1], 0), directions[:, ::-1]


def fit(settings: Postprocessing, sample: FittedSample) -> Fit:
    """Return a post-processing fitted to vectors."""
    if isinstance(settings, Plain):
        return {}
    if isinstance(settings, Quantile):
        return {"references_DQ": _quantiles(sample.repeated, settings.quantiles)}
    if settings.kind == "zscore":
        scale_D = _inverse(sample.repeated.std(axis=0, dtype=np.float64))
        return _fit_of(mean_D=sample.mean, scale_D=scale_D)
    variances, directions_DK = sample.principal
    varied = variances > _NO_VARIANCE * max(variances[0], np.finfo(np.float64).tiny)
    if isinstance(settings, Abtt):
        # If no variance is left, an identity leaves exact zeros, and not the rounding errors of a projection.
        left = settings.directions < varied.sum()
        top_DK = directions_DK[:, : settings.directions] if left else np.eye(len(directions_DK))
        return _fit_of(mean_D=sample.mean, top_DK=top_DK)
    scaled_DK = directions_DK[:, varied] / np.sqrt(variances[varied])
    return _fit_of(mean_D=sample.mean, whitening_DK=scaled_DK)


def apply(settings: Postprocessing, fitted: Fit, sample: FittedSample) -> Vectors:
    """Return the distinct vectors, transformed by a fit to these or others; whitening may return fewer columns."""
    vectors_UD = sample.vectors_UD
    if settings.kind == "none":
        return vectors_UD
    if settings.kind == "normalise":
        unit_UD: Vectors = vectors_UD * _inverse(np.linalg.norm(vectors_UD, axis=1, keepdims=True))
        return unit_UD
    if isinstance(settings, Quantile):
        return _to_quantiles(vectors_UD, fitted["references_DQ"])
    centred_UD: Any = vectors_UD - fitted["mean_D"]
    if settings.kind == "zscore":
        result_UD = centred_UD * fitted["scale_D"]
    elif isinstance(settings, Abtt):
        top_DK = fitted["top_DK"]
        result_UD = centred_UD - (centred_UD @ top_DK) @ top_DK.T
    else:
        result_UD = centred_UD @ fitted["whitening_DK"]
    return np.asarray(result_UD, dtype=np.float32)


def caveat(settings: Postprocessing, fitted: Fit, sample: FittedSample, result_UD: Vectors) -> str:
    """Return a note if scores of the result cannot depend on the vectors; empty for others."""
    if len(result_UD) > 1 and not np.ptp(result_UD, axis=0).any():
        return "all texts have the same vector"
    if settings.kind != "whiten" or settings.fit != "task":
        return ""
    width, directions = fitted["whitening_DK"].shape
    # After whitening, points that span one direction less than their number have distances that only depend on how
    # often each occurs.
    if directions < width or len(result_UD) == width + 1:
        different = len({vector_D.tobytes() for vector_D in sample.vectors_UD})
        if different == directions + 1:
            problem = f"{different} different vectors whitened in {directions} directions"
            return f"{problem}: distances do not depend on the vectors"
    return ""


def _fit_of(**parts: NDArray[np.floating]) -> Fit:
    return {name: np.ascontiguousarray(part, dtype=np.float32) for name, part in parts.items()}


def _inverse(values: NDArray[Any]) -> NDArray[Any]:
    """Return 1 / value; 0 if the value is 0 up to the rounding error of a mean."""
    varied = values > 1e-12 * values.max(initial=0)
    inverse: NDArray[Any] = np.divide(1, values, out=np.zeros_like(values), where=varied)
    return inverse


def _quantiles(vectors_ND: Vectors, quantiles: int) -> NDArray[np.float32]:
    rows_N = np.arange(len(vectors_ND))
    places_Q = np.linspace(0, rows_N[-1], min(quantiles, len(rows_N)))
    references_DQ = [np.interp(places_Q, rows_N, rising_N) for rising_N in np.sort(vectors_ND.T, axis=1)]
    return np.array(references_DQ, dtype=np.float32)


def _to_quantiles(vectors_UD: Vectors, references_DQ: NDArray[np.float32]) -> Vectors:
    """Return the quantile of each entry: the middle of the range of repeated references, 0 and 1 beyond the ends."""
    result_DU = np.empty_like(vectors_UD.T, order="C")
    places_Q = np.linspace(0, 1, references_DQ.shape[1])
    for values_U, references_Q, result_U in zip(vectors_UD.T, references_DQ, result_DU, strict=True):
        highest_U = np.interp(values_U, references_Q, places_Q)
        lowest_U = -np.interp(-values_U, -references_Q[::-1], -places_Q[::-1])
        result_U[:] = (lowest_U + highest_U) / 2
        result_U[values_U >= references_Q[-1]] = 1
        result_U[values_U <= references_Q[0]] = 0
    return np.ascontiguousarray(result_DU.T)
