"""Runs as points: their numbers, and names that cover no other, no point and no bar, however near the points are."""

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from matplotlib.text import Annotation

from tests.rooms.figures.conftest import FOOTNOTE, drawn, request_of
from workflow_scripts.columns.scores import SCORES
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.planes import (
    PLANE,
    SCATTER,
    Mark,
    both_scores,
    draw_alignment,
    draw_marks,
    draw_scatter,
    names_of,
    plane,
)
from workflow_scripts.figures.style import figure_style
from workflow_scripts.reporting.called import Called
from workflow_scripts.settings.experiment import Experiment
from workflow_scripts.settings.style import FigureStyle

TWO = request_of("scatter", {"x": "energy", "y": "STS"})
SPACE = request_of("alignment_uniformity", {"task": "lee"})
COLUMN = {"suite": "s", "task": "lee", "aggregation": "all", "metric": "m", "scale": 1, "digits": 2}
EXPERIMENT = Experiment.parse(
    {
        "title": "-", "source": "-", "seeds": [1], "baseline": None, "suites": {"sts": ["s"]}, "runs": [{"method": "base", "encoder": "x"}],
        "columns": [{"heading": name, **COLUMN} for name in ("energy", "STS")],
    },
    "grid",
)  # fmt: skip


# Two columns


def scatter(*scores):
    """Points of runs a, b, c, ... with an energy and an STS score each, and the texts of their figure."""
    table = [
        {"run": f"{name}.x", "heading": heading, "mean": mean, "sd": 0.1}
        for name, pair in zip("abcdefghij", scores, strict=False)
        for heading, mean in zip(("energy", "STS", "other"), (*pair, 7.0), strict=True)
    ]
    points = both_scores(table, TWO.config)
    return points, drawn(points, TWO, draw_scatter, EXPERIMENT)[1]


def test_a_row_is_a_run_and_one_without_both_scores_is_named_below_the_figure():
    data, found = scatter((0.1, 70), (0.2, None), (0.3, 80))
    assert data.schema == SCATTER
    assert data.to_pylist() == [
        {"run": "a.x", "x": 0.1, "x_sd": 0.1, "y": 70.0, "y_sd": 0.1},
        {"run": "b.x", "x": 0.2, "x_sd": 0.1, "y": None, "y_sd": 0.1},
        {"run": "c.x", "x": 0.3, "x_sd": 0.1, "y": 80.0, "y_sd": 0.1},
    ]
    assert "Without a point, for want of scores: b.x." in found
    assert "Pearson" not in " ".join(found)  # two points always lie on a line


def test_the_figure_says_how_the_columns_correlate():
    """By hand: x = 1, 2, 3 and y = 1, 3, 2 have Pearson and Spearman 0.5."""
    found = scatter((1, 1), (2, 3), (3, 2))[1]
    said = "Over 3 runs: Pearson 0.50, Spearman 0.50."
    assert {"energy, M on lee", "STS, M on lee", said, FOOTNOTE, "b"} <= {*found}
    assert "Without a point" not in " ".join(found)


# Alignment and uniformity


def geometry(run, seed, alignment, uniformity):
    shared = {"run": run, "seed": seed, "suite": "geometry", "task": "lee", "aggregation": "", "n": 9}
    shared["note"] = "lee, score > 4"
    measured = {"alignment": alignment, "uniformity": uniformity}
    rows = [shared | {"metric": metric, "value": value} for metric, value in measured.items()]
    other = rows[0] | {"task": "other", "value": 99.0}
    return pa.Table.from_pylist([*rows, other], schema=SCORES)


def space(headline, *scores):
    """Points of the plane, the figure, and its texts."""
    points = plane(scores, headline, SPACE.config)
    return points, *drawn(points, SPACE, draw_alignment, EXPERIMENT)


