"""Geometry of an embedding space: alignment, uniformity, isotropy, modulus.

    align   = E_(x,y)~positive pairs ||f(x) - f(y)||^2
    uniform = log E_(x,y) i.i.d. exp(-2 ||f(x) - f(y)||^2)

Wang and Isola, Understanding Contrastive Representation Learning through Alignment and Uniformity on
the Hypersphere, ICML 2020 (alpha 2, t 2). IsoScore: Rudman et al., Findings of ACL 2022.

Papers use these names for different measurements, so the settings of each measure state which pairs are positive
(``above`` 4, or ``at_least`` 5), which dataset is used, and whether vectors are first normalised (alignment grows with
the square of the vectors' scale). Uniformity is computed over all sentences of the same dataset, both sides of every
pair; a sentence in several pairs counts each time.

Shape suffixes: N sentences, P pairs, D width, B rows of a block.
"""

from collections.abc import Iterator
from itertools import islice

import numpy as np
import pyarrow as pa

from workflow_scripts.arrays import Floats, Vectors
from workflow_scripts.data.tables import texts_of
from workflow_scripts.evaluation.base import Score, Task, not_scored
from workflow_scripts.settings.suites import Measure, Positives, SentenceSample

_BLOCK_ROWS = 512
"""Rows of the distance matrix in memory at a time: 80 MB for 20,000 sentences."""


def load(task: str, table: pa.Table, measure: Measure) -> Task:
    """Return a task of the sentences of pairs (``columns.PAIRS``), or of a sample of any texts."""
    if isinstance(measure, Positives):
        return _pairs(task, table, measure)
    return _sample(task, table, measure)


def _pairs(task: str, table: pa.Table, positives: Positives) -> Task:
    compare = {"above": np.greater, "at_least": np.greater_equal}[positives.comparison]
    chosen = compare(table["score"].to_numpy(), positives.threshold)
    note = positives.describe()
    if not chosen.any():
        return not_scored(task, f"no pair of {note}")

    def score(*sides_PD: Vectors) -> list[Score]:
        left, right = (side_PD.astype(np.float64) for side_PD in sides_PD)
        if positives.normalise:
            left, right = _normalised(left), _normalised(right)
        everything = np.concatenate([left, right])
        return [
            Score(task, "", "alignment", alignment(left[chosen], right[chosen]), int(chosen.sum()), note),
            Score(task, "", "uniformity", uniformity(everything), len(everything), note),
        ]

    return Task([table[side].to_pylist() for side in ("sentence1", "sentence2")], score)


def _sample(task: str, table: pa.Table, sample: SentenceSample) -> Task:
    suitable = (text for text in dict.fromkeys(texts_of(table)) if len(text) >= sample.min_characters)
    texts = list(islice(suitable, sample.max_sentences))
    if len(texts) < 2:
        problem = f"{len(texts)} sentences of {sample.min_characters} characters or more"
        return not_scored(task, f"{sample.dataset}: {problem}")
    measures = {"isoscore": isoscore, "mean_modulus": mean_modulus, "mean_cosine": mean_cosine}

    def score(vectors_ND: Vectors) -> list[Score]:
        values = {metric: measure(vectors_ND) for metric, measure in measures.items()}
        n, note = len(texts), sample.dataset
        return [Score(task, "", metric, value, n, note) for metric, value in values.items()]

    return Task([texts], score)


def alignment(left_PD: Vectors | Floats, right_PD: Vectors | Floats) -> float:
    """Return the mean squared distance of positive pairs: 0 if they coincide, at most 4 for vectors of length 1."""
    difference = left_PD.astype(np.float64) - right_PD.astype(np.float64)
    return float(np.einsum("pd,pd->p", difference, difference).mean())


def uniformity(vectors_ND: Vectors | Floats) -> float:
    """Return the logarithm of the mean Gaussian potential over all pairs of rows; lower is more uniform.

    Distances are computed in blocks to bound memory. Rows are paired with other rows, never with themselves. The sum is
    computed as a logarithm, because the potentials of distant, unnormalised vectors would all underflow.
    """
    assert len(vectors_ND) > 1
    log_sums = [_log_sum_exp(exponents) for exponents in _exponents(vectors_ND.astype(np.float64))]
    pairs = len(vectors_ND) * (len(vectors_ND) - 1) / 2
    return float(np.logaddexp.reduce(log_sums) - np.log(pairs))


def _exponents(vectors_ND: Floats) -> Iterator[Floats]:
    """Yield -2 ||x - y||^2 for a block of rows x and all rows y from the block's start; -inf unless y follows x."""
    twice_squares_N = 2 * np.einsum("nd,nd->n", vectors_ND, vectors_ND)
    for start in range(0, len(vectors_ND) - 1, _BLOCK_ROWS):
        block_BD = vectors_ND[start : start + _BLOCK_ROWS]
        exponents = block_BD @ vectors_ND[start:].T
        exponents *= 4
        exponents -= twice_squares_N[start : start + len(block_BD), None]
        exponents -= twice_squares_N[None, start:]
        np.minimum(exponents, 0, out=exponents)  # rounding may make a square negative
        exponents[np.tril_indices(len(block_BD))] = -np.inf
        yield exponents


def _log_sum_exp(exponents: Floats) -> float:
    """Return log-sum-exp, computed in place: ``scipy.special.logsumexp`` would hold several copies of the block."""
    highest = exponents.max()
    np.exp(np.subtract(exponents, highest, out=exponents), out=exponents)
    return float(highest + np.log(exponents.sum()))


def isoscore(vectors_ND: Vectors | Floats) -> float:
    """Return how evenly the variance is spread over the D directions: 0 if it is in one, 1 if it is equal in all.

    The seven published steps reduce to (PR - 1) / (D - 1), where PR = (sum of eigenvalues)^2 / (sum of their squares)
    of the covariance. This needs no eigenvalues, since PR is the squared trace over the squared Frobenius norm. N
    points drawn from an isotropic Gaussian score below 1, about (D / (1 + D/N) - 1) / (D - 1). Points without variance
    score 0.
    """
    centred = vectors_ND.astype(np.float64) - vectors_ND.mean(axis=0, dtype=np.float64)
    covariance = centred.T @ centred
    frobenius = float(np.square(covariance).sum())
    if frobenius == 0:
        return 0.0
    return float((np.trace(covariance) ** 2 / frobenius - 1) / (vectors_ND.shape[1] - 1))


def mean_modulus(vectors_ND: Vectors | Floats) -> float:
    """Return the mean length of the vectors."""
    return float(np.linalg.norm(vectors_ND.astype(np.float64), axis=1).mean())


def mean_cosine(vectors_ND: Vectors | Floats) -> float:
    """Return the mean cosine over all pairs of different rows; a zero vector has cosine 0 with all others."""
    units = _normalised(vectors_ND.astype(np.float64))
    total = units.sum(axis=0)
    count = len(units)
    return float((total @ total - np.square(units).sum()) / (count * (count - 1)))


def _normalised(vectors_ND: Floats) -> Floats:
    norms = np.linalg.norm(vectors_ND, axis=1, keepdims=True)
    units: Floats = np.divide(vectors_ND, norms, out=np.zeros_like(vectors_ND), where=norms > 0)
    return units
