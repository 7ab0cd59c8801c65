import numpy as np
import pyarrow as pa
import pytest
import torch

from tests.support.scored_tasks import scores_of
from workflow_scripts.columns import PAIRS, SENTENCES
from workflow_scripts.evaluation import sts
from workflow_scripts.evaluation.geometry import (
    alignment,
    isoscore,
    mean_cosine,
    mean_modulus,
    uniformity,
)
from workflow_scripts.settings.suites import Positives, SentenceSample
from workflow_scripts.settings.suites import Sts as Config


@pytest.fixture
def random():
    return np.random.default_rng(0)


def on_sphere(random, count, width):
    points = random.normal(size=(count, width))
    return points / np.linalg.norm(points, axis=1, keepdims=True)


def test_alignment_of_identical_pairs_is_0_and_of_antipodes_4(random):
    points = on_sphere(random, 5, 7)
    assert alignment(points, points) == 0  # O-13
    assert alignment(points, -points) == pytest.approx(4)  # O-13
    assert alignment(2 * points, -2 * points) == pytest.approx(16)  # O-14: the square of the scale


@pytest.mark.parametrize(
    ("points", "expected", "tolerance"),
    [
        (np.ones((4, 3)), 0, 1e-12),
        (np.eye(9), -4, 1e-6),
        (np.array([[1.0, 0.0], [-1.0, 0.0]]), -8, 1e-6),
        (on_sphere(np.random.default_rng(0), 2000, 768), -4 + 8 / 768, 0.003),
        (np.array([[0.0], [100.0]]), -2 * 100**2, 1e-6),  # where the potential underflows
    ],
    ids=["equal", "orthogonal", "opposite", "on a sphere", "far apart"],
)
def test_uniformity_of_known_point_sets(points, expected, tolerance):
    """O-13."""
    assert uniformity(points) == pytest.approx(expected, abs=tolerance)


def test_uniformity_over_blocks_equals_the_whole_distance_matrix(random):
    """By the line of PyTorch of Wang and Isola 2020, figure 5."""
    points = random.normal(size=(1300, 4)).astype(np.float32)  # three blocks, the last one short
    whole = torch.pdist(torch.from_numpy(points).double(), p=2).pow(2).mul(-2).exp().mean().log()
    assert uniformity(points) == pytest.approx(float(whole), rel=1e-12)


def seven_published_steps(points):
    """IsoScore as Rudman et al. 2022, algorithm 1, states it."""
    width = points.shape[1]
    _, _, axes = np.linalg.svd(points - points.mean(axis=0), full_matrices=False)
    rotated = (points - points.mean(axis=0)) @ axes.T
    diagonal = np.zeros(width)
    diagonal[: rotated.shape[1]] = np.var(rotated, axis=0, ddof=1)
    normalised = np.sqrt(width) * diagonal / np.linalg.norm(diagonal)
    defect = np.linalg.norm(normalised - 1) / np.sqrt(2 * (width - np.sqrt(width)))
    dimensions = (width - defect**2 * (width - np.sqrt(width))) ** 2 / width
    return (dimensions - 1) / (width - 1)


def test_isoscore_equals_the_published_steps(random):
    for count, width in [(50, 6), (200, 30), (10, 12)]:
        points = random.normal(size=(count, width)) * random.uniform(0.1, 3, size=width) + 2
        assert isoscore(points) == pytest.approx(seven_published_steps(points), abs=1e-9)  # O-81


def with_spectrum(eigenvalues, random):
    """Points whose sample covariance has exactly these eigenvalues."""
    width = len(eigenvalues)
    points = random.normal(size=(4 * width, width))
    points -= points.mean(axis=0)
    orthonormal, _ = np.linalg.qr(points)
    return orthonormal * np.sqrt(eigenvalues)


@pytest.mark.parametrize(
    ("eigenvalues", "expected"),
    [([1] * 4 + [0] * 6, 1 / 3), ([3] + [0] * 5, 0), ([4, 1, 1, 1], 0.5263158)],
)
def test_isoscore_of_known_spectra(eigenvalues, expected, random):
    assert isoscore(with_spectrum(eigenvalues, random)) == pytest.approx(expected, abs=1e-7)  # O-82


def test_modulus_and_cosine_are_means(random):
    points = random.normal(size=(40, 5))
    units = points / np.linalg.norm(points, axis=1, keepdims=True)
    cosines = (units @ units.T)[np.triu_indices(40, k=1)]
    assert mean_cosine(points) == pytest.approx(cosines.mean())
    assert mean_modulus(np.array([[3.0, 4.0], [0.0, 1.0]])) == 3


PAIRS_TABLE = pa.table(
    {
        "subset": ["", "", ""],
        "sentence1": ["a", "b", "c"],
        "sentence2": ["aa", "bb", "cc"],
        "score": [4.0, 5.0, 1.0],
    },
    schema=PAIRS,
)
VECTORS = {"a": (1, 0), "aa": (3, 0), "b": (0, 2), "bb": (0, -2), "c": (1, 1), "cc": (5, 1)}


def encode(sentences):
    return np.array([VECTORS[sentence] for sentence in sentences], dtype=np.float32)


@pytest.mark.parametrize(
    ("comparison", "normalise", "expected", "pairs"),
    [("above", False, 16, 1), ("at_least", False, 10, 2), ("above", True, 4, 1), ("at_least", True, 2, 2)],
)
def test_both_readings_of_a_threshold_and_of_scale_are_measured(comparison, normalise, expected, pairs):
    positives = Positives(dataset="sts", comparison=comparison, threshold=4, normalise=normalise)
    config = Config(positives={"measure": positives}, max_tokens=64)
    found, uniform = scores_of(sts.load("measure", PAIRS_TABLE, config), encode)
    assert (found.metric, found.n) == ("alignment", pairs)
    assert found.value == pytest.approx(expected)
    assert uniform.n == 6  # both sides of every pair


def test_a_cloud_takes_distinct_long_enough_sentences():
    rows = {"sentence": ["a", "aa", "aa", "bb", "cc"], "document": [0] * 5, "position": range(5)}
    sample = SentenceSample(dataset="wiki", min_characters=2, max_sentences=2)
    config = Config(samples={"wiki_first": sample}, max_tokens=64)
    scores = scores_of(sts.load("wiki_first", pa.table(rows, schema=SENTENCES), config), encode)
    assert [score.metric for score in scores] == ["isoscore", "mean_modulus", "mean_cosine"]
    assert {score.n for score in scores} == {2}
    assert scores[1].value == pytest.approx(2.5)
