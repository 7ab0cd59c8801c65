"""Runs as points of a plane, and their names beside them."""

import numpy as np
import pyarrow as pa
import pytest

from tests.rooms.figures.conftest import FOOTNOTE, shown
from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.tables import TABLE

COLUMN = {"suite": "s", "task": "lee", "aggregation": "all", "metric": "m", "scale": 1, "digits": 2}
GRID = {
    "title": "-", "source": "-", "seeds": [1], "baseline": None, "suites": {"sts": ["s"]}, "runs": [{"method": "base", "encoder": "x"}],
    "columns": [{"heading": name, **COLUMN} for name in ("energy", "STS")],
}  # fmt: skip


@pytest.fixture
def table(stored):
    """Writes a table of runs, each with a mean of both columns."""

    def write(scores, sd=0.1):
        rows = [
            {"run": run, "heading": heading, "mean": mean, "sd": sd}
            for run, means in scores.items()
            for heading, mean in zip(("energy", "STS", "other"), (*means, 7.0), strict=True)
        ]
        return stored(pa.Table.from_pylist(rows, schema=TABLE), {"experiment": GRID})

    return write


@pytest.fixture
def scatter(table):
    def draw(scores, **more):
        sd = more.pop("sd", 0.1)
        return shown("scatter", {"x": "energy", "y": "STS"}, {"table": [table(scores, sd)]}, **more)

    return draw


def test_a_point_is_a_run_and_one_without_both_scores_is_named_below_the_figure(scatter):
    points, _, found = scatter({"a.x": (0.1, 70), "b.x": (0.2, None), "c.x": (0.3, 80)})
    assert points["run"].tolist() == ["a.x", "b.x", "c.x"]
    expected = [[0.1, 0.1, 70, 0.1], [0.2, 0.1, np.nan, 0.1], [0.3, 0.1, 80, 0.1]]
    np.testing.assert_array_equal(points[["x", "x_sd", "y", "y_sd"]], expected)
    assert "Not drawn, because scores are missing: b.x." in found
    assert "Pearson" not in " ".join(found)  # two points always lie on a line


def test_the_figure_says_how_the_columns_correlate(scatter):
    """By hand: x = 1, 2, 3 and y = 1, 3, 2 have Pearson and Spearman 0.5."""
    found = scatter({"a.x": (1, 1), "b.x": (2, 3), "c.x": (3, 2)}).texts
    said = "Over 3 runs: Pearson 0.50, Spearman 0.50."
    assert {"energy, M on lee", "STS, M on lee", said, FOOTNOTE, "b"} <= {*found}
    assert "Not drawn" not in " ".join(found)


@pytest.fixture
def space(stored, table):
    """Draws alignment and uniformity of runs and seeds, with their headline scores."""

    def draw(headline, *measured):
        scores = []
        for run, seed, alignment, uniformity in measured:
            cell = {
                "run": run,
                "seed": seed,
                "suite": "geometry",
                "aggregation": "",
                "n": 9,
                "note": "lee, score > 4",
            }
            values = [
                ("lee", "alignment", alignment),
                ("lee", "uniformity", uniformity),
                ("other", "alignment", 99.0),
            ]
            rows = [cell | {"task": task, "metric": metric, "value": value} for task, metric, value in values]
            scores.append(stored(pa.Table.from_pylist(rows, schema=SCORES)))
        means = {run: (mean, 1.0) for run, mean in headline.items()}
        return shown("alignment_uniformity", {"task": "lee"}, {"table": [table(means)], "scores": scores})

    return draw


def test_points_are_means_and_sds_over_seeds_with_uniformity_to_the_right(space):
    points, picture, found = space(
        {"a.mini": 71.0}, *(("a.mini", seed, a, -10 * a) for seed, a in enumerate((0.1, 0.2, 0.6)))
    )
    (point,) = points.to_dict("records")
    assert (point.pop("run"), point.pop("note")) == ("a.mini", "lee, score > 4")
    assert point == pytest.approx({
        "seeds": 3, "score": 71.0,
        "alignment": 0.3, "alignment_sd": 0.07**0.5, "uniformity": -3, "uniformity_sd": 7**0.5,
    })  # fmt: skip
    (drawn_at,) = [line.get_xydata().tolist() for line in picture.axes[0].lines if line.get_marker() == "o"]
    assert drawn_at == [[pytest.approx(-3), pytest.approx(0.3)]]
    assert {"uniformity on lee (lower is better)", "lee: lee, score > 4.", "energy, M on lee"} <= {*found}
