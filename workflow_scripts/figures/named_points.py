"""Runs as points of a plane, with bars of one standard deviation and their names next to them."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

from workflow_scripts.figures.style import INK, Names, short_names

_NAMES_UP_TO = 8  # points; the names of more would cover each other
_RADIUS = 6.0  # pixels of a point with its edge
_PLACES = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]  # of a name around its point


class Mark(NamedTuple):
    """One run: means over seeds and, where there are several seeds, standard deviations."""

    run: str
    x: float
    y: float
    x_sd: float | None
    y_sd: float | None


def names_of(runs: Sequence[str]) -> Names:
    """Names for points; numbers with a key where there are many."""
    names = short_names(runs)
    if len(runs) <= _NAMES_UP_TO:
        return names
    numbers = {run: str(number) for number, run in enumerate(names.short, start=1)}
    key = "; ".join(f"{numbers[run]}\N{NO-BREAK SPACE}{name}" for run, name in names.short.items())
    return Names(numbers, [f"Points: {key}.", *names.footnotes])


def draw_mark(axes: Axes, mark: Mark, colour: Any) -> None:
    """A point with its bars."""
    axes.errorbar(mark.x, mark.y, mark.y_sd, mark.x_sd, color=INK, lw=0.8, capsize=2, zorder=2)
    axes.plot(mark.x, mark.y, "o", ms=7, mfc=colour, mec=INK, mew=0.7, zorder=3)


def name_marks(axes: Axes, marks: Sequence[Mark], names: Mapping[str, str]) -> None:
    """Write each run's name next to its point, on the first side where it covers nothing."""
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    taken = [_extent(axes, mark) for mark in marks]
    inside = axes.get_window_extent()
    for mark, own in zip(marks, list(taken), strict=True):
        tried = []
        for right, up in _PLACES:
            name = axes.annotate(
                names[mark.run],
                (mark.x, mark.y),
                ((own.width / 2 + 2) * right, (own.height / 2 + 2) * up),
                textcoords="offset pixels",
                size="small",
                ha=_aligned(right, "left", "right"),
                va=_aligned(up, "bottom", "top"),
                zorder=4,
            )
            box = name.get_window_extent()
            covered = sum(_area(box, other) for other in taken if other is not own) + _outside(box, inside)
            tried.append((covered, name, box))
            if covered == 0:
                break
        best = min(range(len(tried)), key=lambda index: tried[index][0])
        for index, (_, name, box) in enumerate(tried):
            if index == best:
                taken.append(box)
            else:
                name.remove()


def _extent(axes: Axes, mark: Mark) -> Bbox:
    """Pixels that a point and its bars cover."""
    ends = mark.x + (mark.x_sd or 0), mark.y + (mark.y_sd or 0)
    (x, y), (right, top) = axes.transData.transform([(mark.x, mark.y), ends])
    wide, high = max(right - x, _RADIUS), max(top - y, _RADIUS)
    return Bbox.from_extents(x - wide, y - high, x + wide, y + high)


def _aligned(side: int, after: str, before: str) -> str:
    return {1: after, -1: before, 0: "center"}[side]


def _area(one: Bbox, other: Bbox) -> float:
    shared = Bbox.intersection(one, other)
    return float(shared.width * shared.height) if shared else 0.0


def _outside(box: Bbox, inside: Bbox) -> float:
    return float(box.width * box.height) - _area(box, inside)
