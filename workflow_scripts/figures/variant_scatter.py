"""One measure against another: a point for every variant of a model, Pearson's r over a model's points where asked."""

from itertools import product

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.evaluation.correlation import pearson
from workflow_scripts.figures.base import Request
from workflow_scripts.figures.extraction import UNITS, lacking, measured
from workflow_scripts.figures.style import empty_panel, line_look
from workflow_scripts.graph.extraction_rows import scattered
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.extraction import Scores, build, variants_of
from workflow_scripts.settings.extraction.cells import Names
from workflow_scripts.settings.extraction.tables import ExtractionTable
from workflow_scripts.settings.figures.variant_scatter import Config

COLUMNS = TABLE
TITLE = "{title}"
DESCRIPTION = "variant scatter: {title}"

_PANEL_INCHES = 3.6
_MARKS = "os^Dv<>P"


def points(request: Request[Config]) -> pa.Table:
    """Both measures of every variant and model, in the cells of a table, by which claims are judged too."""
    names = Names.parse(dict(request.names), "extraction")
    table = ExtractionTable.parse(scattered(request.config.model_dump()), "extraction.figures")
    return build(table, names, Scores.read(request.inputs["scores"], names))


def _pairs(points: pa.Table, config: Config, names: Names) -> list[Row]:
    """Each variant of each model: x and y, or a note that says why there is no point."""
    cells = {(row["run"], row["heading"]): row for row in points.to_pylist()}
    found = []
    for model, variant in product(config.models, variants_of(config.variants)):
        x, y = (cells[f"{axis}: {variant.text(names)}", model] for axis in (config.x, config.y))
        notes = (
            None
            if None not in (x["mean"], y["mean"])
            else dict.fromkeys(filter(None, (x["note"], y["note"])))
        )
        found.append({"series": model, "x": x["mean"], "y": y["mean"], "note": notes and "; ".join(notes)})
    return found


def draw(points: pa.Table, request: Request[Config]) -> Figure:
    """A mark and colour for each model."""
    config = request.config
    names = Names.parse(dict(request.names), "extraction")
    every = _pairs(points, config, names)
    rows = [row for row in every if None not in (row["x"], row["y"])]
    hidden = sum(row["y"] <= 0 for row in rows) if config.y_scale == "log" else 0
    lost = f"Points at or below 0, which a logarithmic axis does not show: {hidden}." if hidden else None
    notes = [note for note in (config.note, UNITS, lost) if note]
    notes += lacking(every, lambda row: names.model(row["series"]))
    figure = request.new_figure(_PANEL_INCHES, notes)
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
