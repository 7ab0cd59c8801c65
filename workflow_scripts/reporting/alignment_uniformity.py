"""The alignment-uniformity plane: a point per run, lower left is better.

Wang and Isola, ICML 2020. What counts as a positive pair, on which dataset, and whether vectors are
normalised differs between papers; it is the task of a geometry suite, and its note goes into the figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from matplotlib.transforms import Bbox
from numpy import linspace
from pydantic import Field

from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.significance import Summary, summarise
from workflow_scripts.reporting.style import INK, FigureStyle, Names, empty_panel, new_figure, short_names
from workflow_scripts.schemas import ALIGNMENT_UNIFORMITY

Row = dict[str, Any]

TITLE = "Alignment and uniformity"
DESCRIPTION = (
    "A point per run: uniformity to the right, alignment upwards, both better when lower; colour: score."
)

_PANEL_INCHES = 4.2
_NAMES_UP_TO = 8  # points; the names of more would cover each other
_RADIUS = 6.0  # pixels of a point with its edge
_COLOURS = ListedColormap(colormaps["cividis"](linspace(0.12, 1, 48)))  # from 50 on, the bar becomes a bitmap
_PLACES = [(1, 0), (-1, 0), (0, 1), (0, -1), (1, 1), (-1, 1), (1, -1), (-1, -1)]  # of a name around its point


class Config(Slice):
    """Which measurement is drawn."""

    suite: str = Field(description="Suite of the kind geometry.")
    task: str = Field(description="Name of a measurement of that suite, with alignment and uniformity.")


class Headline(NamedTuple):
    """The column that gives the points their colour: what it is called, and each run's mean."""

    heading: str
    means: Mapping[str, float | None]


def points(scores: Iterable[pa.Table], headline: Headline, config: Config) -> pa.Table:
    """A row per run in the order of its first score, columns of ``schemas.ALIGNMENT_UNIFORMITY``.

    Raises:
        ConfigError: if no score is of the task.
    """
    of_run: dict[str, list[Row]] = {}
    for table in scores:
        for row in table.to_pylist():
            if (row["suite"], row["task"]) == (config.suite, config.task):
                of_run.setdefault(row["run"], []).append(row)
    if not of_run:
        raise ConfigError(
            f"report.alignment_uniformity: no scores of task {config.task} in suite {config.suite}. "
            "Add the suite to the grid, or correct the name."
        )
    return pa.Table.from_pylist(
        [_point(run, rows) | {"score": headline.means[run]} for run, rows in of_run.items()],
        schema=ALIGNMENT_UNIFORMITY,
    )


def _point(run: str, rows: Sequence[Row]) -> Row:
    alignment, uniformity = (_over_seeds(rows, metric) for metric in ("alignment", "uniformity"))
    notes = dict.fromkeys(row["note"] for row in rows if row["note"])
    return {
        "run": run,
        "seeds": alignment.n if alignment else 0,
        "alignment": alignment and alignment.mean,
        "alignment_sd": alignment and alignment.sd,
        "uniformity": uniformity and uniformity.mean,
        "uniformity_sd": uniformity and uniformity.sd,
        "note": "; ".join(notes) or None,
    }


def _over_seeds(rows: Sequence[Row], metric: str) -> Summary | None:
    values = [row["value"] for row in rows if row["metric"] == metric and row["value"] is not None]
    return summarise(values) if values else None


def draw(points: pa.Table, heading: str, style: FigureStyle, title: str, footnotes: Sequence[str]) -> Figure:
    """Draw the plane; bars are one standard deviation over seeds, an open point has no score."""
    rows = [row for row in points.to_pylist() if row["alignment"] is not None]
    if not rows:
        figure = new_figure(style, 1, title, footnotes)
        empty_panel(figure, "Alignment and uniformity are gaps for every run.")
        return figure
    names = _names(rows)
    figure = new_figure(style, _PANEL_INCHES, title, [*names.footnotes, *footnotes])
    axes = figure.subplots()
    axes.grid()
    axes.set_xlabel("uniformity (lower is better)")
    axes.set_ylabel("alignment (lower is better)")
    axes.margins(0.14)
    scored = [row["score"] for row in rows if row["score"] is not None]
    shades = Normalize(min(scored), max(scored)) if scored else Normalize(0, 1)
    for row in rows:
        x, y = row["uniformity"], row["alignment"]
        axes.errorbar(x, y, row["alignment_sd"], row["uniformity_sd"], color=INK, lw=0.8, capsize=2, zorder=2)
        colour = "none" if row["score"] is None else _COLOURS(shades(row["score"]))
        axes.plot(x, y, "o", ms=7, mfc=colour, mec=INK, mew=0.7, zorder=3)
    if scored:
        source = axes.scatter([], [], c=[], cmap=_COLOURS, norm=shades)
        bar = figure.colorbar(source, ax=axes, aspect=30, pad=0.02)
        bar.set_label(heading)
        assert bar.solids is not None
        bar.solids.set_edgecolor("face")  # viewers leave gaps between its steps
        bar.outline.set_edgecolor(INK)
    _name_points(axes, rows, names)
    return figure


def _names(rows: Sequence[Row]) -> Names:
    """Names for points; numbers with a key where there are many."""
    names = short_names([row["run"] for row in rows])
    if len(rows) <= _NAMES_UP_TO:
        return names
    numbers = {run: str(number) for number, run in enumerate(names.short, start=1)}
    key = "; ".join(f"{numbers[run]}\N{NO-BREAK SPACE}{name}" for run, name in names.short.items())
    return Names(numbers, [f"Points: {key}.", *names.footnotes])


def _name_points(axes: Axes, rows: Sequence[Row], names: Names) -> None:
    """Write each run's name beside its point, on the first side where it covers nothing."""
    axes.figure.draw_without_rendering()  # type: ignore[union-attr]
    taken = [_extent(axes, row) for row in rows]
    inside = axes.get_window_extent()
    for row, own in zip(rows, list(taken), strict=True):
        tried = []
        for right, up in _PLACES:
            name = axes.annotate(
                names.short[row["run"]],
                (row["uniformity"], row["alignment"]),
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


def _extent(axes: Axes, row: Row) -> Bbox:
    """Pixels that a point and its bars cover."""
    middle = row["uniformity"], row["alignment"]
    bars = row["uniformity_sd"] or 0, row["alignment_sd"] or 0
    (x, y), (right, top) = axes.transData.transform([middle, (middle[0] + bars[0], middle[1] + bars[1])])
    wide, high = max(right - x, _RADIUS), max(top - y, _RADIUS)
    return Bbox.from_extents(x - wide, y - high, x + wide, y + high)


def _aligned(side: int, after: str, before: str) -> str:
    return {1: after, -1: before, 0: "center"}[side]


def _area(one: Bbox, other: Bbox) -> float:
    shared = Bbox.intersection(one, other)
    return float(shared.width * shared.height) if shared else 0.0


def _outside(box: Bbox, inside: Bbox) -> float:
    return float(box.width * box.height) - _area(box, inside)
