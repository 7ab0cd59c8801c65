"""Figures of the extraction study: scores layer by layer, over shares of static averages, and against each other."""

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from functools import partial
from itertools import product
from statistics import fmean, stdev
from typing import Any, Literal

import numpy as np
import pandas as pd
from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.figures.base import (
    INK,
    LEGEND_AT_RIGHT,
    Axes,
    Declaration,
    Drawn,
    Figure,
    Request,
    draw_lines,
    draw_map,
    frame,
    line_look,
    log_scale,
    upright,
)
from workflow_scripts.reporting.cells import Row, Values
from workflow_scripts.reporting.extraction import NOT_ASKED, Scores, Variant, build, variants_of
from workflow_scripts.settings.extraction import ExtractionTable, Measure, Model, Names, Variants
from workflow_scripts.settings.names import Measured, ModelName, Represented, Weighted

_SCORES = {"scores": "<results>/extraction/scores/{kind}/{representation}/{task}.parquet"}
_BLOCK = "extraction.figures.{figure}"
_PART_OF = (
    " Part of the study of sentence vectors without training (Stankevicius and Lukosevicius 2025): {figure}.\n\n"
    "Every point is a mean over the tasks that this study scores; a study with fewer tasks than the paper, or another "
    "encoder, shows the shape of the paper's figure and not its values."
)
_HUNDRED = "orrelations and accuracies are times 100."
_UNITS = f"Means over tasks; c{_HUNDRED}"


class Drawing(Settings):
    """Settings of every figure of the study without training."""

    title: str
    below: str = Field(description="Table of the page; the figure is placed below it.")


def _points(rows: Sequence[Row]) -> pd.DataFrame:
    """The values of each panel and series at ``point``.

    ``spread`` is the standard deviation over ``tasks`` tasks, null if y is not a mean of tasks; ``note`` is the reason
    for a missing y.
    """
    return frame(
        rows, panel="str", series="str", point="str", x="float", y="float", spread="float", tasks="Int64",
        note="str",
    )  # fmt: skip


def _point(place: Row, values: Values, averaged: Collection[float]) -> list[Row]:
    """The row of a point, or of its gap; no row for a score that no block of the study asks for."""
    if averaged:
        return [place | {"y": fmean(averaged), "tasks": len(values.by_task)}]
    return [] if NOT_ASKED in values.notes else [place | {"note": "; ".join(values.notes)}]


def _read(request: Request[Any]) -> tuple[Names, Scores]:
    """The definitions of the names in a figure's settings, and the scores that it reads."""
    names = Names.parse(dict(request.names), "extraction")
    return names, Scores.read(request.inputs["scores"], names)


def _begin(
    request: Request[Any],
    points: pd.DataFrame,
    parts: pd.Series,
    inches: float,
    notes: Sequence[str],
    empty: str,
    **panels: Any,
) -> tuple[Figure, Any, pd.DataFrame]:
    """Start a figure with its notes; returns it, its panels and the rows that have a point.

    If no row has one, the figure is the message ``empty``, and there are no panels.

    Args:
        request: Texts and style of the figure.
        points: Rows with x, y and the reason for a missing y.
        parts: The part of the figure that each row belongs to; the notes list missing parts with their reasons.
        inches: Height of the panels.
        notes: How the figure is drawn.
        empty: Message if no row has a point.
        panels: As for ``Request.new_figure``.
    """
    rows = points.dropna(subset=["x", "y"])
    totals = parts.value_counts()
    gaps = pd.DataFrame({"part": parts, "note": points["note"]}).value_counts(sort=False).items()
    missing = [
        f"{part if count == totals[part] else f'{count} of {totals[part]} of {part}'} ({note})"
        for (part, note), count in gaps
    ]
    if missing:
        notes = [*notes, f"Not drawn, because scores are missing: {'; '.join(missing)}."]
    if not len(rows):
        return request.empty(empty, inches, notes), None, rows
    return *request.new_figure(inches, notes, **panels), rows


