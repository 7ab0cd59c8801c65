import numpy as np
import pytest
from scipy import stats

from workflow_scripts.evaluation.significance import (
    compare,
    detectable_difference,
    holm,
    observed,
    percentile_interval,
    resampled,
    summarise,
)
from workflow_scripts.settings.significance import Config

OURS = [78.1, 77.4, 79.0, 78.6, 77.9, 78.8, 78.2]
THEIRS = [77.2, 77.5, 78.1, 77.6, 77.7, 78.0, 77.1]
SETTINGS = Config(alpha=0.05, power=0.8, resamples=300, seed=3)


@pytest.fixture
def random():
    return np.random.default_rng(1)


def test_mean_and_standard_deviation_over_seeds():
    assert summarise([1.0, 2.0, 4.0]) == (3, pytest.approx(7 / 3), pytest.approx(np.std([1, 2, 4], ddof=1)))
    assert summarise([5.0]) == (1, 5.0, None)


def test_the_t_test_is_the_paired_one():
    assert compare(OURS, THEIRS, SETTINGS).t_p == pytest.approx(stats.ttest_rel(OURS, THEIRS).pvalue)


@pytest.mark.parametrize("seeds", [3, 7])
def test_the_detectable_difference_is_found_as_often_as_promised(seeds, random):
    difference = detectable_difference(sd=0.5, n=seeds, alpha=0.05, power=0.8)
    samples = random.normal(difference, 0.5, size=(20_000, seeds))
    assert (stats.ttest_1samp(samples, 0, axis=1).pvalue < 0.05).mean() == pytest.approx(0.8, abs=0.01)


def test_holm_steps_down_and_keeps_the_order():
    assert holm([0.04, 0.01, 0.03]) == pytest.approx([0.06, 0.03, 0.06])
    assert holm([0.5, 0.9]) == [1.0, 1.0]


def ties(random, count):
    gold = random.integers(0, 6, size=count).astype(float)
    ours = np.round(gold + random.normal(size=count), 1)
    theirs = np.round(gold + random.normal(0, 1.5, size=count), 1)
    return gold, ours, theirs


def test_the_bootstrap_equals_ranking_every_resample_anew(random):
    gold, ours, theirs = ties(random, 60)
    drawn = np.random.default_rng(SETTINGS.seed).integers(60, size=(SETTINGS.resamples, 60))
    differences = [
        stats.spearmanr(gold[rows], ours[rows]).statistic
        - stats.spearmanr(gold[rows], theirs[rows]).statistic
        for rows in drawn
    ]
    found = resampled(gold, ours, theirs, SETTINGS)
    assert found == pytest.approx(np.array(differences))
    low, high, p = percentile_interval(found, SETTINGS)
    assert (low, high) == pytest.approx(tuple(np.quantile(differences, [0.025, 0.975])))
    below = np.count_nonzero(np.array(differences) <= 0)
    assert p == pytest.approx(2 * (below + 1) / (SETTINGS.resamples + 1))
    assert observed(gold, ours, theirs) == pytest.approx(
        stats.spearmanr(gold, ours).statistic - stats.spearmanr(gold, theirs).statistic
    )


def test_the_bootstrap_does_not_depend_on_how_it_is_split(random, monkeypatch):
    columns = ties(random, 50)
    whole = resampled(*columns, SETTINGS)
    monkeypatch.setattr("workflow_scripts.evaluation.significance._BLOCK_CELLS", 50 * 7)
    assert resampled(*columns, SETTINGS) == pytest.approx(whole)


def test_a_constant_system_has_correlation_0(random):
    gold, ours, _ = ties(random, 40)
    assert observed(gold, ours, np.zeros(40)) == pytest.approx(stats.spearmanr(gold, ours).statistic)
