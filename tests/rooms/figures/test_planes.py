"""Runs as points of a plane, and their names beside them."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

from tests.rooms.figures.conftest import FOOTNOTE, shown
from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.settings.called import Called

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
    assert "Without a point, for want of scores: b.x." in found
    assert "Pearson" not in " ".join(found)  # two points always lie on a line


def test_the_figure_says_how_the_columns_correlate(scatter):
    """By hand: x = 1, 2, 3 and y = 1, 3, 2 have Pearson and Spearman 0.5."""
    found = scatter({"a.x": (1, 1), "b.x": (2, 3), "c.x": (3, 2)}).texts
    said = "Over 3 runs: Pearson 0.50, Spearman 0.50."
    assert {"energy, M on lee", "STS, M on lee", said, FOOTNOTE, "b"} <= {*found}
    assert "Without a point" not in " ".join(found)


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
    points, picture, found = space({"a.mini": 71.0}, *(("a.mini", s, 0.1 * s, -s) for s in (1, 2, 3)))
    (point,) = points.to_dict("records")
    assert (point.pop("run"), point.pop("note")) == ("a.mini", "lee, score > 4")
    assert point == pytest.approx({
        "seeds": 3, "score": 71.0,
        "alignment": 0.2, "alignment_sd": 0.1, "uniformity": -2, "uniformity_sd": 1,
    })  # fmt: skip
    (drawn_at,) = [line.get_xydata().tolist() for line in picture.axes[0].lines if line.get_marker() == "o"]
    assert drawn_at == [[pytest.approx(-2), pytest.approx(0.2)]]
    assert {"uniformity on lee (lower is better)", "lee: lee, score > 4.", "energy, M on lee"} <= {*found}


def test_a_point_without_a_score_is_open_and_a_run_without_alignment_is_named_below_the_plane(space):
    measured = ("a.mini", 1, 0.1, -1), ("b.mini", 1, 0.2, -2), ("c.mini", 1, None, None)
    _, picture, found = space({"a.mini": 71.0, "b.mini": None, "c.mini": 1.0}, *measured)
    colours = [line.get_markerfacecolor() for line in picture.axes[0].lines if line.get_marker() == "s"]
    assert [isinstance(colour, str) and colour == "none" for colour in colours] == [False, True]
    assert "Without a point, for want of scores: c.mini." in found


def names_of(scatter, count, **more):
    """Boxes of the names of points that lie close together, of one far off, and of all points."""
    places = np.random.default_rng(0).normal(0, 1.5, (count, 2)).tolist()
    scores = {f"run{number}.x": place for number, place in enumerate([(10.0, 10.0), *places])}
    called = Called(runs={run: [f"SimCSE + LayerAttPooler {run}", "MiniLM"] for run in scores})
    (axes,) = scatter(scores, called=called, **more).picture.axes
    points = axes.transData.transform([*scores.values()])
    return [text.get_window_extent() for text in axes.texts if text.get_text()], points


@pytest.mark.parametrize("sd", [None, 0.2])
def test_names_of_near_points_cover_neither_points_nor_each_other(scatter, sd):
    names, points = names_of(scatter, 4, sd=sd)
    assert len(names) == 5
    assert not [pair for pair in combinations(names, 2) if pair[0].overlaps(pair[1])]
    assert not [point for name in names for point in points if name.contains(*point)]


def test_many_points_have_numbers_and_a_key(scatter):
    drawn = scatter({f"{letter}.x": (number, -number) for number, letter in enumerate("abcdefg")})
    assert {*"1234567"} <= {*drawn.texts}
    assert "Points: 1\N{NO-BREAK SPACE}a; 2\N{NO-BREAK SPACE}b; " in drawn.said
