"""Significance tests of a difference between two systems, over seeds and over sentence pairs.

Over seeds, runs with the same seed are compared by a paired t-test, and the smallest detectable difference for this
number of seeds is computed. Fewer than three seeds are not tested, since two leave the test one degree of freedom. Over
sentence pairs, one run of each system is compared by a bootstrap that resamples the pairs of one task.

With a margin, the claim is that two numbers are the same, and it is tested for equivalence. If the observed difference
lies within the margin, p is that of two one-sided tests (Schuirmann 1987, https://doi.org/10.1007/BF01068419). If it
lies beyond, p is that of a true difference beyond the margin on either side: it is two-sided, and with a margin of 0 it
is the p of a difference.

Shape suffixes: R resamples, N sentence pairs, S seeds (or draws, or tasks), G groups of tied values.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import scipy  # loads scipy.special on first use, which would take half of the import time of planning
from numpy.typing import NDArray

from workflow_scripts.arrays import Floats, Integers
from workflow_scripts.settings.report import Significance as Config

FEWEST = 3
"""Minimum number of seeds, draws or tasks for a test of a difference."""
_BLOCK_CELLS = 1 << 21
"""Entries of the matrix of resamples x pairs in memory at a time: 16 MB per array."""


class Summary(NamedTuple):
    """Scores of one system over its seeds; ``sd`` (n - 1 in the denominator) is None for a single seed."""

    n: int
    mean: float
    sd: float | None


class Evidence(NamedTuple):
    """A difference with its interval of level 1 - alpha, the p of the claim, and the detectable difference."""

    n: int
    """Number of seeds, draws, tasks or sentence pairs."""
    difference: float
    low: float | None = None
    high: float | None = None
    p: float | None = None
    """None if nothing can be tested, such as with two seeds."""
    detectable: float | None = None
    """Minimum detectable difference of this single test, without a correction for others."""


def summarise(values: Sequence[float]) -> Summary:
    """Return mean and standard deviation over seeds."""
    sd = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Summary(len(values), float(np.mean(values)), sd)


def over_pairs(differences: Sequence[float], config: Config, margin: float | None = None) -> Evidence:
    """Return the evidence of paired differences, by the t distribution.

    If all differences are equal, they have no spread, and p is 0, or 1 if the claim is just not met.

    Args:
        differences: Ours minus theirs for each seed, draw or task; at least one.
        config: Level and power.
        margin: Maximum difference that counts as the same; None for the claim of a difference.
    """
    n, mean, sd = summarise(differences)
    if sd is None or n < FEWEST:
        return Evidence(n, mean)
    error = sd / float(np.sqrt(n))
    half = half_width(sd, n, config.alpha)
    p = _t_test(mean, error, n, margin or 0)
    detectable = detectable_difference(sd, n, config.alpha, config.power)
    return Evidence(n, mean, mean - half, mean + half, p, detectable)


def _t_test(mean: float, error: float, n: int, margin: float) -> float:
    """Return the p of the hypothesis that the mean suggests: a difference within the margin, or beyond it."""
    distance = abs(mean)
    if error == 0:
        return float(distance == margin)
    near, far = scipy.special.stdtr(n - 1, np.array([-abs(distance - margin), -(distance + margin)]) / error)
    return float(near if distance < margin else near + far)


def over_resamples(
    difference: float, resampled_R: Floats, pairs: int, config: Config, margin: float | None = None
) -> Evidence:
    """Return the evidence of a bootstrap over sentence pairs, with its percentile interval.

    Without a margin, p is twice the share of resamples on the rarer side of 0, at most 1.

    Args:
        difference: The observed difference.
        resampled_R: The difference in each resample.
        pairs: Number of sentence pairs.
        config: Level, power and resamples.
        margin: As in ``over_pairs``.
    """
    low, high = np.quantile(resampled_R, [config.alpha / 2, 1 - config.alpha / 2])
    if margin is None:
        p = min(1.0, 2 * _share(resampled_R <= 0), 2 * _share(resampled_R >= 0))
    else:
        p = _equivalence(resampled_R * (np.sign(difference) or 1.0), abs(difference) < margin, margin)
    steps = float(scipy.special.ndtri(1 - config.alpha / 2) + scipy.special.ndtri(config.power))
    return Evidence(pairs, difference, float(low), float(high), p, steps * float(resampled_R.std()))


def _equivalence(resampled_R: Floats, within: bool, margin: float) -> float:
    """Return p as ``_t_test`` does, for resamples of a non-negative difference."""
    if within:
        return max(_share(resampled_R <= -margin), _share(resampled_R >= margin))
    return min(1.0, _share(resampled_R <= margin) + _share(resampled_R <= -margin))


def half_width(sd: float, n: int, alpha: float) -> float:
    """Return the half width of Student's interval, at level 1 - ``alpha``, of the mean of ``n`` values."""
    return float(scipy.special.stdtrit(n - 1, 1 - alpha / 2)) * (sd / float(np.sqrt(n)))


