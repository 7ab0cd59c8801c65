"""Names beside points: none on another, on a point or on a bar, however near the points are to each other."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.figure import Figure
from matplotlib.text import Annotation

from workflow_scripts.figures.named_points import Mark, draw_mark, name_marks, numbers, words
from workflow_scripts.figures.style import figure_style, new_figure
from workflow_scripts.reporting.called import Called
from workflow_scripts.settings.style import FigureStyle

LONG = "SimCSE + LayerAttPooler"


def marks(count, spread, sd=None):
    """Points that lie close together, and one far off, as an encoder without training is."""
    places = np.random.default_rng(0).normal(0, spread, (count, 2)).tolist()
    return [Mark("far.x", 10.0, 10.0, None, None)] + [
        Mark(f"run{number}.x", x, y, sd, sd) for number, (x, y) in enumerate(places)
    ]


def drawn(shown, named, size=(7.3, 4.2), **asked):
    """The figure, its panel and the names in it, or None where they found no place."""
    called = Called(runs={mark.run: [f"{LONG} {mark.run}", "MiniLM"] for mark in shown})
    with figure_style():
        figure: Figure = new_figure(FigureStyle(width_inches=size[0]), size[1], "Title", [], [])
        axes = figure.subplots()
        for mark in shown:
            draw_mark(axes, mark, "none")
        names = named([mark.run for mark in shown], called)
        if not name_marks(axes, shown, names.short, **asked):
            return None
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


@pytest.mark.parametrize("sd", [None, 0.2])
def test_names_of_near_points_cover_nothing(sd):
    shown = marks(4, 1.5, sd)
    axes, boxes = drawn(shown, words)
    assert len(boxes) == 5 and covered(shown, axes, boxes) == []
    panel = axes.get_window_extent()
    assert all(panel.x0 <= box.x0 and box.x1 <= panel.x1 for box in boxes)


def test_where_there_is_no_room_for_words_numbers_are_placed():
    shown = marks(40, 0.3, 0.05)
    assert drawn(shown, words) is None
    axes, boxes = drawn(shown, numbers, crowded=True)
    assert len(boxes) == 41 and covered(shown, axes, boxes) == []


def test_a_panel_too_full_for_any_place_still_has_every_number():
    shown = marks(30, 3.0, 1.0)
    axes, boxes = drawn(shown, numbers, size=(2.2, 0.8), crowded=True)
    assert len(boxes) == 31 and covered(shown, axes, boxes)


def test_a_number_has_a_key():
    names = numbers(["a.x", "b.x"], Called(runs={"a.x": ["A", "X"], "b.x": ["B", "X"]}))
    assert names.short == {"a.x": "1", "b.x": "2"}
    assert names.footnotes[0] == "Points: 1\N{NO-BREAK SPACE}A; 2\N{NO-BREAK SPACE}B."