def measure_label(request: Request[Any], names: Names, measure: str) -> str:
    """The label of an axis: a measure, and its dataset if there is only one."""
    definition = names.measures[measure]
    scored = {path.stem for path in request.inputs["scores"] if path.parts[-3:-2] == (definition.kind,)}
    tasks = {*(definition.tasks or scored)}
    dataset = tasks.pop() if len(tasks) == 1 else ""
    return measure if not dataset or dataset.startswith(measure.lower()) else f"{measure} on {dataset}"


# Scores layer by layer: a line for each series, the standard deviation over tasks as its shadow

_LINES_INCHES = 2.1
_NAME_INCHES = 0.15


class Series(Settings):
    """One line."""

    panel: str = Field(description="Column of panels that contains the line.")
    representation: Represented
    weighting: Weighted

    def named(self, names: Names) -> str:
        """The name of the line in the points."""
        return f"{self.representation}, {names.weightings[self.weighting]}"

    def label(self, names: Names) -> str:
        """The name of the line in the legend."""
        source = names.representations.get(self.representation, self.representation)
        return f"{source}, {names.weightings[self.weighting]}"


class LayerLines(Drawing):
    """Settings of lines of measures over layers."""

    kind: Literal["layer_lines"]
    measures: list[Measured] = Field(min_length=1, description="Measures; each has a row of panels.")
    series: list[Series] = Field(min_length=1)
    sums: list[str] = Field(description="Sums of layers, at the end of the horizontal axis.")


@partial(
    Declaration,
    title="{title}",
    description="layer lines: {title}",
    caption=(
        "Scores layer by layer, a line for each source and weighting; the shadow is the standard deviation over tasks."
        + _PART_OF
    ),
    reads=_SCORES,
    settings=LayerLines,
    block=_BLOCK,
)
def layer_lines(request: Request[LayerLines]) -> Drawn:
    """Draw a row of panels for each measure, and a line over layers for each series."""
    config, (names, scores) = request.config, _read(request)
    points = lines(config, names, scores)
    columns = Counter(line.panel for line in config.series)
    once = (points.dropna(subset="y").groupby(["panel", "series"]).size() == 1).any()
    note = f"{_UNITS} Diamonds: scored in one layer only." if once else _UNITS
    height = _LINES_INCHES * len(config.measures) + _NAME_INCHES * (max(columns.values()) + 1)
    parts = points["panel"] + ", " + points["series"]
    figure, panels, rows = _begin(
        request, points, parts, height, [note], "No layer was scored.",
        rows=len(config.measures), columns=len(columns), sharex=True, sharey="row",
    )  # fmt: skip
    if panels is None:
        return Drawn(points, figure)
    ticks = rows.drop_duplicates("x").sort_values("x")
    for down, column in zip(panels.T, columns, strict=True):
        own = [line for line in config.series if line.panel == column]
        looks = {line.named(names): line_look(n) | {"label": line.label(names)} for n, line in enumerate(own)}
        for axes, measure in zip(down, config.measures, strict=True):
            _draw_panel(axes, rows[rows["panel"] == f"{measure} | {column}"], looks)
            axes.set_xticks(ticks["x"], ticks["point"], rotation=90)
        named = {line.get_label(): line for axes in down for line in axes.lines}
        # Above the panel, where it covers no line.
        down[0].legend(named.values(), named, title=column, alignment="left", frameon=False, fontsize="small",
                       loc="lower left", bbox_to_anchor=(0, 1), borderaxespad=0.3, borderpad=0)  # fmt: skip
        down[-1].set_xlabel("layer")
    for axes, measure in zip(panels[:, 0], config.measures, strict=True):
        axes.set_ylabel(upright(measure_label(request, names, measure), _LINES_INCHES))
    return Drawn(points, figure)


def lines(config: LayerLines, names: Names, scores: Scores) -> pd.DataFrame:
    """A row for each panel, line and layer; a representation without layers has the same value at every layer."""
    rows: list[Row] = []
    layers = dict.fromkeys(layer for line in config.series for layer in scores.layers(line.representation))
    axis = [*sorted((layer for layer in layers if layer.isdigit()), key=int), *config.sums]
    for measure, line, (x, layer) in product(config.measures, config.series, enumerate(axis)):
        static = scores.layers(line.representation) == ["static"]
        model = Model(
            representation=line.representation, mixing_weight=0, layers="static" if static else layer
        )
        values = scores.cell(model, Variant(line.weighting, "none"), names.measures[measure])
        by_task = list(values.by_task.values())
        spread = stdev(by_task) if len(by_task) > 1 else None
        row: Row = {
            "panel": f"{measure} | {line.panel}", "series": line.named(names), "point": layer, "x": x, "spread": spread,
        }  # fmt: skip
        rows += _point(row, values, by_task)
    return _points(rows)


