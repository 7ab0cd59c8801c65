"""What measurements say of a claim that one number is higher, lower or the same as another.

A claim of a direction is tested two-sidedly, so that it can be contradicted as well as supported. A claim that two
numbers are the same is tested for equivalence: supported if the difference lies within the margin by two one-sided
tests (Schuirmann 1987, https://doi.org/10.1007/BF01068419), contradicted if it lies beyond, on either side: the p of
that is two-sided, and for a margin of 0 that of a difference. Where neither is shown, the claim is undecided, and the
smallest difference that a test of this claim alone would have shown says how much that means.

Shape suffixes: S seeds (or draws, or tasks), R resamples.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import special

from workflow_scripts.evaluation.significance import compare, half_width, holm, percentile_interval, share
from workflow_scripts.settings.claims import Expects
from workflow_scripts.settings.significance import Config

Floats = NDArray[np.float64]
Kind = Literal["supported", "contradicted", "undecided"]


class Evidence(NamedTuple):
    """A difference with its interval of level 1 - alpha, the p of the claim, and what would have been shown."""

    n: int
    """Seeds, draws, tasks or sentence pairs that it was taken over."""
    difference: float
    low: float | None
    high: float | None
    p: float | None
    """None where nothing can be tested, as with one seed."""
    detectable: float | None
    """By a test of this claim alone, without a correction for the others."""


def over_pairs(differences: Sequence[float], expects: Expects, margin: float, config: Config) -> Evidence:
    """Evidence of paired differences, by the t distribution.

    Args:
        differences: Ours less theirs, of each seed, draw or task; at least one.
        expects: What the claim says of the mean difference.
        margin: Largest difference that still counts as the same; read of that claim alone.
        config: Level and power.
    """
    values_S = np.asarray(differences, dtype=np.float64)
    found = compare(differences, [0.0] * len(differences), config)
    if found.sd is None or found.t_p is None:
        return Evidence(found.n, found.difference, None, None, None, None)
    error = found.sd / float(np.sqrt(found.n))
    reach = half_width(found.sd, found.n, config.alpha)
    p = found.t_p if expects != "same" else _t_equivalence(values_S, error, margin)
    return Evidence(
        found.n, found.difference, found.difference - reach, found.difference + reach, p, found.detectable
    )


def _t_equivalence(values_S: Floats, error: float, margin: float) -> float:
    """The p of what the mean suggests: that the difference is within the margin, or that it is beyond."""
    mean = abs(float(values_S.mean()))
    if error == 0:
        return float(mean == margin)
    near, far = special.stdtr(len(values_S) - 1, np.array([-abs(mean - margin), -(mean + margin)]) / error)
    return float(near if mean < margin else near + far)


def over_resamples(
    difference: float, resampled_R: Floats, pairs: int, expects: Expects, margin: float, config: Config
) -> Evidence:
    """Evidence of a bootstrap over sentence pairs.

    Args:
        difference: On the pairs as they are.
        resampled_R: In each resample, of R.
        pairs: Number of sentence pairs.
        expects: What the claim says of the difference.
        margin: As in ``over_pairs``.
        config: Level, power and resamples.
    """
    low, high, p = percentile_interval(resampled_R, config)
    if expects == "same":
        p = _equivalence(resampled_R * (np.sign(difference) or 1.0), abs(difference) < margin, margin)
    steps = float(special.ndtri(1 - config.alpha / 2) + special.ndtri(config.power))
    return Evidence(pairs, difference, low, high, p, steps * float(resampled_R.std()))


def _equivalence(resampled_R: Floats, within: bool, margin: float) -> float:
    """As ``_t_equivalence``, of resamples of a difference that is not negative."""
    if within:
        return max(share(resampled_R <= -margin), share(resampled_R >= margin))
    return min(1.0, share(resampled_R <= margin) + share(resampled_R <= -margin))


def corrected(p_values: Sequence[float | None]) -> list[float | None]:
    """The p-values of one study's claims, corrected for their number; those that were not tested stay None."""
    tested = iter(holm([p for p in p_values if p is not None]))
    return [None if p is None else next(tested) for p in p_values]


def verdict(
    evidence: Evidence, corrected_p: float | None, expects: Expects, margin: float, alpha: float
) -> Kind:
    """What the evidence says of the claim at the level ``alpha``."""
    if corrected_p is None or corrected_p >= alpha:
        return "undecided"
    match expects:
        case "same":
            agrees = abs(evidence.difference) < margin
        case "higher":
            agrees = evidence.difference > 0
        case "lower":
            agrees = evidence.difference < 0
    return "supported" if agrees else "contradicted"
