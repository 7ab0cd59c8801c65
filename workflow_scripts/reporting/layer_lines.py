"""Scores layer by layer: a line a series, the standard deviation over tasks as its shadow."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import pyarrow as pa
from matplotlib.figure import Figure
from pydantic import Field

from workflow_scripts.config import Slice
from workflow_scripts.reporting.extraction_cells import Model, Names, Scores, Shape
from workflow_scripts.reporting.style import FigureStyle, empty_panel, line_look, new_figure
from workflow_scripts.schemas import EXTRACTION_POINTS

_ROW_INCHES = 2.3


class Series(Slice):
    """One line."""

    panel: str = Field(description="Column of panels it is drawn in.")
    source: str
    weighting: str


class Config(Slice):
    """Which lines of which measures."""

    kind: Literal["layer_lines"]
    title: str
    measures: list[str] = Field(min_length=1, description="A row of panels each.")
    series: list[Series] = Field(min_length=1)
    sums: list[str] = Field(description="Sums of layers that end the horizontal axis.")
    below: str = Field(description="Table of the page that the figure stands below.")


def points(config: Config, names: Names, scores: Scores) -> pa.Table:
    """A row for each panel, line and layer; a source without layers is a line across."""
    rows = []
    axis = _axis(config, scores)
    for measure in config.measures:
        for line in config.series:
            shape = Shape(line.weighting, "none")
            flat = scores.layers(line.source) == ["static"]
            for place, layer in enumerate(axis):
                model = Model(source=line.source, share=0, layers="static" if flat else layer)
                values = scores.cell(model, shape, names.measures[measure])
                if values.by_draw:
                    of_task = list(values.by_task.values())
                    rows.append(
                        {
                            "panel": f"{measure} | {line.panel}",
                            "series": f"{line.source}, {names.weightings[line.weighting]}",
                            "point": layer,
                            "x": place,
                            "y": float(np.mean(of_task)),
                            "spread": float(np.std(of_task)) if len(of_task) > 1 else None,
                            "tasks": len(of_task),
                        }
                    )
    return pa.Table.from_pylist(rows, schema=EXTRACTION_POINTS)


def _axis(config: Config, scores: Scores) -> list[str]:
    layers = dict.fromkeys(layer for line in config.series for layer in scores.layers(line.source))
    return [*sorted((layer for layer in layers if layer.isdigit()), key=int), *config.sums]


def draw(points: pa.Table, config: Config, style: FigureStyle, footnotes: Sequence[str]) -> Figure:
    """Measures below each other, columns of panels side by side."""
    rows = points.to_pylist()
    columns = list(dict.fromkeys(line.panel for line in config.series))
    figure = new_figure(style, _ROW_INCHES * len(config.measures), config.title, footnotes)
    if not rows:
        empty_panel(figure, "No layer was scored.")
        return figure
    ticks = dict(sorted({row["x"]: row["point"] for row in rows}.items()))
    panels = figure.subplots(len(config.measures), len(columns), squeeze=False, sharex=True, sharey="row")
    for across, measure in zip(panels, config.measures, strict=True):
        across[0].set_ylabel(measure)
        for axes, column in zip(across, columns, strict=True):
            here = [row for row in rows if row["panel"] == f"{measure} | {column}"]
            for number, name in enumerate(dict.fromkeys(row["series"] for row in here)):
                line = [row for row in here if row["series"] == name]
                x, y, spread = (
                    np.array([row[key] or 0 for row in line], float) for key in ("x", "y", "spread")
                )
                look = line_look(number)
                axes.plot(x, y, label=name, lw=1.2, **look)
                axes.fill_between(x, y - spread, y + spread, color=look["color"], alpha=0.12, lw=0)
            axes.grid()
            axes.set_title(column)
            axes.set_xticks(list(ticks), list(ticks.values()), rotation=90)
            if here:
                axes.legend(frameon=False, fontsize="small")
    for axes in panels[-1]:
        axes.set_xlabel("layer")
    return figure
