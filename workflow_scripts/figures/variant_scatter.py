"""One measure against another: a point for every variant of a model, Pearson's r over a model's points where asked."""

from collections.abc import Sequence
from itertools import product
from statistics import fmean

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from workflow_scripts.evaluation.correlation import pearson
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.extraction import POINTS, UNITS, lacking, measured, names_and_scores
from workflow_scripts.figures.style import empty_panel, line_look, new_figure
from workflow_scripts.reporting.extraction_cells import Row, Scores, variants_of
from workflow_scripts.settings.extraction.cells import Names
from workflow_scripts.settings.figures.variant_scatter import NEEDS as NEEDS
from workflow_scripts.settings.figures.variant_scatter import Config
from workflow_scripts.settings.style import FigureStyle

COLUMNS = POINTS
TITLE = "{title}"
DESCRIPTION = "variant scatter: {title}"

_PANEL_INCHES = 3.6
_MARKS = "os^Dv<>P"


def points(request: Request[Config]) -> pa.Table:
    """What the configuration asks for, of the scores that there are."""
    return variants(request.config, *names_and_scores(request))


def variants(config: Config, names: Names, scores: Scores) -> pa.Table:
    """A row for each model and variant; means over draws, and no numbers where it lacks a measure."""
    rows: list[Row] = []
    for name, variant in product(config.models, variants_of(config.variants)):
        model = names.models[name]
        x, y = (scores.cell(model, variant, names.measures[axis]) for axis in (config.x, config.y))
        row: Row = {"panel": "", "series": name, "point": variant.text(names)}
        if x.by_draw and y.by_draw:
            row |= {"x": fmean(x.by_draw.values()), "y": fmean(y.by_draw.values()), "tasks": len(y.by_task)}
        else:
            row |= {"note": "; ".join(dict.fromkeys([*x.notes, *y.notes]))}
        rows.append(row)
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def draw(
    points: pa.Table, request: Request[Config], style: FigureStyle, title: str, footnotes: Sequence[str]
) -> Figure:
    """A mark and colour for each model."""
    config = request.config
    names = Names.parse(dict(request.names), "extraction")
    every = points.to_pylist()
    rows = [row for row in every if row["y"] is not None]
    hidden = sum(row["y"] <= 0 for row in rows) if config.y_scale == "log" else 0
    lost = f"Points at or below 0, which a logarithmic axis does not show: {hidden}." if hidden else None
    notes = [note for note in (config.note, UNITS, lost) if note]
    notes += lacking(every, lambda row: names.model(row["series"]))
    figure = new_figure(style, _PANEL_INCHES, title, notes, footnotes)
    if not rows:
        empty_panel(figure, f"No model has both {config.x} and {config.y}.")
        return figure
    axes = figure.subplots()
    for number, model in enumerate(dict.fromkeys(row["series"] for row in rows)):
        x, y = (np.array([row[axis] for row in rows if row["series"] == model]) for axis in "xy")
        name = names.model(model)
        name = f"{name} (r = {pearson(x, y):.2f})" if config.correlation and len(x) > 2 else name
        axes.plot(x, y, _MARKS[number % len(_MARKS)], color=line_look(number)["color"], ms=4, label=name)
    axes.set_xlabel(measured(request, names, config.x))
    axes.set_ylabel(measured(request, names, config.y))
    if config.y_scale == "log":
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
        axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid()
    axes.legend(frameon=False, fontsize="small", loc="center left", bbox_to_anchor=(1, 0.5))
    return figure
