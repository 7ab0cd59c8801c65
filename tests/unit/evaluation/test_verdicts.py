import numpy as np
import pytest
from scipy import stats

from workflow_scripts.evaluation.significance import (
    detectable_difference,
    observed,
    percentile_interval,
    resampled,
)
from workflow_scripts.evaluation.verdicts import Evidence, corrected, over_pairs, over_resamples, verdict
from workflow_scripts.settings.significance import Config

SETTINGS = Config(alpha=0.05, power=0.8, resamples=500, seed=3)
DIFFERENCES = [0.9, -0.1, 0.9, 1.0, 0.2, 0.8, 1.1]


@pytest.mark.parametrize("expects", ["higher", "lower"])
def test_a_direction_is_tested_by_the_two_sided_t_test_with_its_interval(expects):
    found = over_pairs(DIFFERENCES, expects, 0, SETTINGS)
    test = stats.ttest_1samp(DIFFERENCES, 0)
    interval = test.confidence_interval(0.95)
    assert found.p == pytest.approx(test.pvalue)
    assert (found.low, found.high) == pytest.approx((interval.low, interval.high))
    assert (found.n, found.difference) == (7, pytest.approx(np.mean(DIFFERENCES)))
    assert found.detectable == detectable_difference(np.std(DIFFERENCES, ddof=1), 7, 0.05, 0.8)


@pytest.mark.parametrize("margin", [0.3, 0.75, 1.5])
def test_sameness_is_tested_by_the_one_sided_tests_at_the_margin(margin):
    found = over_pairs(DIFFERENCES, "same", margin, SETTINGS)
    sides = [
        stats.ttest_1samp(DIFFERENCES, bound, alternative=alternative).pvalue
        for bound, alternative in ((-margin, "greater"), (margin, "less"))
    ]
    inside = abs(np.mean(DIFFERENCES)) < margin
    assert found.p == pytest.approx(max(sides) if inside else 1 - max(sides) + min(sides))
    assert found.p <= 0.5


def test_beyond_a_margin_of_nothing_is_a_difference():
    difference = over_pairs(DIFFERENCES, "higher", 0, SETTINGS)
    assert over_pairs(DIFFERENCES, "same", 0, SETTINGS).p == pytest.approx(difference.p)


@pytest.mark.slow
def test_equal_systems_are_found_to_differ_as_rarely_as_alpha_says():
    """Where the margin is small against the spread the data choose the side, and a test of that side is wrong twice."""
    random = np.random.default_rng(0)
    found = [over_pairs(random.normal(size=5), "same", 0.02, SETTINGS) for _ in range(4000)]
    beyond = [one.p < SETTINGS.alpha for one in found if abs(one.difference) > 0.02]
    assert 0.04 < sum(beyond) / len(found) < 0.06


def test_one_difference_is_shown_and_not_tested():
    assert over_pairs([1.5], "higher", 0, SETTINGS) == Evidence(1, 1.5, None, None, None, None)


@pytest.mark.parametrize(
    ("differences", "expects", "margin", "p"),
    [
        ([1.0, 1.0], "higher", 0, 0.0),
        ([0.0, 0.0], "higher", 0, 1.0),
        ([0.2, 0.2], "same", 0.5, 0.0),
        ([0.5, 0.5], "same", 0.5, 1.0),
    ],
)
def test_equal_differences_do_not_divide_by_zero(differences, expects, margin, p):
    assert over_pairs(differences, expects, margin, SETTINGS).p == p


@pytest.fixture
def pairs():
    random = np.random.default_rng(1)
    gold = random.uniform(0, 5, 200)
    return gold, gold + random.normal(0, 1, 200), gold + random.normal(0, 2, 200)


def test_sentence_pairs_are_resampled_as_by_the_bootstrap(pairs):
    drawn, difference = resampled(*pairs, SETTINGS), observed(*pairs)
    found = over_resamples(difference, drawn, 200, "higher", 0, SETTINGS)
    assert found[:5] == (200, difference, *percentile_interval(drawn, SETTINGS))
    assert found.low > 0
    steps = stats.norm.ppf(0.975) + stats.norm.ppf(0.8)
    assert found.detectable == pytest.approx(steps * np.std(drawn))


def test_sameness_over_pairs_counts_the_resamples_on_the_other_side_of_the_margin():
    drawn = np.array([-0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8])
    within = over_resamples(0.35, drawn, 10, "same", 0.45, SETTINGS)
    beyond = over_resamples(0.35, drawn, 10, "same", 0.15, SETTINGS)
    assert within.p == pytest.approx((4 + 1) / 11)
    assert beyond.p == pytest.approx((3 + 1 + 0 + 1) / 11)  # below the near margin, and beyond the far one
    level = over_resamples(0.0, drawn - 0.35, 10, "same", 0.3, SETTINGS)
    assert level.p == pytest.approx((2 + 1) / 11)  # no difference at all is no proof of sameness


def test_claims_that_were_not_tested_are_not_counted():
    assert corrected([0.04, None, 0.01, None, 0.03]) == pytest.approx([0.06, None, 0.03, None, 0.06])
    assert corrected([None]) == [None] and corrected([]) == []


@pytest.mark.parametrize(
    ("difference", "p", "expects", "margin", "expected"),
    [
        (1.0, 0.04, "higher", 0, "supported"),
        (-1.0, 0.04, "higher", 0, "contradicted"),
        (-1.0, 0.04, "lower", 0, "supported"),
        (1.0, 0.04, "lower", 0, "contradicted"),
        (1.0, 0.05, "higher", 0, "undecided"),
        (1.0, None, "higher", 0, "undecided"),
        (-0.4, 0.01, "same", 0.5, "supported"),
        (-0.6, 0.01, "same", 0.5, "contradicted"),
        (-0.4, 0.2, "same", 0.5, "undecided"),
    ],
)
def test_a_verdict_follows_the_corrected_p_and_the_side(difference, p, expects, margin, expected):
    evidence = Evidence(5, difference, None, None, 0.001, None)
    assert verdict(evidence, p, expects, margin, 0.05) == expected
