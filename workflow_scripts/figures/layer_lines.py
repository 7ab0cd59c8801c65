"""Scores layer by layer: a line a series, the standard deviation over tasks as its shadow."""

from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from workflow_scripts.figures.base import Request
from workflow_scripts.figures.extraction import POINTS, UNITS, lacking, measured, names_and_scores
from workflow_scripts.figures.style import empty_panel, line_look, upright
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.extraction import NOT_ASKED, Scores, Variant
from workflow_scripts.settings.extraction.cells import Model, Names
from workflow_scripts.settings.figures.layer_lines import Config, Series

COLUMNS = POINTS
TITLE = "{title}"
DESCRIPTION = "layer lines: {title}"

_ROW_INCHES = 2.1
_NAME_INCHES = 0.15
_DIAMONDS = "Diamonds: scored in one layer only."


def points(request: Request[Config]) -> pa.Table:
    """What the configuration asks for, of the scores that there are."""
    return lines(request.config, *names_and_scores(request))


def lines(config: Config, names: Names, scores: Scores) -> pa.Table:
    """A row for each panel, line and layer; a representation without layers is a line across."""
    rows: list[Row] = []
    axis = _axis(config, scores)
    for measure in config.measures:
        for line in config.series:
            variant = Variant(line.weighting, "none")
            flat = scores.layers(line.representation) == ["static"]
            for place, layer in enumerate(axis):
                model = Model(
                    representation=line.representation, mixing_weight=0, layers="static" if flat else layer
                )
                values = scores.cell(model, variant, names.measures[measure])
                row: Row = {
                    "panel": f"{measure} | {line.panel}",
                    "series": _series(line, names),
                    "point": layer,
                }
                if of_task := list(values.by_task.values()):
                    spread = stdev(of_task) if len(of_task) > 1 else None
                    row |= {"x": place, "y": fmean(of_task), "spread": spread, "tasks": len(of_task)}
                    rows.append(row)
                elif NOT_ASKED not in values.notes:
                    rows.append(row | {"x": place, "note": "; ".join(values.notes)})
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def _series(line: Series, names: Names) -> str:
    """What the data call a line."""
    return f"{line.representation}, {names.weightings[line.weighting]}"


def _axis(config: Config, scores: Scores) -> list[str]:
    layers = dict.fromkeys(layer for line in config.series for layer in scores.layers(line.representation))
    return [*sorted((layer for layer in layers if layer.isdigit()), key=int), *config.sums]


def draw(points: pa.Table, request: Request[Config]) -> Figure:
    """Measures below each other, columns of panels side by side."""
    config, every, names = request.config, points.to_pylist(), Names.parse(dict(request.names), "extraction")
    rows = [row for row in every if row["y"] is not None]
    columns = list(dict.fromkeys(line.panel for line in config.series))
    lengths = Counter((row["panel"], row["series"]) for row in rows)
    notes = [f"{UNITS} {_DIAMONDS}" if 1 in lengths.values() else UNITS]
    notes += lacking(every, lambda row: f"{row['panel']}, {row['series']}")
    most = max(Counter(line.panel for line in config.series).values())
    height = _ROW_INCHES * len(config.measures) + _NAME_INCHES * (most + 1)
    figure = request.new_figure(height, notes)
    if not rows:
        empty_panel(figure, "No layer was scored.")
        return figure
    ticks = dict(sorted({row["x"]: row["point"] for row in rows}.items()))
    panels = figure.subplots(len(config.measures), len(columns), squeeze=False, sharex=True, sharey="row")
    for down, column in zip(panels.T, columns, strict=True):
        panel = _panel([line for line in config.series if line.panel == column], names)
        for axes, measure in zip(down, config.measures, strict=True):
            for name, (label, look) in panel.lines.items():
                drawn = [
                    row for row in rows if (row["panel"], row["series"]) == (f"{measure} | {column}", name)
                ]
                _line(axes, drawn, label, look)
            axes.grid()
            axes.set_xticks(list(ticks), list(ticks.values()), rotation=90)
        heading = f"{column}: {panel.shared}" if panel.shared else column
        named = {line.get_label(): line for axes in down for line in axes.lines}
        # Above the panel, where no line is.
        down[0].legend(named.values(), named, title=heading, alignment="left", frameon=False, fontsize="small",
                       loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.3, borderpad=0)  # fmt: skip
        down[-1].set_xlabel("layer")
    for axes, measure in zip(panels[:, 0], config.measures, strict=True):
        axes.set_ylabel(upright(measured(request, names, measure), _ROW_INCHES))
    return figure


class _Panel(NamedTuple):
    """A column of panels: label and look of each of its lines, and what all of them have in common."""

    lines: dict[str, tuple[str, dict[str, Any]]]
    shared: str


def _panel(series: Sequence[Series], names: Names) -> _Panel:
    parts = [
        (
            names.representations.get(line.representation, line.representation),
            names.weightings[line.weighting],
        )
        for line in series
    ]
    shared = [texts[0] for texts in zip(*parts, strict=True) if len(series) > 1 and len(set(texts)) == 1]
    labels = [", ".join(text for text in part if text not in shared) or part[0] for part in parts]
    keys = [_series(line, names) for line in series]
    looks = map(line_look, range(len(series)))
    lines = {key: (label, look) for key, label, look in zip(keys, labels, looks, strict=True)}
    return _Panel(lines, ", ".join(shared))


def _line(axes: Axes, rows: Sequence[dict[str, Any]], label: str, look: Mapping[str, Any]) -> None:
    if not rows:
        return
    x, y, spread = (np.array([row[key] or 0 for row in rows], float) for key in ("x", "y", "spread"))
    # A line of one point is not seen.
    mark: dict[str, Any] = {"marker": "D", "ms": 4.5} if len(rows) == 1 else {}
    axes.plot(x, y, label=label, lw=1.2, **look, **mark)
    axes.fill_between(x, y - spread, y + spread, color=look["color"], alpha=0.12, lw=0)
