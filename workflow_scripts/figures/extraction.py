"""Figures of the extraction study: scores layer by layer, over shares of static averages, and against each other."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import product
from statistics import fmean, stdev
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import NullFormatter, StrMethodFormatter

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.evaluation.correlation import pearson
from workflow_scripts.figures.base import FigureKind, Request
from workflow_scripts.figures.style import INK, PAPER, line_look, upright
from workflow_scripts.graph.extraction_rows import scattered
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.extraction import NOT_ASKED, Scores, Variant, build, variants_of
from workflow_scripts.settings.extraction.cells import Measure, Model, Names
from workflow_scripts.settings.extraction.tables import ExtractionTable
from workflow_scripts.settings.figures import LayerLines, MixingMap, Series, VariantScatter

POINTS = pa.schema(
    [
        ("panel", pa.string()),
        ("series", pa.string()),
        ("point", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("spread", pa.float64()),
        ("tasks", pa.int32()),
        ("note", pa.string()),
    ]
)
"""Points of one figure of the extraction study: what each panel and series shows at ``point``. ``spread`` is the
standard deviation over so many ``tasks``, null where y is no mean of tasks; ``note`` says why there is no y."""
HUNDRED = "Correlations and accuracies are times 100."
UNITS = f"Means over tasks; {HUNDRED[0].lower()}{HUNDRED[1:]}"


def _names(request: Request[Any]) -> Names:
    """The definitions of what a figure's block names."""
    return Names.parse(dict(request.names), "extraction")


def _scores(request: Request[Any]) -> Scores:
    """The scores that a figure reads."""
    return Scores.read(request.inputs["scores"], _names(request))


def _begin(
    request: Request[Any],
    inches: float,
    notes: Sequence[str],
    every: Sequence[Row],
    part: Callable[[Row], str],
    empty: str,
) -> tuple[Figure, list[Row]]:
    """A figure with its notes, and the rows that have a point; one panel says so where there are none.

    Args:
        request: What the job hands to the figure.
        inches: Height of the panels.
        notes: How the figure is drawn.
        every: Rows with x, y and the note that says why there is no y.
        part: The part of the figure that a row belongs to.
        empty: What is said where nothing can be drawn.
    """
    rows = [row for row in every if None not in (row["x"], row["y"])]
    said = [*notes, *_lacking(every, part)]
    return request.new_figure(inches, said) if rows else request.empty(empty, inches, said), rows


def _lacking(rows: Sequence[Row], part: Callable[[Row], str]) -> list[str]:
    """A note that names the parts of a figure which have no scores, with the reasons; none where all have."""
    points = Counter(map(part, rows))
    gaps = Counter((part(row), row["note"]) for row in rows if row["note"])
    said = [
        f"{name if gone == points[name] else f'{gone} of {points[name]} of {name}'} ({note})"
        for (name, note), gone in gaps.items()
    ]
    return [f"Not drawn, for want of scores: {'; '.join(said)}."] if said else []


def measured(request: Request[Any], names: Names, measure: str) -> str:
    """The label of an axis: a measure, and the data it was taken on where that is one set."""
    definition = names.measures[measure]
    scored = {path.stem for path in request.inputs["scores"] if path.parts[-3:-2] == (definition.kind,)}
    sets = {names.datasets.get(task, task) for task in definition.tasks or ()}
    sets = sets or {names.datasets.get(task, "") for task in scored}
    named = sets.pop() if len(sets) == 1 else ""
    return measure if named.lower().startswith(measure.lower()) or not named else f"{measure} on {named}"


# Scores layer by layer: a line a series, the standard deviation over tasks as its shadow

_LINES_INCHES = 2.1
_NAME_INCHES = 0.15


def lines(config: LayerLines, names: Names, scores: Scores) -> pa.Table:
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
    return pa.Table.from_pylist(rows, schema=POINTS)


def _series(line: Series, names: Names) -> str:
    """What the data call a line."""
    return f"{line.representation}, {names.weightings[line.weighting]}"


def _axis(config: LayerLines, scores: Scores) -> list[str]:
    layers = dict.fromkeys(layer for line in config.series for layer in scores.layers(line.representation))
    return [*sorted((layer for layer in layers if layer.isdigit()), key=int), *config.sums]


