"""Post-processing of sentence vectors, fitted on the task's own vectors or on those of Wikitext.

    zscore            (x - mean) / sd per feature; a feature that does not vary becomes 0
    quantile_uniform  each feature mapped to its quantile, 0 to 1, as in scikit-learn's QuantileTransformer
    whiten            mean 0, covariance I, as in scikit-learn's PCA(whiten=True), without directions of no variance
    abtt              all but the top d principal directions (Mu and Viswanath 2018), here of sentence vectors
    normalise         length 1

Stankevicius and Lukosevicius 2025, section 3.4. Unless ``fit`` is wikitext (the paper's superscript W), fits are
transductive. ASSUME: they use every text of the task as often as it occurs, both sides of pairs. Quantiles follow
scikit-learn's formula with one sort per feature and, where no quantile repeats, one interpolation instead of two.

Shape suffixes: N vectors fitted on, M vectors transformed, D width, Q quantiles, K directions.
"""

from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from workflow_scripts.config import Settings

Vectors = NDArray[np.float32]
Floats = NDArray[np.float64]
Fit = dict[str, NDArray[np.float32]]
"""What was fitted, by name: vectors and matrices."""

FitOn = Literal["task", "wikitext"]

_NO_VARIANCE = 1e-10
"""A direction whose eigenvalue is below this fraction of the largest has no variance: float32 noise squared."""


class Plain(Settings):
    """No post-processing, or length 1: neither is fitted."""

    kind: Literal["none", "normalise"]
    label: str = Field(description="Name in tables; empty for none.")
    fit: Literal["task"]


class Learnt(Settings):
    """Mean and spread, or mean and principal directions."""

    kind: Literal["zscore", "whiten"]
    label: str
    fit: FitOn


class Abtt(Settings):
    """All but the top principal directions."""

    kind: Literal["abtt"]
    label: str
    fit: FitOn
    directions: int = Field(ge=0, description="Principal directions to remove; the paper tried up to 100.")


class Quantile(Settings):
    """Quantiles of every feature."""

    kind: Literal["quantile_uniform"]
    label: str
    fit: FitOn
    quantiles: int = Field(
        ge=2, description="Points of each feature's distribution; fewer where N is smaller."
    )
    subsample: int = Field(
        gt=0, description="Most vectors to fit on; scikit-learn's default was 100,000 until 1.5, then 10,000."
    )
    seed: int = Field(ge=0, description="Seed of the subsample.")


Postprocessing = Annotated[Plain | Learnt | Abtt | Quantile, Field(discriminator="kind")]


def fit(settings: Postprocessing, vectors_ND: Vectors) -> Fit:
    """Fit a post-processing to vectors of shape (N, D), N at least 1."""
    if isinstance(settings, Plain):
        return {}
    if isinstance(settings, Quantile):
        return {"references_DQ": _quantiles(vectors_ND, settings)}
    mean_D = vectors_ND.mean(axis=0, dtype=np.float64)
    if settings.kind == "zscore":
        return _fit_of(mean_D=mean_D, scale_D=_inverse(vectors_ND.std(axis=0, dtype=np.float64)))
    variances, directions_DK = _principal(vectors_ND, mean_D)
    if isinstance(settings, Abtt):
        return _fit_of(mean_D=mean_D, top_DK=directions_DK[:, : settings.directions])
    varied = variances > _NO_VARIANCE * max(variances[0], np.finfo(np.float64).tiny)
    scaled_DK = directions_DK[:, varied] / np.sqrt(variances[varied])
    return _fit_of(mean_D=mean_D, whitening_DK=scaled_DK)


def apply(settings: Postprocessing, fitted: Fit, vectors_MD: Vectors) -> Vectors:
    """Transform vectors of shape (M, D) by what was fitted; whitening may return fewer columns."""
    if settings.kind == "none":
        return vectors_MD
    if settings.kind == "normalise":
        unit_MD: Vectors = vectors_MD * _inverse(np.linalg.norm(vectors_MD, axis=1, keepdims=True))
        return unit_MD
    if isinstance(settings, Quantile):
        return _to_quantiles(vectors_MD, fitted["references_DQ"])
    centred_MD: Any = vectors_MD - fitted["mean_D"]
    if settings.kind == "zscore":
        result_MD = centred_MD * fitted["scale_D"]
    elif isinstance(settings, Abtt):
        top_DK = fitted["top_DK"]
        result_MD = centred_MD - (centred_MD @ top_DK) @ top_DK.T
    else:
        result_MD = centred_MD @ fitted["whitening_DK"]
    return np.asarray(result_MD, dtype=np.float32)


def _fit_of(**parts: NDArray[np.floating]) -> Fit:
    return {name: np.ascontiguousarray(part, dtype=np.float32) for name, part in parts.items()}


def _inverse(values: NDArray[Any]) -> NDArray[Any]:
    """1 / value; 0 where the value is 0 up to the rounding error of a mean."""
    varied = values > 1e-12 * values.max(initial=0)
    inverse: NDArray[Any] = np.divide(1, values, out=np.zeros_like(values), where=varied)
    return inverse


def _principal(vectors_ND: Vectors, mean_D: Floats) -> tuple[Floats, Floats]:
    """Variances (ddof 1, largest first) and directions (D, D) of the covariance."""
    centred_ND = vectors_ND - mean_D
    covariance_DD = centred_ND.T @ centred_ND / max(len(vectors_ND) - 1, 1)
    variances, directions = np.linalg.eigh(covariance_DD)
    return np.maximum(variances[::-1], 0), directions[:, ::-1]


def _quantiles(vectors_ND: Vectors, settings: Quantile) -> NDArray[np.float32]:
    if len(vectors_ND) > settings.subsample:
        chosen = np.random.default_rng(settings.seed).choice(
            len(vectors_ND), settings.subsample, replace=False
        )
        vectors_ND = vectors_ND[np.sort(chosen)]
    sorted_DN = np.sort(vectors_ND.T, axis=1)
    count = min(settings.quantiles, len(vectors_ND))
    places_Q = np.linspace(0, len(vectors_ND) - 1, count)
    below_Q = places_Q.astype(np.int64)
    above_Q = np.minimum(below_Q + 1, len(vectors_ND) - 1)
    fraction_Q = (places_Q - below_Q).astype(np.float32)
    low_DQ = sorted_DN[:, below_Q]
    references_DQ = low_DQ + fraction_Q * (sorted_DN[:, above_Q] - low_DQ)
    return np.maximum.accumulate(references_DQ, axis=1)  # rounding may have broken the order


def _to_quantiles(vectors_MD: Vectors, references_DQ: NDArray[np.float32]) -> Vectors:
    """The quantile of each entry: the middle of the range where references repeat, 0 and 1 beyond the ends."""
    values_DM = np.ascontiguousarray(vectors_MD.T)
    result_DM = np.empty_like(values_DM)
    places_Q = np.linspace(0, 1, references_DQ.shape[1])
    repeats_D = (np.diff(references_DQ, axis=1) == 0).any(axis=1)
    for row, (values_M, references_Q, repeats) in enumerate(
        zip(values_DM, references_DQ, repeats_D, strict=True)
    ):
        result_M = np.interp(values_M, references_Q, places_Q)
        if repeats:
            downwards_M = np.interp(-values_M, -references_Q[::-1], -places_Q[::-1])
            result_M = (result_M - downwards_M) / 2
        result_DM[row] = np.where(
            values_M <= references_Q[0], 0, np.where(values_M >= references_Q[-1], 1, result_M)
        )
    return np.ascontiguousarray(result_DM.T)
