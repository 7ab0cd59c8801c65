"""Densities of cosines in groups of equal judgement."""

import numpy as np
import pyarrow as pa
import pytest

from tests.rooms.figures.conftest import shown
from workflow_scripts.columns import SIMILARITIES
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.cosine_density import kernel_density


@pytest.fixture
def density(stored):
    """Draws tables of judgements and cosines, each with its run, seed and task."""

    def draw(*tables):
        files = []
        for gold, cosine, *named in tables:
            run, seed, task = [*named, *("simcse.mini.wiki", 1, "lee")[len(named) :]]
            columns = [[task] * len(gold), [""] * len(gold), gold, cosine]
            table = pa.table(columns, names=SIMILARITIES.names).cast(SIMILARITIES)
            files.append(stored(table, run=run, seed=seed))
        block = {"task": "lee", "edges": [0, 1, 2], "bandwidth": 0.05}
        return shown("cosine_density", block, {"similarities": files})

    return draw


def test_a_density_integrates_to_one_at_the_end_of_the_scale():
    """A density integrates to one even at the end of the scale."""
    grid = np.linspace(-1, 1, 2001)
    for values in ([0.99, 1.0, 0.98], [-1.0, -0.97], [0.1, 0.4]):
        assert np.trapezoid(kernel_density(np.array(values), grid, 0.05), grid) == pytest.approx(1, abs=2e-3)


def test_a_density_is_the_kernel_written_out():
    expected = np.mean([np.exp(-((0.3 - v) ** 2) / 0.005) for v in (0.2, 0.5)]) / (0.05 * np.sqrt(2 * np.pi))
    assert kernel_density(np.array([0.2, 0.5]), np.array([0.3]), 0.05)[0] == pytest.approx(expected)


def test_every_pair_falls_into_one_group_edges_included(density):
    lee = [0.0, 0.5, 1.0, 1.0001, 2.0], [0.1, 0.2, 0.3, 0.4, 0.5]
    points = density(lee, ([0.5], [0.1], "other.x", 1, "other")).data
    assert set(points["run"]) == {"simcse.mini.wiki"}
    assert dict(zip(points["lower"], points["pairs"], strict=True)) == {0: 3, 1: 2}


def test_seeds_are_pooled_and_pairs_counted_once(density):
    both = density(*(([0.5, 1.5], [0.1, 0.9], "simcse.mini.wiki", seed) for seed in (1, 2))).data
    assert set(both["pairs"]) == {1}
    assert set(both["seeds"]) == {2}
    np.testing.assert_allclose(both["density"], density(([0.5, 1.5], [0.1, 0.9])).data["density"])


def test_a_judgement_outside_the_edges_is_an_error(density):
    with pytest.raises(
        ConfigError, match=r"edges: \[0.0, 1.0, 2.0\], but judgements of lee range from 0 to 2.5"
    ):
        density(([0, 2.5], [0.1, 0.2]))
