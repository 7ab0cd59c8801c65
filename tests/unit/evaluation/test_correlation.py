"""Ranks and correlations against scipy; degenerate input in test_sts.py."""

import numpy as np
import pytest
from scipy import stats

from workflow_scripts.evaluation.correlation import cosine, pearson, ranks, spearman

DRAW = np.random.default_rng(0)
VALUES = {
    "distinct": DRAW.normal(size=500),
    "ties": DRAW.integers(0, 6, 500).astype(float),
    "signed zeros": np.array([0.0, -0.0, 1.0, -1.0, -0.0]),
    "infinite": np.array([np.inf, 2.0, -np.inf, np.inf]),
    "nan": np.array([1.0, np.nan, 0.0]),
    "one": np.array([4.0]),
    "none": np.array([]),
}


@pytest.mark.parametrize("values", VALUES.values(), ids=VALUES)
def test_ranks_are_those_of_scipy(values):
    np.testing.assert_array_equal(ranks(values), stats.rankdata(values))


@pytest.mark.parametrize("gold", ["distinct", "ties"])
@pytest.mark.parametrize("rounded", [False, True])
def test_correlations_are_those_of_scipy(gold, rounded):
    gold = VALUES[gold]
    predicted = gold + DRAW.normal(size=500)
    predicted = predicted.round(0 if rounded else 12)
    assert 0.3 < spearman(gold, predicted) < 0.95
    assert spearman(gold, predicted) == pytest.approx(stats.spearmanr(gold, predicted).statistic, abs=1e-12)
    assert pearson(gold, predicted) == pytest.approx(stats.pearsonr(gold, predicted).statistic, abs=1e-12)


def test_a_prediction_that_is_not_a_number_gives_none():
    assert np.isnan(spearman(np.arange(3.0), VALUES["nan"]))


def test_a_zero_vector_has_no_likeness_to_any():
    vectors = np.float32([[0, 0], [3, 4]])
    np.testing.assert_allclose(cosine(vectors, vectors), [0, 1])