def detectable_difference(sd: float, n: int, alpha: float, power: float) -> float:
    """Return the minimum true difference that a paired t-test over ``n`` seeds detects with probability ``power``.

    Args:
        sd: Standard deviation of the differences between seeds.
        n: Number of seeds, at least 2.
        alpha: Two-sided level of significance.
        power: Desired probability of detection, above ``alpha``.
    """
    # scipy.stats is slow to import, so distributions come from scipy.special.
    from scipy.optimize import brentq

    assert power > alpha
    # The tails of the normal distribution, averaged over the chi distribution of the estimated sd, because scipy's
    # noncentral t returns NaN in the far tail.
    levels = (np.arange(4096) + 0.5) / 4096
    # Quantiles of chi over the root of its degrees of freedom.
    spread = np.sqrt(2 * scipy.special.gammaincinv((n - 1) / 2, levels) / (n - 1))
    bound = scipy.special.stdtrit(n - 1, 1 - alpha / 2) * spread

    def excess(shift: float) -> float:
        return float((scipy.special.ndtr(shift - bound) + scipy.special.ndtr(-bound - shift)).mean()) - power

    highest = 2 * float(bound.max()) + 10
    return float(brentq(excess, 0, highest)) * sd / float(np.sqrt(n))


def holm(p_values: Sequence[float]) -> list[float]:
    """Return the p-values of one family of tests, adjusted by Holm's step-down method, in the given order."""
    order = np.argsort(p_values)
    factors = len(p_values) - np.arange(len(p_values))
    stepped = np.minimum(np.maximum.accumulate(np.asarray(p_values)[order] * factors), 1)
    adjusted = np.empty(len(p_values))
    adjusted[order] = stepped
    return [float(value) for value in adjusted]


def observed(gold: Floats, ours: Floats, theirs: Floats) -> float:
    """Return the difference of two Spearman correlations with the same N judgements: ``ours`` minus ``theirs``."""
    counts_1N = np.ones((1, len(gold)), dtype=np.int64)
    return float(_difference((gold, ours, theirs), counts_1N)[0])


def resampled(gold: Floats, ours: Floats, theirs: Floats, config: Config) -> Floats:
    """Return the difference of two Spearman correlations in each resample of the pairs, shape (R,)."""
    count = len(gold)
    random = np.random.default_rng(config.seed)
    differences = []
    rows = max(1, _BLOCK_CELLS // count)
    for start in range(0, config.resamples, rows):
        drawn = random.integers(count, size=(min(rows, config.resamples - start), count))
        differences.append(_difference((gold, ours, theirs), _counts(drawn, count)))
    return np.concatenate(differences)


def _share(true_R: NDArray[np.bool_]) -> float:
    """Return the share of true resamples; the observed sample counts as a further true one, so it is never 0."""
    return float((true_R.sum() + 1) / (len(true_R) + 1))


def _counts(drawn_RN: Integers, count: int) -> Integers:
    """Return the number of draws of each of the ``count`` pairs in each resample."""
    shifted = drawn_RN + count * np.arange(len(drawn_RN))[:, None]
    return np.bincount(shifted.ravel(), minlength=len(drawn_RN) * count).reshape(len(drawn_RN), count)


def _difference(columns: Sequence[Floats], counts_RN: Integers) -> Floats:
    gold, ours, theirs = (_ranks(column, counts_RN) for column in columns)
    return _correlation(gold, ours, counts_RN) - _correlation(gold, theirs, counts_RN)


def _ranks(values_N: Floats, counts_RN: Integers) -> Floats:
    """Return the rank of each value in each resample, with averaged ties, without sorting any resample.

    A value's rank follows the ranks of all smaller drawn values, and is the middle of those of equal values.
    """
    _, group_N = np.unique(values_N, return_inverse=True)
    order = np.argsort(group_N, kind="stable")
    starts_G = np.flatnonzero(np.diff(group_N[order], prepend=-1))
    sizes_RG = np.add.reduceat(counts_RN[:, order], starts_G, axis=1)
    behind_RG = np.cumsum(sizes_RG, axis=1) - sizes_RG
    return (behind_RG + (sizes_RG + 1) / 2)[:, group_N]


def _correlation(left_RN: Floats, right_RN: Floats, counts_RN: Integers) -> Floats:
    """Return the Pearson correlation of each resample's ranks; 0 if one side is constant."""
    total = counts_RN.shape[1]  # a resample has as many pairs as the task
    middle = (total + 1) / 2  # the mean of any ranks
    left, right = left_RN - middle, right_RN - middle
    products, lefts, rights = (
        np.einsum("rn,rn,rn->r", counts_RN, first, second)
        for first, second in [(left, right), (left, left), (right, right)]
    )
    scale = np.sqrt(lefts * rights)
    correlation: Floats = np.divide(products, scale, out=np.zeros_like(products), where=scale > 0)
    return correlation
