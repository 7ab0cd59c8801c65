"""Runs as points of a plane, with bars of one standard deviation and their names next to them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import cos, dist, pi, sin
from typing import Any, NamedTuple

from matplotlib.axes import Axes
from matplotlib.text import Annotation

from workflow_scripts.figures.style import INK, Names, short_names
from workflow_scripts.reporting.called import Called

HOW_DRAWN = "Circles: means over seeds, bars one standard deviation; squares: one seed, so no bar."

_RADIUS = 5.5  # pixels of a point with its edge
_CAP = 3.0  # pixels of a bar to either side
_AIR = 2.0  # pixels between a name and what is next to it
_RINGS = (0, 9, 20, 34, 50, 70, 95, 130, 180, 240)  # pixels from a point to its name, tried from the nearest
_DIRECTIONS = 24
_LEADER_FROM = 9  # pixels; a name further away is joined to its point by a line
_CLEARLY = 10  # pixels by which a name without a line is nearer to its point than to others

Pixel = tuple[float, float]


class Box(NamedTuple):
    """Some pixels; matplotlib's own ``Bbox`` is slow to compare, and a crowded panel compares millions."""

    x0: float
    y0: float
    x1: float
    y1: float


class Mark(NamedTuple):
    """One run: means over seeds and, where there are several seeds, standard deviations."""

    run: str
    x: float
    y: float
    x_sd: float | None
    y_sd: float | None


def words(runs: Sequence[str], called: Called) -> Names:
    """Names in words, for points that have room for them."""
    return short_names(runs, called)


def numbers(runs: Sequence[str], called: Called) -> Names:
    """Numbers with a key."""
    names = short_names(runs, called)
    short = {run: str(number) for number, run in enumerate(names.short, start=1)}
    key = "; ".join(f"{short[run]}\N{NO-BREAK SPACE}{name}" for run, name in names.short.items())
    return Names(short, [f"Points: {key}.", *names.footnotes])


def without_point(runs: Sequence[str], called: Called) -> list[str]:
    """A note that names the runs that could not be drawn, if there are any."""
    names = "; ".join(called.run(run) for run in runs)
    return [f"Without a point, for want of scores: {names}."] if runs else []


def draw_mark(axes: Axes, mark: Mark, colour: Any) -> None:
    """A point with its bars; a square where there is one seed."""
    axes.errorbar(mark.x, mark.y, mark.y_sd, mark.x_sd, color=INK, lw=0.8, capsize=2, zorder=2)
    shape = "s" if mark.x_sd is None and mark.y_sd is None else "o"
    axes.plot(mark.x, mark.y, shape, ms=7, mfc=colour, mec=INK, mew=0.7, zorder=3)


def name_marks(axes: Axes, marks: Sequence[Mark], names: Mapping[str, str], *, crowded: bool = False) -> bool:
    """Write each run's name as near to its point as it covers nothing; whether there was room for all of them.

    Where it is ``crowded``, lines from names to their points may cross other points, and where there is no room all the
    same, a name covers something: none is left out.
    """
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    taken = [box for mark in marks for box in _extents(axes, mark)]
    points = [_pixel(axes, mark) for mark in marks]
    inside = Box(*axes.get_window_extent().extents)
    for mark, point in zip(marks, points, strict=True):
        name = axes.annotate(
            names[mark.run], (mark.x, mark.y), (0, 0), textcoords="offset pixels", size="small", zorder=4
        )
        name.set_horizontalalignment("left")
        name.set_verticalalignment("bottom")
        size = name.get_window_extent()
        others = [where for where in points if where != point]
        places = [place for place in _places(point, size.width, size.height) if _is_inside(place.box, inside)]
        told = (
            place
            for place in places
            if _is_told(place, point, others) and _is_free(place, taken) and _is_clear(place, point, taken)
        )
        lined = (place for place in places if crowded and place.leader and _is_free(place, taken))
        place = next(told, None) or next(lined, None) or (places[0] if crowded and places else None)
        if place is None:
            name.remove()
            return False
        _move(axes, name, place, point)
        taken += [_grown(place.box, _AIR), *place.leader]
    return True


class _Place(NamedTuple):
    """Where a name may be: its pixels, and small boxes along the line to its point, if it needs one."""

    box: Box
    leader: list[Box]