def test_points_are_means_and_sds_over_seeds_with_uniformity_to_the_right():
    found, figure, said = space({"a.mini": 71.0}, *(geometry("a.mini", s, 0.1 * s, -s) for s in (1, 2, 3)))
    assert found.schema.equals(PLANE)
    (point,) = found.to_pylist()
    assert (point.pop("run"), point.pop("note")) == ("a.mini", "lee, score > 4")
    assert point == pytest.approx({
        "seeds": 3, "score": 71.0,
        "alignment": 0.2, "alignment_sd": 0.1, "uniformity": -2, "uniformity_sd": 1,
    })  # fmt: skip
    axes = figure.axes[0]
    (drawn_at,) = [line.get_xydata().tolist() for line in axes.lines if line.get_marker() == "o"]
    assert drawn_at == [[pytest.approx(-2), pytest.approx(0.2)]]
    assert axes.get_xlabel() == "uniformity on lee (lower is better)"
    assert {"lee: lee, score > 4.", "energy, M on lee"} <= {*said}


def test_a_point_without_a_score_is_open_and_a_run_without_alignment_is_named_below_the_plane():
    scores = geometry("a.mini", 1, 0.1, -1), geometry("b.mini", 1, 0.2, -2), geometry("c.mini", 1, None, None)
    _, figure, said = space({"a.mini": 71.0, "b.mini": None, "c.mini": 1.0}, *scores)
    colours = [line.get_markerfacecolor() for line in figure.axes[0].lines if line.get_marker() == "s"]
    assert [isinstance(colour, str) and colour == "none" for colour in colours] == [False, True]
    assert "Without a point, for want of scores: c.mini." in said


# Names beside points


def marks(count, spread, sd=None):
    """Points that lie close together, and one far off, as an encoder without training is."""
    places = np.random.default_rng(0).normal(0, spread, (count, 2)).tolist()
    return [Mark("far.x", 10.0, 10.0, None, None)] + [
        Mark(f"run{number}.x", x, y, sd, sd) for number, (x, y) in enumerate(places)
    ]


def named(shown, size=(7.3, 4.2)):
    """The panel, and the boxes of the names in it."""
    called = Called(runs={mark.run: [f"SimCSE + LayerAttPooler {mark.run}", "MiniLM"] for mark in shown})
    with figure_style():
        figure = Request(None, style=FigureStyle(width_inches=size[0]), title="Title").new_figure(size[1], [])
        axes = figure.subplots()
        names = names_of([mark.run for mark in shown], called)
        draw_marks(axes, shown, ["none"] * len(shown), names.short)
        figure.draw_without_rendering()
        found = [child for child in axes.get_children() if isinstance(child, Annotation)]
        return axes, [name.get_window_extent() for name in found]


def covered(shown, axes, boxes):
    """Pairs of names that overlap, and names that lie on points or bars."""
    pairs = [(one, other) for one, other in combinations(boxes, 2) if one.overlaps(other)]
    for mark in shown:
        steps = np.linspace(-1, 1, 201)
        bars = [(mark.x + step * (mark.x_sd or 0), mark.y) for step in steps]
        bars += [(mark.x, mark.y + step * (mark.y_sd or 0)) for step in steps]
        pixels = axes.transData.transform(bars)
        pairs += [
            (mark, box) for box in boxes if ((pixels >= box.min) & (pixels <= box.max)).all(axis=1).any()
        ]
    return pairs


@pytest.mark.parametrize(("count", "spread", "sd"), [(4, 1.5, None), (4, 1.5, 0.2), (40, 0.3, 0.05)])
def test_names_of_near_points_cover_nothing(count, spread, sd):
    """Words of a few, numbers of many."""
    shown = marks(count, spread, sd)
    axes, boxes = named(shown)
    assert len(boxes) == count + 1 and covered(shown, axes, boxes) == []
    panel = axes.get_window_extent()
    assert all(panel.x0 <= box.x0 and box.x1 <= panel.x1 for box in boxes)


def test_a_panel_too_full_for_any_place_still_has_every_number():
    shown = marks(30, 3.0, 1.0)
    axes, boxes = named(shown, size=(2.2, 0.8))
    assert len(boxes) == 31 and covered(shown, axes, boxes)


def test_a_number_has_a_key():
    runs = [f"{letter}.x" for letter in "abcdefg"]
    names = names_of(runs, Called(runs={run: [run[0].upper(), "X"] for run in runs}))
    assert names.short == {run: str(number) for number, run in enumerate(runs, start=1)}
    assert names.footnotes[0].startswith("Points: 1\N{NO-BREAK SPACE}A; 2\N{NO-BREAK SPACE}B; ")
