"""Names beside points: none on another, on a point or on a bar, however near the points are to each other."""

from itertools import combinations

import numpy as np
import pytest
from matplotlib.text import Annotation

from workflow_scripts.figures.named_points import Mark, draw_marks, names_of
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


def drawn(shown, size=(7.3, 4.2)):
    """The panel, and the boxes of the names in it."""
    called = Called(runs={mark.run: [f"{LONG} {mark.run}", "MiniLM"] for mark in shown})
    with figure_style():
        figure = new_figure(FigureStyle(width_inches=size[0]), size[1], "Title", [], [])
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
    axes, boxes = drawn(shown)
    assert len(boxes) == count + 1 and covered(shown, axes, boxes) == []
    panel = axes.get_window_extent()
    assert all(panel.x0 <= box.x0 and box.x1 <= panel.x1 for box in boxes)


def test_a_panel_too_full_for_any_place_still_has_every_number():
    shown = marks(30, 3.0, 1.0)
    axes, boxes = drawn(shown, size=(2.2, 0.8))
    assert len(boxes) == 31 and covered(shown, axes, boxes)


def test_a_number_has_a_key():
    runs = [f"{letter}.x" for letter in "abcdefg"]
    names = names_of(runs, Called(runs={run: [run[0].upper(), "X"] for run in runs}))
    assert names.short == {run: str(number) for number, run in enumerate(runs, start=1)}
    assert names.footnotes[0].startswith("Points: 1\N{NO-BREAK SPACE}A; 2\N{NO-BREAK SPACE}B; ")