def _places(point: Pixel, width: float, height: float) -> Iterator[_Place]:
    """Places of a name around a point, the nearest first, to the right before the left."""
    for ring in _RINGS:
        for step in sorted(range(_DIRECTIONS), key=lambda step: min(step, _DIRECTIONS - step)):
            angle = 2 * pi * step / _DIRECTIONS
            away = _RADIUS + _AIR + ring
            x = point[0] + away * cos(angle) + width / 2 * _side(cos(angle))
            y = point[1] + away * sin(angle) + height / 2 * _side(sin(angle))
            box = _box(x - width / 2, y - height / 2, width, height)
            yield _Place(box, _line(point, box) if ring >= _LEADER_FROM else [])


def _side(share: float) -> float:
    """Which part of a name's half lies beyond its anchor: all of it sideways, none of it straight above."""
    return max(-1.0, min(1.0, 1.6 * share))


def _line(point: Pixel, box: Box) -> list[Box]:
    """Boxes of a pixel along the line from the edge of a point to the nearest place of a name."""
    end = _nearest(point, box)
    length = max(1.0, dist(point, end))
    shares = [number / length for number in range(int(_RADIUS) + 2, int(length), 2)]
    (x, y), (right, up) = point, (end[0] - point[0], end[1] - point[1])
    return [_box(x + share * right - 0.5, y + share * up - 0.5, 1, 1) for share in shares]


def _nearest(point: Pixel, box: Box) -> Pixel:
    return min(max(point[0], box.x0), box.x1), min(max(point[1], box.y0), box.y1)


def _is_inside(box: Box, panel: Box) -> bool:
    return bool(panel.x0 <= box.x0 and box.x1 <= panel.x1 and panel.y0 <= box.y0 and box.y1 <= panel.y1)


def _is_free(place: _Place, taken: Iterable[Box]) -> bool:
    return not any(_overlap(place.box, other) for other in taken)


def _is_clear(place: _Place, point: Pixel, taken: Iterable[Box]) -> bool:
    """Whether the line to a name crosses nothing but its own point and bars."""
    own = _box(point[0] - 1, point[1] - 1, 2, 2)
    if not place.leader:
        return True
    around = _around(place.leader)
    along = [other for other in taken if _overlap(around, other)]
    crossed = [other for other in along if any(_overlap(part, other) for part in place.leader)]
    return all(_overlap(own, other) for other in crossed)


def _around(boxes: Sequence[Box]) -> Box:
    """The smallest box that holds all of them."""
    lefts, bottoms, rights, tops = zip(*boxes, strict=True)
    return Box(min(lefts), min(bottoms), max(rights), max(tops))


def _is_told(place: _Place, point: Pixel, others: Iterable[Pixel]) -> bool:
    """Whether readers take a name for that of its own point: no other is about as near, or there is a line to it."""
    least = _RADIUS + _AIR + 2 if place.leader else _away(place.box, point) + _CLEARLY
    return all(_away(place.box, other) > least for other in others)


def _away(box: Box, point: Pixel) -> float:
    return dist(point, _nearest(point, box))


def _pixel(axes: Axes, mark: Mark) -> Pixel:
    x, y = axes.transData.transform((mark.x, mark.y)).tolist()
    return x, y


def _move(axes: Axes, name: Annotation, place: _Place, point: Pixel) -> None:
    """Put a name into its place, with a line to its point where that is some way off."""
    name.set_position((place.box.x0 - point[0], place.box.y0 - point[1]))
    if place.leader:
        ends = [point, _nearest(point, _grown(place.box, _AIR / 2))]
        line = axes.transData.inverted().transform(ends)
        axes.plot(*line.T, color=INK, lw=0.5, alpha=0.6, zorder=1.5, scalex=False, scaley=False)


def _extents(axes: Axes, mark: Mark) -> Iterator[Box]:
    """Pixels that a point and each of its bars cover."""
    ends = mark.x + (mark.x_sd or 0), mark.y + (mark.y_sd or 0)
    (x, y), (right, top) = axes.transData.transform([(mark.x, mark.y), ends])
    for wide, high in ((_RADIUS, _RADIUS), (right - x, _CAP), (_CAP, top - y)):
        yield Box(x - wide, y - high, x + wide, y + high)


def _box(x: float, y: float, width: float, height: float) -> Box:
    return Box(x, y, x + width, y + height)


def _grown(box: Box, by: float) -> Box:
    return Box(box.x0 - by, box.y0 - by, box.x1 + by, box.y1 + by)


def _overlap(one: Box, other: Box) -> bool:
    return bool(one.x0 < other.x1 and other.x0 < one.x1 and one.y0 < other.y1 and other.y0 < one.y1)
