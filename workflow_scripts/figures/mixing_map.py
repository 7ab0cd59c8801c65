"""Scores over the share of static averages and the layer: a map a measure, a cross at its maximum."""

from itertools import product
from statistics import fmean

import numpy as np
import pyarrow as pa
from matplotlib import colormaps
from matplotlib.figure import Figure

from workflow_scripts.figures.base import Request
from workflow_scripts.figures.extraction import HUNDRED, POINTS, UNITS, lacking, names_and_scores
from workflow_scripts.figures.style import INK, PAPER, empty_panel
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.extraction import NOT_ASKED, Scores, Variant
from workflow_scripts.settings.extraction.cells import Measure, Model, Names
from workflow_scripts.settings.figures.mixing_map import Config

COLUMNS = POINTS
TITLE = "{title}"
DESCRIPTION = "mixing map: {title}"

_ROW_INCHES = 2.4
_ACROSS = 3
_HOW_DRAWN = "Each map has a scale of its own; the cross is at its best value, the number above it."
_SHADES = colormaps["cividis"].resampled(32)


def points(request: Request[Config]) -> pa.Table:
    """What the configuration asks for, of the scores that there are."""
    return maps(request.config, *names_and_scores(request))


def maps(config: Config, names: Names, scores: Scores) -> pa.Table:
    """A row for each map, share and layer."""
    rows: list[Row] = []
    variant = Variant(config.weighting, "none")
    layers = scores.layers(config.representation)
    for measure, (place, layer), share in product(config.measures, enumerate(layers), config.mixing_weights):
        model = Model(representation=config.representation, mixing_weight=share, layers=layer)
        for name, shown in _maps_of(config, scores, measure, names.measures[measure]).items():
            values = scores.cell(model, variant, shown)
            row: Row = {"panel": name, "series": layer, "point": f"{share:g}", "x": place}
            if values.by_seed:
                rows.append(row | {"y": fmean(values.by_seed.values()), "tasks": len(values.by_task)})
            elif NOT_ASKED not in values.notes:
                rows.append(row | {"note": "; ".join(values.notes)})
    return pa.Table.from_pylist(rows, schema=COLUMNS)


def _maps_of(config: Config, scores: Scores, name: str, measure: Measure) -> dict[str, Measure]:
    """The measure itself, or that of each of its tasks under the name of the task."""
    if not config.split:
        return {name: measure}
    return {task: measure.model_copy(update={"tasks": [task]}) for task in scores.tasks(measure)}


def draw(points: pa.Table, request: Request[Config]) -> Figure:
    """Maps, three side by side; shares upwards, layers to the right."""
    config, every = request.config, points.to_pylist()
    rows = [row for row in every if row["y"] is not None]
    called = Names.parse(dict(request.names), "extraction")
    names = list(dict.fromkeys(row["panel"] for row in rows))
    down = max(1, -(-len(names) // _ACROSS))
    source = called.representations.get(config.representation, config.representation)
    units = HUNDRED if config.split else UNITS
    notes = [f"{source}, of which a share w is its static averages. {units} {_HOW_DRAWN}"]
    notes += lacking(every, lambda row: called.datasets.get(row["panel"]) or str(row["panel"]))
    figure = request.new_figure(_ROW_INCHES * down, notes)
    if not names:
        empty_panel(figure, "No share of static averages was scored.")
        return figure
    shares = [f"{share:g}" for share in config.mixing_weights]
    layers = list(dict(sorted((row["x"], row["series"]) for row in rows)).values())
    panels = figure.subplots(down, min(_ACROSS, len(names)), squeeze=False)
    for axes, name in zip(panels.flat, names, strict=False):
        grid = np.full((len(shares), len(layers)), np.nan)
        for row in rows:
            if row["panel"] == name:
                grid[shares.index(row["point"]), layers.index(row["series"])] = row["y"]
        mesh = axes.pcolormesh(grid, cmap=_SHADES)
        best = np.unravel_index(np.nanargmax(grid), grid.shape)
        for colour, width in ((INK, 3.0), (PAPER, 1.2)):  # seen on bright and on dark
            axes.plot(best[1] + 0.5, best[0] + 0.5, "x", color=colour, ms=6, mew=width)
        axes.set_title(f"{called.datasets.get(name, name)}: {grid[best]:.1f}")
        axes.set_xticks(np.arange(len(layers)) + 0.5, layers, rotation=90)
        axes.set_yticks(np.arange(len(shares)) + 0.5, shares)
        axes.set_xlabel("layer")
        axes.set_ylabel("w")
        mesh.set_edgecolor("face")
    for axes in panels.flat[len(names) :]:
        axes.set_axis_off()
    return figure
