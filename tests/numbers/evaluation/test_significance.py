"""Tests of differences against scipy, and against ranking every resample."""

import numpy as np
import pytest
from scipy import stats

from workflow_scripts.evaluation.significance import (
    Evidence,
    detectable_difference,
    holm,
    observed,
    over_pairs,
    over_resamples,
    resampled,
    summarise,
)
from workflow_scripts.settings.report import Significance as Config

DIFFERENCES = [0.9, -0.1, 0.9, 1.0, 0.2, 0.8, 1.1]
SETTINGS = Config(alpha=0.05, power=0.8, resamples=300, seed=3)


def test_mean_and_standard_deviation_over_seeds():
    assert summarise([1.0, 2.0, 4.0]) == (3, pytest.approx(7 / 3), pytest.approx(np.std([1, 2, 4], ddof=1)))
    assert summarise([5.0]) == (1, 5.0, None)


def test_a_direction_is_tested_by_the_two_sided_t_test():
    """A direction is tested by the two-sided t-test with its interval."""
    found, test = over_pairs(DIFFERENCES, SETTINGS), stats.ttest_1samp(DIFFERENCES, 0)
    interval = test.confidence_interval(0.95)
    assert found[:5] == pytest.approx((7, np.mean(DIFFERENCES), interval.low, interval.high, test.pvalue))
    assert found.detectable == detectable_difference(np.std(DIFFERENCES, ddof=1), 7, 0.05, 0.8)


@pytest.mark.parametrize("margin", [0.0, 0.3, 0.75, 1.5])
def test_sameness_is_tested_by_the_one_sided_tests_at_the_margin(margin):
    """Exceeding a margin of 0 is a difference."""
    found = over_pairs(DIFFERENCES, SETTINGS, margin)
    sides = [
        stats.ttest_1samp(DIFFERENCES, bound, alternative=alternative).pvalue
        for bound, alternative in ((-margin, "greater"), (margin, "less"))
    ]
    inside = abs(np.mean(DIFFERENCES)) < margin
    assert found.p == pytest.approx(max(sides) if inside else 1 - max(sides) + min(sides))
    assert found.p <= 0.5


@pytest.mark.slow
def test_equal_systems_differ_as_rarely_as_alpha_says():
    """If the margin is small against the spread, the data choose the side, and a test of this side errs twice as often."""
    random = np.random.default_rng(0)
    found = [over_pairs(random.normal(size=5), SETTINGS, 0.02) for _ in range(1500)]
    beyond = [one.p < SETTINGS.alpha for one in found if abs(one.difference) > 0.02]
    assert 0.04 < sum(beyond) / len(found) < 0.06


@pytest.mark.parametrize(
    ("difference", "margin", "p"),
    [(1.0, None, 0.0), (0.0, None, 1.0), (0.25, 0.5, 0.0), (0.5, 0.5, 1.0)],
)
def test_equal_differences_do_not_divide_by_zero(difference, margin, p):
    """Equal differences do not divide by zero and fewer than three are not tested."""
    assert over_pairs([difference] * 3, SETTINGS, margin).p == p
    for n in (1, 2):
        assert over_pairs([difference] * n, SETTINGS, margin) == Evidence(n, difference)


def test_the_detectable_difference_is_that_of_the_noncentral_t():
    """Power of a paired t-test by scipy's noncentral distribution, which the formula avoids far out."""
    found = detectable_difference(0.7, 6, alpha=0.05, power=0.8)
    bound, shift = stats.t.ppf(0.975, 5), found / 0.7 * np.sqrt(6)
    power = stats.nct.sf(bound, 5, shift) + stats.nct.cdf(-bound, 5, shift)
    assert power == pytest.approx(0.8, abs=1e-4)


def test_holm_steps_down_and_keeps_the_order():
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]


@pytest.mark.parametrize("cells", [1 << 21, 60 * 7], ids=["at once", "split"])
def test_the_bootstrap_equals_ranking_every_resample_anew(cells, monkeypatch):
    monkeypatch.setattr("workflow_scripts.evaluation.significance._BLOCK_CELLS", cells)
    random = np.random.default_rng(1)
    gold = random.integers(0, 6, size=60).astype(float)  # which has ties
    ours, theirs = (np.round(gold + random.normal(0, sd, size=60), 1) for sd in (1, 1.5))

    def difference(rows):
        return (
            stats.spearmanr(gold[rows], ours[rows]).statistic
            - stats.spearmanr(gold[rows], theirs[rows]).statistic
        )

    drawn = np.random.default_rng(SETTINGS.seed).integers(60, size=(SETTINGS.resamples, 60))
    differences = np.array([difference(rows) for rows in drawn])
    found = resampled(gold, ours, theirs, SETTINGS)
    assert found == pytest.approx(differences)
    assert observed(gold, ours, theirs) == pytest.approx(difference(slice(None)))
    assert observed(gold, ours, np.zeros(60)) == pytest.approx(stats.spearmanr(gold, ours).statistic)
    evidence, steps = over_resamples(0.3, found, 60, SETTINGS), stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    p = 2 * (np.count_nonzero(differences <= 0) + 1) / (SETTINGS.resamples + 1)
    interval = np.quantile(differences, [0.025, 0.975])
    assert evidence == pytest.approx((60, 0.3, *interval, p, steps * np.std(differences)))


def test_sameness_counts_the_resamples_beyond_the_margin():
    """Sameness over pairs counts the resamples on the other side of the margin."""
    drawn = np.array([-0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    within, beyond = (over_resamples(0.35, drawn, 10, SETTINGS, margin) for margin in (0.45, 0.15))
    assert within.p == pytest.approx((4 + 1) / 11)
    assert beyond.p == pytest.approx((3 + 1 + 0 + 1) / 11)  # below the near margin, and beyond the far one
    assert over_resamples(-0.35, -drawn, 10, SETTINGS, 0.15).p == beyond.p
    level = over_resamples(0.0, drawn - 0.35, 10, SETTINGS, 0.3)
    assert level.p == pytest.approx((2 + 1) / 11)  # no difference at all is no proof of sameness
