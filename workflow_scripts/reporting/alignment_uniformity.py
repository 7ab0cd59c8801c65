"""The alignment-uniformity plane: a point per run, lower left is better.

Wang and Isola, ICML 2020. What counts as a positive pair, on which dataset, and whether vectors are
normalised differs between papers; it is the task of a geometry suite, and its note goes into the figure.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from matplotlib import colormaps
from matplotlib.colors import ListedColormap, Normalize
from matplotlib.figure import Figure
from numpy import linspace
from pydantic import Field

from workflow_scripts.config import Slice
from workflow_scripts.errors import ConfigError
from workflow_scripts.evaluation.significance import Summary, summarise
from workflow_scripts.reporting.named_points import Mark, draw_mark, name_marks, names_of
from workflow_scripts.reporting.style import INK, FigureStyle, empty_panel, new_figure
from workflow_scripts.schemas import ALIGNMENT_UNIFORMITY

Row = dict[str, Any]

TITLE = "Alignment and uniformity"
DESCRIPTION = (
    "A point per run: uniformity to the right, alignment upwards, both better when lower; colour: score."
)

_PANEL_INCHES = 4.2
_COLOURS = ListedColormap(colormaps["cividis"](linspace(0.12, 1, 48)))  # from 50 on, the bar becomes a bitmap


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
    names = names_of([row["run"] for row in rows])
    figure = new_figure(style, _PANEL_INCHES, title, [*names.footnotes, *footnotes])
    axes = figure.subplots()
    axes.grid()
    axes.set_xlabel("uniformity (lower is better)")
    axes.set_ylabel("alignment (lower is better)")
    axes.margins(0.14)
    scored = [row["score"] for row in rows if row["score"] is not None]
    shades = Normalize(min(scored), max(scored)) if scored else Normalize(0, 1)
    marks = [
        Mark(row["run"], row["uniformity"], row["alignment"], row["uniformity_sd"], row["alignment_sd"])
        for row in rows
    ]
    for row, mark in zip(rows, marks, strict=True):
        draw_mark(axes, mark, "none" if row["score"] is None else _COLOURS(shades(row["score"])))
    if scored:
        source = axes.scatter([], [], c=[], cmap=_COLOURS, norm=shades)
        bar = figure.colorbar(source, ax=axes, aspect=30, pad=0.02)
        bar.set_label(heading)
        assert bar.solids is not None
        bar.solids.set_edgecolor("face")  # viewers leave gaps between its steps
        bar.outline.set_edgecolor(INK)
    name_marks(axes, marks, names.short)
    return figure