def draw_lines(points: pa.Table, request: Request[LayerLines]) -> Figure:
    """Measures below each other, columns of panels side by side."""
    config, every, names = request.config, points.to_pylist(), _names(request)
    columns = Counter(line.panel for line in config.series)
    lengths = Counter((row["panel"], row["series"]) for row in every if row["y"] is not None)
    note = f"{UNITS} Diamonds: scored in one layer only." if 1 in lengths.values() else UNITS
    height = _LINES_INCHES * len(config.measures) + _NAME_INCHES * (max(columns.values()) + 1)
    figure, rows = _begin(
        request,
        height,
        [note],
        every,
        lambda row: f"{row['panel']}, {row['series']}",
        "No layer was scored.",
    )
    if not rows:
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
        axes.set_ylabel(upright(measured(request, names, measure), _LINES_INCHES))
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
    # A line through one point cannot be seen.
    mark: dict[str, Any] = {"marker": "D", "ms": 4.5} if len(rows) == 1 else {}
    axes.plot(x, y, label=label, lw=1.2, **look, **mark)
    axes.fill_between(x, y - spread, y + spread, color=look["color"], alpha=0.12, lw=0)


# Scores over the share of static averages and the layer: a map a measure, a cross at its maximum

_ROW_INCHES = 2.4
_ACROSS = 3
_HOW_DRAWN = "Each map has a scale of its own; the cross is at its best value, the number above it."
_SHADES = colormaps["cividis"].resampled(32)


def maps(config: MixingMap, names: Names, scores: Scores) -> pa.Table:
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
    return pa.Table.from_pylist(rows, schema=POINTS)


def _maps_of(config: MixingMap, scores: Scores, name: str, measure: Measure) -> dict[str, Measure]:
    """The measure itself, or that of each of its tasks under the name of the task."""
    if not config.split:
        return {name: measure}
    return {task: measure.model_copy(update={"tasks": [task]}) for task in scores.tasks(measure)}


def draw_maps(points: pa.Table, request: Request[MixingMap]) -> Figure:
    """Maps, three side by side; shares upwards, layers to the right."""
    config, every, called = request.config, points.to_pylist(), _names(request)
    names = list(dict.fromkeys(row["panel"] for row in every if row["y"] is not None))
    down = max(1, -(-len(names) // _ACROSS))
    source = called.representations.get(config.representation, config.representation)
    units = HUNDRED if config.split else UNITS
    figure, rows = _begin(
        request,
        _ROW_INCHES * down,
        [f"{source}, of which a share w is its static averages. {units} {_HOW_DRAWN}"],
        every,
        lambda row: called.datasets.get(row["panel"]) or str(row["panel"]),
        "No share of static averages was scored.",
    )
    if not rows:
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


# One measure against another: a point for every variant of a model, Pearson's r over a model's points where asked

_SCATTER_INCHES = 3.6
_MARKS = "os^Dv<>P"


def variant_points(request: Request[VariantScatter]) -> pa.Table:
    """Both measures of every variant and model, in the cells of a table, by which claims are judged too."""
    table = ExtractionTable.parse(scattered(request.config.model_dump()), "extraction.figures")
    return build(table, _names(request), _scores(request))


def _pairs(points: pa.Table, config: VariantScatter, names: Names) -> list[Row]:
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


def draw_variants(points: pa.Table, request: Request[VariantScatter]) -> Figure:
    """A mark and colour for each model."""
    config, names = request.config, _names(request)
    every = _pairs(points, config, names)
    shown = [row["y"] for row in every if None not in (row["x"], row["y"])]
    hidden = sum(y <= 0 for y in shown) if config.y_scale == "log" else 0
    lost = f"Points at or below 0, which a logarithmic axis does not show: {hidden}." if hidden else None
    figure, rows = _begin(
        request,
        _SCATTER_INCHES,
        [note for note in (config.note, UNITS, lost) if note],
        every,
        lambda row: names.model(row["series"]),
        f"No model has both {config.x} and {config.y}.",
    )
    if not rows:
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


KINDS = {
    "layer_lines": FigureKind(
        columns=POINTS,
        title="{title}",
        description="layer lines: {title}",
        points=lambda request: lines(request.config, _names(request), _scores(request)),
        draw=draw_lines,
    ),
    "mixing_map": FigureKind(
        columns=POINTS,
        title="{title}",
        description="mixing map: {title}",
        points=lambda request: maps(request.config, _names(request), _scores(request)),
        draw=draw_maps,
    ),
    "variant_scatter": FigureKind(
        TABLE, "{title}", "variant scatter: {title}", variant_points, draw_variants
    ),
}
