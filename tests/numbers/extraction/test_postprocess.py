"""Post-processing against scikit-learn, and by properties of each definition."""

import numpy as np
import pytest
from sklearn.decomposition import PCA
from sklearn.preprocessing import QuantileTransformer, StandardScaler

from workflow_scripts.evaluation.correlation import cosine, spearman
from workflow_scripts.evaluation.geometry import isoscore
from workflow_scripts.extraction.postprocess import FittedSample, apply, caveat, fit
from workflow_scripts.settings.extraction import Abtt, Learnt, Plain, Quantile

QUANTILE = Quantile(kind="quantile_uniform", label="x", fit="task", quantiles=50)
WHITEN = Learnt(kind="whiten", label="x", fit="task")
ZSCORE = Learnt(kind="zscore", label="x", fit="task")


def abtt(directions):
    return Abtt(kind="abtt", label="x", fit="task", directions=directions)


@pytest.fixture
def vectors():
    draw = np.random.default_rng(0)
    return (draw.normal(size=(300, 12)) @ draw.normal(size=(12, 12)) + draw.normal(size=12)).astype(
        np.float32
    )


def shaped(settings, vectors, others=None):
    sample = FittedSample(vectors)
    return apply(settings, fit(settings, sample), sample if others is None else FittedSample(others))


def test_normalising_changes_no_cosine_and_no_rank(vectors):
    """O-76"""
    unit = shaped(Plain(kind="normalise", label="x", fit="task"), vectors)
    np.testing.assert_allclose(np.linalg.norm(unit, axis=1), 1, rtol=1e-6)
    before, after = cosine(vectors[:150], vectors[150:]), cosine(unit[:150], unit[150:])
    np.testing.assert_allclose(before, after, atol=1e-6)
    assert spearman(np.arange(150.0), before) == pytest.approx(spearman(np.arange(150.0), after), abs=1e-3)
    assert not np.allclose(unit, vectors)  # which is why k-means changes


def test_z_scores_are_those_of_scikit_learn(vectors):
    """O-77"""
    vectors[:, 4] = 0.1
    ours = shaped(ZSCORE, vectors)
    np.testing.assert_allclose(ours, StandardScaler().fit_transform(vectors.astype(np.float64)), atol=1e-5)
    assert not ours[:, 4].any()


def test_whitened_vectors_have_the_identity_as_covariance(vectors):
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
    np.testing.assert_allclose(rest, centred - centred @ top.T @ top, atol=1e-4)
    again = shaped(abtt(directions), vectors, rest + vectors.mean(axis=0))
    np.testing.assert_allclose(again, rest, atol=1e-4)


def noted(settings, vectors):
    sample = FittedSample(vectors)
    fitted = fit(settings, sample)
    result = apply(settings, fitted, sample)
    return result, caveat(settings, fitted, sample, result)


def test_removing_all_directions_leaves_no_rounding_errors(vectors):
    """Six vectors vary in five directions; cosines of what rounding leaves would be scores of noise."""
    few = vectors[:6]
    for directions in (5, 12, 100):
        rest, note = noted(abtt(directions), few)
        assert not rest.any()
        assert note == "all texts have the same vector"
    rest, note = noted(abtt(4), few)
    assert rest.any()
    assert note == ""


def test_distances_that_depend_on_no_vector_carry_a_note(vectors):
    """Six points whitened in five directions are the corners of a regular simplex, whatever they were."""
    white, note = noted(WHITEN, vectors[:6])
    unit = white / np.linalg.norm(white, axis=1, keepdims=True)
    np.testing.assert_allclose((unit @ unit.T)[np.triu_indices(6, 1)], -1 / 5, atol=1e-4)
    assert note == "6 different vectors whitened in 5 directions: distances do not depend on the vectors"
    assert noted(WHITEN, np.repeat(vectors[:6], 3, axis=0))[1] == note
    assert noted(WHITEN, vectors[:13])[1].startswith("13 different vectors whitened in 12 directions")
    assert noted(WHITEN, vectors[:14])[1] == noted(WHITEN, vectors)[1] == noted(ZSCORE, vectors[:6])[1] == ""


def occurring(vectors):
    """Most of the vectors once, some of them several times or never, in no order."""
    return np.random.default_rng(1).integers(0, len(vectors), 2 * len(vectors))


@pytest.mark.parametrize("settings", [ZSCORE, WHITEN, abtt(3), QUANTILE], ids=lambda settings: settings.kind)
def test_a_fit_counts_every_vector_as_often_as_it_occurs(vectors, settings):
    """F13"""
    rows = occurring(vectors)
    assert len(set(rows)) < len(vectors) < len(rows)
    together, apart = fit(settings, FittedSample(vectors, rows)), fit(settings, FittedSample(vectors[rows]))
    assert together.keys() == apart.keys() != set()
    for part, values in together.items():
        np.testing.assert_array_equal(values, apart[part])


@pytest.mark.parametrize("count", [40, 300], ids=["all of them", "more than quantiles"])
@pytest.mark.parametrize("scale", [0.2, 1, 100], ids=["most are equal", "some are equal", "distinct"])
def test_quantiles_of_references_are_those_of_scikit_learn(vectors, scale, count):
    """Its own interpolation, both ways and in no order, on the references that are fitted here."""
    vectors = np.round(scale * vectors)[:count]
    vectors[:, 5] = 3  # one feature that does not vary
    sample = FittedSample(vectors, occurring(vectors))
    references_DQ = fit(QUANTILE, sample)["references_DQ"]
    assert (np.diff(references_DQ, axis=1) >= 0).all()
    peer = QuantileTransformer()
    peer.n_features_in_, peer.quantiles_ = vectors.shape[1], references_DQ.T
    peer.n_quantiles_, peer.references_ = len(references_DQ.T), np.linspace(0, 1, len(references_DQ.T))
    for others in (vectors, np.float32(1.3) * vectors - 1, vectors[::-1]):
        ours = apply(QUANTILE, {"references_DQ": references_DQ}, FittedSample(others))
        np.testing.assert_allclose(ours, peer.transform(others.astype(np.float64)), rtol=0, atol=6e-8)


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
