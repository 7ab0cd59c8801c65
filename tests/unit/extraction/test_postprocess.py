"""Against scikit-learn, and by the properties that each has by its definition."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from workflow_scripts.evaluation.correlation import cosine, spearman
from workflow_scripts.evaluation.geometry import isoscore
from workflow_scripts.extraction.postprocess import Abtt, Learnt, Plain, Quantile, apply, fit

QUANTILE = Quantile(kind="quantile_uniform", label="", fit="task", quantiles=50, subsample=10_000, seed=0)
WHITEN = Learnt(kind="whiten", label="", fit="task")
ZSCORE = Learnt(kind="zscore", label="", fit="task")


def abtt(directions):
    return Abtt(kind="abtt", label="", fit="task", directions=directions)


@pytest.fixture
def vectors():
    draw = np.random.default_rng(0)
    return (draw.normal(size=(300, 12)) @ draw.normal(size=(12, 12)) + draw.normal(size=12)).astype(
        np.float32
    )


def shaped(settings, vectors, others=None):
    return apply(settings, fit(settings, vectors), vectors if others is None else others)


def test_normalising_changes_no_cosine_and_no_rank(vectors):
    """O-76"""
    unit = shaped(Plain(kind="normalise", label="", fit="task"), vectors)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-6)
    before, after = cosine(vectors[:150], vectors[150:]), cosine(unit[:150], unit[150:])
    np.testing.assert_allclose(before, after, atol=1e-6)
    assert spearman(np.arange(150.0), before) == pytest.approx(spearman(np.arange(150.0), after), abs=1e-3)
    assert not np.allclose(unit, vectors)  # which is why k-means changes


def test_a_zero_vector_stays_zero(vectors):
    vectors[3] = 0
    assert not shaped(Plain(kind="normalise", label="", fit="task"), vectors)[3].any()


def test_z_scores_are_scikit_learns_and_a_constant_feature_is_zero(vectors):
    """O-77"""
    vectors[:, 4] = 0.1
    ours = shaped(ZSCORE, vectors)
    np.testing.assert_allclose(ours, StandardScaler().fit_transform(vectors.astype(np.float64)), atol=1e-5)
    varied = np.delete(ours, 4, axis=1)
    np.testing.assert_allclose(varied.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_allclose(varied.std(axis=0), 1, atol=1e-5)
    assert not ours[:, 4].any()


def test_whitened_vectors_have_the_identity_as_covariance_and_isoscore_one(vectors):
    """O-78"""
    white = shaped(WHITEN, vectors)
    np.testing.assert_allclose(np.cov(white.T), np.eye(12), atol=1e-4)
    assert isoscore(white) == pytest.approx(1, abs=1e-6)
    peer = PCA(whiten=True).fit_transform(vectors.astype(np.float64))
    np.testing.assert_allclose(np.abs(white), np.abs(peer), atol=1e-3)


def test_whitening_fewer_vectors_than_directions_keeps_the_rank(vectors):
    """O-78"""
    assert shaped(WHITEN, vectors[:6]).shape == (6, 5)


@pytest.mark.parametrize("directions", [0, 1, 2, 5])
def test_all_but_the_top_lowers_the_rank_and_is_idempotent(vectors, directions):
    """O-79"""
    rest = shaped(abtt(directions), vectors)
    centred = vectors - vectors.mean(axis=0)
    assert np.linalg.matrix_rank(rest, tol=1e-2) == 12 - directions
    top = PCA(directions or 1).fit(vectors.astype(np.float64)).components_[:directions]
    np.testing.assert_allclose(rest @ top.T, 0, atol=1e-4)
    np.testing.assert_allclose(rest, centred - centred @ top.T @ top, atol=1e-4)
    again = apply(abtt(directions), fit(abtt(directions), vectors), rest + vectors.mean(axis=0))
    np.testing.assert_allclose(again, rest, atol=1e-4)


@pytest.mark.parametrize("repeats", [False, True])
def test_quantiles_are_scikit_learns(vectors, repeats):
    """O-80, on what was fitted and beyond it."""
    if repeats:
        vectors = np.round(vectors)
    peer = QuantileTransformer(n_quantiles=50, subsample=None).fit(vectors.astype(np.float64))
    beyond = (vectors * 1.5).astype(np.float32)
    for others in (vectors, beyond):
        np.testing.assert_allclose(
            shaped(QUANTILE, vectors, others), peer.transform(others.astype(np.float64)), atol=2e-4
        )


def test_quantiles_rise_with_the_value_and_meet_a_half_at_the_median(vectors):
    """O-80"""
    found = shaped(QUANTILE.model_copy(update={"quantiles": 301}), vectors[:299])
    assert found.min() == 0
    assert found.max() == 1
    for values, quantiles in zip(vectors[:299].T, found.T, strict=True):
        assert (np.diff(quantiles[np.argsort(values)]) >= 0).all()
        assert quantiles[values == np.median(values)] == pytest.approx(0.5)


def test_a_fit_on_other_vectors_is_applied_as_it_is(vectors):
    fitted = fit(ZSCORE, vectors[:100])
    np.testing.assert_allclose(
        apply(ZSCORE, fitted, vectors[100:]),
        StandardScaler().fit(vectors[:100].astype(np.float64)).transform(vectors[100:].astype(np.float64)),
        atol=1e-4,
    )
