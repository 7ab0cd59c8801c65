"""Correlations against scipy; degenerate input in test_sts.py."""

import numpy as np
import pytest
from scipy import stats

from workflow_scripts.evaluation.correlation import cosine, pearson, spearman

DRAW = np.random.default_rng(0)


@pytest.mark.parametrize("decimals", [0, 12])
@pytest.mark.parametrize("gold", [DRAW.normal(size=500), DRAW.integers(0, 6, 500).astype(float)])
def test_correlations_are_those_of_scipy(gold, decimals):
    predicted = (gold + DRAW.normal(size=500)).round(decimals)
    assert 0.3 < spearman(gold, predicted) < 0.95
    for ours, theirs in ((spearman, stats.spearmanr), (pearson, stats.pearsonr)):
        assert ours(gold, predicted) == pytest.approx(theirs(gold, predicted).statistic, abs=1e-12)
    assert np.isnan(spearman(np.arange(3.0), np.array([1.0, np.nan, 0.0])))


def test_a_zero_vector_has_no_likeness_to_any():
    vectors = np.float32([[0, 0], [3, 4]])
    np.testing.assert_allclose(cosine(vectors, vectors), [0, 1])


@pytest.mark.parametrize("width", [3, 384, 1024])
def test_equal_vectors_have_a_cosine_of_exactly_1(width):
    vectors = (
        DRAW.normal(size=(500, width)).astype(np.float32) * np.float32(np.logspace(-12, 12, 500))[:, None]
    )
    assert set(cosine(vectors, vectors)) == {1.0}
    assert set(cosine(vectors, -3 * vectors)) == {-1.0}


def test_cosines_that_differ_by_the_order_of_sums_tie():
    left, right = DRAW.normal(size=(2, 400, 24)).astype(np.float32)
    order = DRAW.permuted(np.tile(np.arange(24), (400, 1)), axis=1)
    found = cosine(left, right)
    assert len(set(found)) == 400
    np.testing.assert_array_equal(
        cosine(4 * np.take_along_axis(right, order, 1), np.take_along_axis(left, order, 1)), found
    )
