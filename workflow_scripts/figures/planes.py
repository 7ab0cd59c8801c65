"""Runs as points of a plane, with bars of one standard deviation and their names next to them.

Two columns of a table against each other (JTCSE, Fig. 10), or alignment against uniformity, where lower left is better
(Wang and Isola, ICML 2020). What counts as a positive pair, on which dataset, and whether vectors are normalised
differs between papers; it is a task of its suite, and its note goes into the figure.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy.typing import NDArray

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.evaluation.correlation import pearson, spearman
from workflow_scripts.evaluation.significance import summarise
from workflow_scripts.figures.base import FigureKind, Request, column_label
from workflow_scripts.figures.style import COLOURS, INK, Names, colour_bar, short_names, upright
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.called import Called
from workflow_scripts.reporting.experiment import experiment_of
from workflow_scripts.settings.experiment import Experiment
from workflow_scripts.settings.figures import AlignmentUniformity, Scatter

_HOW_DRAWN = "Circles: means over seeds, bars one standard deviation; squares: one seed, so no bar."
_PANEL_INCHES = 4.2
_COLOURS = ListedColormap(
    colormaps["cividis"](np.linspace(0.12, 1, 48))
)  # from 50 on, the bar becomes a bitmap

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


Row = dict[str, Any]


class Mark(NamedTuple):
    """One run: means over seeds, null without a score, and standard deviations where there are several seeds."""

    run: str
    x: Any
    y: Any
    x_sd: float | None
    y_sd: float | None


Shades = Callable[[Axes, Sequence[str]], Sequence[Any]]
"""Draws a scale where there is one, and gives the colours of some runs."""


def draw_plane(
    request: Request[Any],
    every: Sequence[Mark],
    labels: tuple[str, str],
    empty: str,
    notes: tuple[Sequence[str], Sequence[str]],
    shades: Shades = lambda _, runs: [COLOURS[0]] * len(runs),
) -> Figure:
    """Draw the runs that have both numbers, and name the others below.

    Args:
        request: What the job hands to the figure.
        every: All runs.
        labels: Of the axes, to the right and upwards.
        empty: What is said where no run has both numbers.
        notes: Printed before and after those on runs.
        shades: Colours of points; without it, all have one.
    """
    marks = [mark for mark in every if mark.x is not None and mark.y is not None]
    if not marks:
        return request.empty(empty)
    runs = [mark.run for mark in marks]
    names = names_of(runs, request.called)
    lacking = "; ".join(request.called.run(mark.run) for mark in every if mark not in marks)
    undrawn = [f"Without a point, for want of scores: {lacking}."] if lacking else []
    figure = request.new_figure(_PANEL_INCHES, [_HOW_DRAWN, *notes[0], *names.footnotes, *undrawn, *notes[1]])
    axes = figure.subplots()
    axes.grid()
    axes.set_xlabel(labels[0])
    axes.set_ylabel(upright(labels[1], _PANEL_INCHES))
    axes.margins(0.14)
    draw_marks(axes, marks, shades(axes, runs), names.short)
    return figure


def names_of(runs: Sequence[str], called: Called) -> Names:
    """Names in words; of many runs numbers, with a key."""
    names = short_names(runs, called)
    if len(runs) <= _WORDS_UP_TO:
        return names
    short = {run: str(number) for number, run in enumerate(names.short, start=1)}
    key = "; ".join(f"{short[run]}\N{NO-BREAK SPACE}{name}" for run, name in names.short.items())
    return Names(short, [f"Points: {key}.", *names.footnotes])


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
        at = int(free[0]) if len(free) else 0  # without room anywhere, a name covers something, but is there
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


# Two columns of a table

SCATTER = pa.schema(
    [
        ("run", pa.string()),
        ("x", pa.float64()),
        ("x_sd", pa.float64()),
        ("y", pa.float64()),
        ("y_sd", pa.float64()),
    ]
)
"""Means and standard deviations over seeds of two columns of a table, a row per run; null where it has no score."""


def both_scores(table: Iterable[Row], shown: Scatter) -> pa.Table:
    """Two scores of every run, of rows with the columns of ``columns.tables.TABLE``."""
    cells = {(row["run"], row["heading"]): row for row in table}
    rows = []
    for run in dict.fromkeys(run for run, _ in cells):
        x, y = cells[run, shown.x], cells[run, shown.y]
        rows.append({"run": run, "x": x["mean"], "x_sd": x["sd"], "y": y["mean"], "y_sd": y["sd"]})
    return pa.Table.from_pylist(rows, schema=SCATTER)


def draw_scatter(points: pa.Table, request: Request[Scatter], experiment: Experiment) -> Figure:
    """Draw the points; a footnote says how the columns correlate over three runs or more."""
    shown = request.config
    marks = [Mark(**row) for row in points.to_pylist()]
    x, y = (column_label(experiment, heading, request.called) for heading in (shown.x, shown.y))
    empty = f"No run has both {shown.x} and {shown.y}."
    return draw_plane(request, marks, (x, y), empty, ([], _correlation(marks)))


def _correlation(every: Sequence[Mark]) -> list[str]:
    both = [(mark.x, mark.y) for mark in every if mark.x is not None and mark.y is not None]
    if len(both) < 3:
        return []
    x, y = np.array(both).T
    return [f"Over {len(x)} runs: Pearson {pearson(x, y):.2f}, Spearman {spearman(x, y):.2f}."]


# Alignment and uniformity

PLANE = pa.schema(
    [
        ("run", pa.string()),
        ("seeds", pa.int32()),
        ("alignment", pa.float64()),
        ("alignment_sd", pa.float64()),
        ("uniformity", pa.float64()),
        ("uniformity_sd", pa.float64()),
        ("score", pa.float64()),
        ("note", pa.string()),
    ]
)
"""One point of the alignment-uniformity plane per run, means and standard deviations over seeds; the note says what
was measured, or why there is no point. ``score`` is the mean of the grid's headline column, times its scale."""


