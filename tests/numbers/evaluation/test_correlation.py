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
