import numpy as np
import pytest
from scipy import stats

from workflow_scripts.evaluation.correlation import _ranks, pearson, spearman


@pytest.fixture
def random():
    return np.random.default_rng(5)


@pytest.mark.parametrize("values", [3, 40, 10**6])  # many ties, some, hardly any
def test_ranks_are_those_of_scipy_to_the_bit(random, values):
    drawn = random.integers(values, size=500) / 7
    assert np.array_equal(_ranks(drawn), stats.rankdata(drawn))
    other = random.normal(size=500)
    assert spearman(drawn, other) == pytest.approx(stats.spearmanr(drawn, other).statistic, abs=1e-14)


def test_what_is_no_number_has_no_correlation(random):
    drawn = random.normal(size=9)
    with_gap = np.where(np.arange(9) == 4, np.nan, drawn)
    assert np.isnan(spearman(drawn, with_gap)) and np.isnan(pearson(drawn, with_gap))


def test_a_constant_side_correlates_with_nothing(random):
    assert spearman(np.ones(9), random.normal(size=9)) == 0