def plane_points(request: Request[AlignmentUniformity]) -> pa.Table:
    """A point for every run."""
    experiment = experiment_of(*request.inputs["table"])
    table = read_table(request.inputs["table"][0], TABLE)
    headline = table.filter(pc.equal(table["heading"], experiment.headline_column().heading))
    means = dict(zip(headline["run"].to_pylist(), headline["mean"].to_pylist(), strict=True))
    scores = (read_table(path, SCORES) for path in request.inputs["scores"])
    return plane(scores, means, request.config)


def plane(
    scores: Iterable[pa.Table], headline: Mapping[str, float | None], config: AlignmentUniformity
) -> pa.Table:
    """A row per run in the order of its first score; ``headline`` has the score of each."""
    of_run: dict[str, list[Row]] = {}
    for table in scores:
        for row in table.filter(pc.equal(table["task"], config.task)).to_pylist():
            of_run.setdefault(row["run"], []).append(row)
    return pa.Table.from_pylist(
        [_point(run, rows) | {"score": headline[run]} for run, rows in of_run.items()],
        schema=PLANE,
    )


def _point(run: str, rows: Sequence[Row]) -> Row:
    notes = dict.fromkeys(row["note"] for row in rows if row["note"])
    point: Row = {"run": run, "seeds": 0, "note": "; ".join(notes) or None}
    for metric in ("uniformity", "alignment"):
        values = [row["value"] for row in rows if row["metric"] == metric and row["value"] is not None]
        point["seeds"] = len(values)  # with an alignment
        if values:
            point |= {metric: summarise(values).mean, f"{metric}_sd": summarise(values).sd}
    return point


def draw_alignment(points: pa.Table, request: Request[AlignmentUniformity], experiment: Experiment) -> Figure:
    """Draw the plane, coloured by the experiment's headline; an open point has no score."""
    heading = column_label(experiment, experiment.headline_column().heading, request.called)
    rows = points.to_pylist()
    marks = [
        Mark(row["run"], row["uniformity"], row["alignment"], row["uniformity_sd"], row["alignment_sd"])
        for row in rows
    ]
    scores = {row["run"]: row["score"] for row in rows}
    data = request.called.dataset(request.config.task)
    x, y = (f"{metric} on {data} (lower is better)" for metric in ("uniformity", "alignment"))
    tasks = ", ".join(sorted({row["note"] for row in rows if row["note"] and row["alignment"] is not None}))
    return draw_plane(
        request,
        marks,
        (x, y),
        "Alignment and uniformity are gaps for every run.",
        ([f"{data}: {tasks}."] if tasks else [], []),
        lambda axes, runs: _shades(axes, [scores[run] for run in runs], heading),
    )


def _shades(axes: Axes, scores: Sequence[float | None], heading: str) -> list[Any]:
    """The colours of scores, with a bar of them where there are some; none for a run without a score."""
    scored = [score for score in scores if score is not None]
    if not scored:
        return ["none"] * len(scores)
    source = axes.scatter([], [], c=[], cmap=_COLOURS, norm=Normalize(min(scored), max(scored)))
    figure = axes.get_figure(root=True)
    assert figure is not None
    colour_bar(figure, source, heading, ax=axes, aspect=30, pad=0.02)
    return ["none" if score is None else _COLOURS(source.norm(np.array([score])))[0] for score in scores]


KINDS = {
    "scatter": FigureKind(
        columns=SCATTER,
        title="Two scores of every run: {title}",
        description="A point per run, one column of the table to the right, another upwards.",
        points=lambda asked: both_scores(
            read_table(asked.inputs["table"][0], TABLE).to_pylist(), asked.config
        ),
        draw=lambda points, asked: draw_scatter(points, asked, experiment_of(*asked.inputs["table"])),
    ),
    "alignment_uniformity": FigureKind(
        columns=PLANE,
        title="Alignment and uniformity: {title}",
        description=(
            "A point per run: uniformity to the right, alignment upwards, both better when lower; colour: score."
        ),
        points=plane_points,
        draw=lambda points, asked: draw_alignment(points, asked, experiment_of(*asked.inputs["table"])),
    ),
}