def _draw_panel(axes: Axes, rows: pd.DataFrame, looks: Mapping[str, dict[str, Any]]) -> None:
    """Draw the lines of one panel with their shadows."""
    rows = rows.assign(line=rows["series"], spread=rows["spread"].fillna(0))
    draw_lines(axes, rows, "x", "y", looks, lw=1.2)
    for name, own in rows.groupby("line", sort=False):
        low, high = own["y"] - own["spread"], own["y"] + own["spread"]
        axes.fill_between(own["x"], low, high, color=looks[name]["color"], alpha=0.12, lw=0)
    axes.grid()


# Scores over the share of static averages and the layer: a map for each measure, with a cross at its maximum

_ROW_INCHES = 2.4
_ACROSS = 3
_HOW_DRAWN = "Each map has a scale of its own; the cross is at its best value, the number above it."


class MixingMap(Drawing):
    """Settings of maps of measures over shares and layers."""

    kind: Literal["mixing_map"]
    measures: list[Measured] = Field(min_length=1, description="Measures; each has a map.")
    split: bool = Field(description="Draw a map for each task of a measure in place of one for the measure.")
    representation: Represented
    weighting: Weighted
    mixing_weights: list[float] = Field(min_length=2)


@partial(
    Declaration,
    title="{title}",
    description="mixing map: {title}",
    caption=f"Scores over the share of static averages and the layer; the cross is the best of them.{_PART_OF}",
    reads=_SCORES,
    settings=MixingMap,
    block=_BLOCK,
)
def mixing_map(request: Request[MixingMap]) -> Drawn:
    """Draw maps, three next to each other, with layers on the horizontal and shares on the vertical axis."""
    config, (names, scores) = request.config, _read(request)
    points = maps(config, names, scores)
    panel_names = list(points.dropna(subset="y")["panel"].unique())
    down = max(1, -(-len(panel_names) // _ACROSS))
    source = names.representations.get(config.representation, config.representation)
    units = f"C{_HUNDRED}" if config.split else _UNITS
    note = f"{source}, of which a share w is its static averages. {units} {_HOW_DRAWN}"
    parts = points["panel"]
    empty = "No share of static averages was scored."
    grid = {"rows": down, "columns": min(_ACROSS, len(panel_names))}
    figure, panels, rows = _begin(request, points, parts, _ROW_INCHES * down, [note], empty, **grid)
    if panels is None:
        return Drawn(points, figure)
    shares = [f"{share:g}" for share in config.mixing_weights]
    layers = list(rows.sort_values("x")["series"].unique())
    for axes, name in zip(panels.flat, panel_names, strict=False):
        own = rows[rows["panel"] == name]
        numbers = own.pivot_table("y", "point", "series").reindex(index=shares, columns=layers)
        draw_map(axes, numbers, layers, shares, cmap="cividis")
        axes.invert_yaxis()
        best = np.unravel_index(np.nanargmax(numbers), numbers.shape)
        for colour, width in (
            (INK, 3.0),
            ("white", 1.2),
        ):  # a bright cross on a dark one is visible everywhere
            axes.plot(best[1] + 0.5, best[0] + 0.5, "x", color=colour, ms=6, mew=width)
        axes.set(title=f"{name}: {own['y'].max():.1f}", xlabel="layer", ylabel="w")
    for axes in panels.flat[len(panel_names) :]:
        axes.set_axis_off()
    return Drawn(points, figure)


def maps(config: MixingMap, names: Names, scores: Scores) -> pd.DataFrame:
    """A row for each map, share and layer."""
    rows: list[Row] = []
    variant = Variant(config.weighting, "none")
    layers = scores.layers(config.representation)
    for name, (x, layer), share in product(config.measures, enumerate(layers), config.mixing_weights):
        model = Model(representation=config.representation, mixing_weight=share, layers=layer)
        for panel, measure in _panels(config, scores, name, names.measures[name]).items():
            values = scores.cell(model, variant, measure)
            row: Row = {"panel": panel, "series": layer, "point": f"{share:g}", "x": x}
            rows += _point(row, values, values.by_seed.values())
    return _points(rows)


def _panels(config: MixingMap, scores: Scores, name: str, measure: Measure) -> dict[str, Measure]:
    """The measure by its name, or its restriction to each of its tasks by the name of the task."""
    if not config.split:
        return {name: measure}
    return {task: measure.model_copy(update={"tasks": [task]}) for task in scores.tasks(measure)}


# One measure over another: a point for every variant of a model; the legend may show Pearson's r of a model's points

_SCATTER_INCHES = 3.6
_MARKS = "os^Dv<>P"


class VariantScatter(Drawing):
    """Settings of the scatter plot: two measures, models and variants."""

    kind: Literal["variant_scatter"]
    x: Measured
    y: Measured
    models: list[ModelName] = Field(min_length=1)
    variants: list[Variants] = Field(min_length=1)
    y_scale: Literal["linear", "log"]
    note: str | None = Field(description="A note on the measures, printed below the figure.")
    correlation: bool = Field(description="Show the correlation of x and y of each model in the legend.")

    @property
    def table(self) -> ExtractionTable:
        """The table that its points are cells of."""
        return ExtractionTable(
            title=self.title,
            source="",
            columns="models",
            models=self.models,
            measures=[self.x, self.y],
            variants=self.variants,
            digits=2,
        )


@partial(
    Declaration,
    title="{title}",
    description="variant scatter: {title}",
    caption=(
        "One measure against another, a point for every combination of weighting and post-processing of a model."
        + _PART_OF
    ),
    reads=_SCORES,
    settings=VariantScatter,
    block=_BLOCK,
)
def variant_scatter(request: Request[VariantScatter]) -> Drawn:
    """Plot one measure over another; the points are cells of a table, so claims can refer to them."""
    config, (names, scores) = request.config, _read(request)
    points = build(config.table, names, scores).to_pandas(types_mapper=pd.ArrowDtype)
    pairs = _pairs(points, config, names)
    hidden = (pairs.dropna(subset="x")["y"] <= 0).sum() if config.y_scale == "log" else 0
    not_shown = f"Points at or below 0, which a logarithmic axis does not show: {hidden}." if hidden else None
    notes = [note for note in (config.note, _UNITS, not_shown) if note]
    empty = f"No model has both {config.x} and {config.y}."
    figure, panels, rows = _begin(request, pairs, pairs["model"], _SCATTER_INCHES, notes, empty)
    if panels is None:
        return Drawn(points, figure)
    axes = panels[0, 0]
    for number, (model, own) in enumerate(rows.groupby("model", sort=False)):
        r = f" (r = {own['x'].corr(own['y']):.2f})" if config.correlation and len(own) > 2 else ""
        look = {"color": line_look(number)["color"], "marker": _MARKS[number % len(_MARKS)]}
        axes.plot(own["x"], own["y"], linestyle="none", ms=4, label=f"{model}{r}", **look)
    axes.set(xlabel=measure_label(request, names, config.x), ylabel=measure_label(request, names, config.y))
    if config.y_scale == "log":
        log_scale(axes)
    axes.grid()
    axes.legend(**LEGEND_AT_RIGHT)
    return Drawn(points, figure)


def _pairs(points: pd.DataFrame, config: VariantScatter, names: Names) -> pd.DataFrame:
    """A row for each variant of each model: x and y, or a note with the reason for a missing point."""
    cells = points.set_index(["run", "heading"])[["mean", "note"]].to_dict("index")
    rows = []
    for model, variant in product(config.models, variants_of(config.variants)):
        x, y = (cells[f"{axis}: {variant.text(names)}", model] for axis in (config.x, config.y))
        missing = pd.isna([x["mean"], y["mean"]]).any()
        notes = dict.fromkeys(cell["note"] for cell in (x, y) if missing and pd.notna(cell["note"]))
        rows.append((names.model(model), x["mean"], y["mean"], "; ".join(notes) or None))
    return frame(rows, model="str", x="float", y="float", note="str")
