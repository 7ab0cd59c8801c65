"""Densities of cosines in groups of equal judgement."""

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from tests.rooms.figures.conftest import drawn, request_of
from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.errors import ConfigError
from workflow_scripts.figures.cosine_density import COLUMNS, densities, kernel_density
from workflow_scripts.reporting.records import RunTable

REQUEST = request_of("cosine_density", {"task": "lee", "edges": [0, 1, 2], "bandwidth": 0.05})


def similarities(gold, cosine, run="simcse.mini.wiki", seed=1, task="lee"):
    table = pa.table([[task] * len(gold), [""] * len(gold), gold, cosine], names=SIMILARITIES.names)
    return RunTable(run, seed, table.cast(SIMILARITIES))


def found(*files):
    return densities(files, REQUEST.config)


def test_a_density_integrates_to_one_even_at_the_end_of_the_scale():
    grid = np.linspace(-1, 1, 2001)
    for values in ([0.99, 1.0, 0.98], [-1.0, -0.97], [0.1, 0.4]):
        assert np.trapezoid(kernel_density(np.array(values), grid, 0.05), grid) == pytest.approx(1, abs=2e-3)


def test_a_density_is_the_kernel_written_out():
    expected = np.mean([np.exp(-((0.3 - v) ** 2) / 0.005) for v in (0.2, 0.5)]) / (0.05 * np.sqrt(2 * np.pi))
    assert kernel_density(np.array([0.2, 0.5]), np.array([0.3]), 0.05)[0] == pytest.approx(expected)


def test_every_pair_falls_into_one_group_edges_included():
    other = similarities([0.5], [0.1], run="other.x", task="other")
    data = found(similarities([0.0, 0.5, 1.0, 1.0001, 2.0], [0.1, 0.2, 0.3, 0.4, 0.5]), other)
    assert set(data["run"].to_pylist()) == {"simcse.mini.wiki"}
    assert data.schema.equals(COLUMNS)
    assert {row["lower"]: row["pairs"] for row in data.to_pylist()} == {0: 3, 1: 2}


def test_seeds_are_pooled_and_pairs_counted_once():
    both = found(*(similarities([0.5, 1.5], [0.1, 0.9], seed=seed) for seed in (1, 2)))
    one = found(similarities([0.5, 1.5], [0.1, 0.9]))
    assert set(both["pairs"].to_pylist()) == {1} and set(both["seeds"].to_pylist()) == {2}
    np.testing.assert_allclose(both["density"].to_numpy(), one["density"].to_numpy())


def test_a_judgement_outside_the_edges_is_an_error():
    with pytest.raises(ConfigError, match=r"edges: \[0.0, 1.0, 2.0\]; judgements of lee reach from 0 to 2.5"):
        found(similarities([0, 2.5], [0.1, 0.2]))


def test_an_empty_group_is_shown_as_empty():
    data = found(similarities([0.5, 0.7], [0.1, 0.2]))
    assert data.filter(pc.is_null(data["density"])).to_pylist()[0]["pairs"] == 0
    assert {"1 to 2", "0 pairs"} <= {*drawn(data, REQUEST, "cosine_density")[1]}


def test_the_highest_group_is_on_top_and_a_tick_is_at_its_median():
    data = found(similarities([0.5] * 3 + [1.5] * 3, [0.1, 0.1, 0.1, 0.9, 0.9, 0.9]))
    (axes,) = drawn(data, REQUEST, "cosine_density")[0].axes
    labels = {label.get_position()[1]: label.get_text() for label in axes.get_yticklabels()}
    assert labels == {0: "0 to 1\n3 pairs", 1: "1 to 2\n3 pairs"}
    medians = {line.get_ydata()[0]: line.get_xdata()[0] for line in axes.lines if line.get_zorder() == 20}
    assert medians == {0: pytest.approx(0.1, abs=0.011), 1: pytest.approx(0.9, abs=0.011)}
