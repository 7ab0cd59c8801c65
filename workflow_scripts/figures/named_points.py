"""Runs as points of a plane, with bars of one standard deviation and their names next to them."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from numpy.typing import NDArray

from workflow_scripts.figures.style import INK, Names, short_names
from workflow_scripts.reporting.called import Called

HOW_DRAWN = "Circles: means over seeds, bars one standard deviation; squares: one seed, so no bar."

_WORDS_UP_TO = 6  # points; the names of more would not fit, so they have numbers
_RADIUS = 5.5  # pixels of a point with its edge
_CAP = 3.0  # pixels of a bar to either side
_RINGS = (
    7,
    16,
    27,
    41,
    57,
    77,
    102,
    137,
    187,
    247,
)  # pixels from a point to its name, tried from the nearest
_TURNS = (
    np.array(sorted(range(24), key=lambda turn: min(turn, 24 - turn))) / 24
)  # to the right before the left
_LEADER_FROM = 16  # pixels; a name further away is joined to its point by a line

Boxes = NDArray[np.float64]
"""Left, bottom, right and top of some boxes, in pixels."""


class Mark(NamedTuple):
    """One run: means over seeds and, where there are several seeds, standard deviations."""

    run: str
    x: float
    y: float
    x_sd: float | None
    y_sd: float | None


def names_of(runs: Sequence[str], called: Called) -> Names:
    """Names in words; of many runs numbers, with a key."""
    names = short_names(runs, called)
    if len(runs) <= _WORDS_UP_TO:
        return names
    short = {run: str(number) for number, run in enumerate(names.short, start=1)}
    key = "; ".join(f"{short[run]}\N{NO-BREAK SPACE}{name}" for run, name in names.short.items())
    return Names(short, [f"Points: {key}.", *names.footnotes])


def without_point(runs: Sequence[str], called: Called) -> list[str]:
    """A note that names the runs that could not be drawn, if there are any."""
    names = "; ".join(called.run(run) for run in runs)
    return [f"Without a point, for want of scores: {names}."] if runs else []


def draw_marks(axes: Axes, marks: Sequence[Mark], colours: Sequence[Any], names: Mapping[str, str]) -> None:
    """Points with their bars, squares where there is one seed, and names that cover neither these nor each other."""
    for mark, colour in zip(marks, colours, strict=True):
        axes.errorbar(mark.x, mark.y, mark.y_sd, mark.x_sd, color=INK, lw=0.8, capsize=2, zorder=2)
        shape = "s" if mark.x_sd is None and mark.y_sd is None else "o"
        axes.plot(mark.x, mark.y, shape, ms=7, mfc=colour, mec=INK, mew=0.7, zorder=3)
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    taken = np.concatenate([_extents(axes, mark) for mark in marks])
    panel = axes.get_window_extent()
    for mark in marks:
        point = axes.transData.transform((mark.x, mark.y))
        text = axes.annotate(
            names[mark.run], (mark.x, mark.y), (0, 0), textcoords="offset pixels", size="small"
        )
        text.set(ha="left", va="bottom", zorder=4)
        extent = text.get_window_extent()
        places = _places(point, extent.width, extent.height)
        inside = (places[:, :2] >= panel.min).all(axis=1) & (places[:, 2:] <= panel.max).all(axis=1)
        free = np.flatnonzero(inside & ~_overlap(places, taken))
        at = int(free[0]) if len(free) else 0  # where there is no room at all, none is left out
        text.set_position((places[at, 0] - point[0], places[at, 1] - point[1]))
        if _RINGS[at // len(_TURNS)] >= _LEADER_FROM:
            end = axes.transData.inverted().transform(np.clip(point, places[at, :2], places[at, 2:]))
            axes.plot(
                *zip((mark.x, mark.y), end, strict=True),
                color=INK,
                lw=0.5,
                alpha=0.6,
                zorder=1.5,
                scalex=False,
                scaley=False,
            )
        taken = np.concatenate([taken, places[at : at + 1]])


def _extents(axes: Axes, mark: Mark) -> Boxes:
    """What a point and each of its bars cover."""
    ends = mark.x + (mark.x_sd or 0), mark.y + (mark.y_sd or 0)
    (x, y), (right, top) = axes.transData.transform([(mark.x, mark.y), ends])
    reaches = ((_RADIUS, _RADIUS), (right - x, _CAP), (_CAP, top - y))
    return np.array([(x - wide, y - high, x + wide, y + high) for wide, high in reaches])


def _places(point: NDArray[np.float64], width: float, height: float) -> Boxes:
    """Boxes of a name around a point, the nearest first: beside it, above and below it, and between."""
    rings, turns = np.array(list(product(_RINGS, _TURNS))).T
    away = np.stack([np.cos(2 * np.pi * turns), np.sin(2 * np.pi * turns)], axis=1)
    half = np.array([width, height]) / 2
    middle = point + rings[:, None] * away + half * np.clip(1.6 * away, -1, 1)
    return np.concatenate([middle - half - 1, middle + half + 1], axis=1)


def _overlap(places: Boxes, taken: Boxes) -> NDArray[np.bool_]:
    """Whether each place lies on something."""
    low = places[:, None, :2] < taken[None, :, 2:]
    high = places[:, None, 2:] > taken[None, :, :2]
    covers: NDArray[np.bool_] = np.any(np.all(low & high, axis=2), axis=1)
    return covers
