"""Figures of the extraction study: scores layer by layer, over shares of static averages, and against each other."""

from collections.abc import Collection, Sequence
from functools import partial
from itertools import product
from statistics import fmean, stdev
from typing import Any

import pandas as pd

from workflow_scripts.figures.base import (
    INK,
    Declaration,
    Drawn,
    FigureRequest,
    frame,
    log_scale,
    new_figure,
    panel_size,
    side_by_side,
)
from workflow_scripts.reporting.cells import CellValues, Row
from workflow_scripts.reporting.extraction import NOT_ASKED, STATIC, Scores, Variant, build, variants_of
from workflow_scripts.settings.extraction import (
    LayerLines,
    Measure,
    MixingMap,
    Model,
    Names,
    VariantScatter,
)

_SCORES = {"scores": "<results>/extraction/scores/{kind}/{representation}/{task}.parquet"}
_PART_OF = (
    " Part of the study of sentence vectors without training (Stankevicius and Lukosevicius 2025): {figure}.\n\n"
    "Every point is a mean over the tasks that this study scores; a study with fewer tasks than the paper, or another "
    "encoder, shows the shape of the paper's figure and not its values."
)
_UNITS = "Correlations and accuracies are times 100."


def _points(rows: Sequence[Row]) -> pd.DataFrame:
    """Return the values of each panel and series at ``point``.

    ``spread`` is the standard deviation over ``tasks`` tasks, null if y is not a mean of tasks; ``note`` is the reason
    for a missing y.
    """
    return frame(
        rows, panel="str", series="str", point="str", x="float", y="float", spread="float", tasks="Int64",
        note="str",
    )  # fmt: skip


def _point(row: Row, values: CellValues, averaged: Collection[float]) -> list[Row]:
    """Return the row of a point, or of its gap; no row for a score that is in no block of the study."""
    if averaged:
        return [row | {"y": fmean(averaged), "tasks": len(values.by_task)}]
    return [] if NOT_ASKED in values.notes else [row | {"note": "; ".join(values.notes)}]


def _read(request: FigureRequest[Any]) -> tuple[Names, Scores]:
    """Return the definitions of the names in a figure's settings, and its scores."""
    names = Names.parse(dict(request.names), "extraction")
    return names, Scores.read(request.inputs["scores"], names)


def _gaps(parts: pd.Series, notes: pd.Series) -> str:
    """Return a note that lists the gaps of a figure with their reasons."""
    gaps = dict.fromkeys(
        f"{part} ({note})" for part, note in zip(parts, notes, strict=True) if pd.notna(note)
    )
    return f"Not drawn, because scores are missing: {'; '.join(gaps) or 'none'}."


# Scores layer by layer: a line for each series, the standard deviation over tasks as its shadow


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
)
def layer_lines(request: FigureRequest[LayerLines]) -> Drawn:
    """Draw a row of panels for each measure, and a line over layers for each series."""
    import seaborn

    names, scores = _read(request)
    points = lines(request.config, names, scores)
    notes = [_UNITS, _gaps(points["panel"] + ", " + points["series"], points["note"])]
    rows = points.dropna(subset=["y"]).sort_values("x", kind="stable")
    if not len(rows):
        return Drawn(points, None, ["No layer was scored.", *notes])
    labels = {line.named(names): line.label(names) for line in request.config.series}
    rows = rows.assign(series=rows["series"].map(labels), spread=rows["spread"].fillna(0))
    ends = pd.concat([rows.assign(y=rows["y"] + sign * rows["spread"]) for sign in (-1, 0, 1)])
    columns = side_by_side(rows["panel"].nunique(), 2)
    # Each point has three values: their median is the mean over tasks, and their range is the shadow.
    grid = seaborn.relplot(
        ends, x="point", y="y", hue="series", style="series", col="panel", kind="line", markers=True,
        markersize=4, estimator="median", errorbar=("pi", 100), col_wrap=columns,
        **panel_size(columns, 2.2), facet_kws={"sharey": False, "legend_out": False},
    )  # fmt: skip
    grid.set_titles("{col_name}")
    grid.set_axis_labels("layer", "score")
    grid.tick_params(axis="x", rotation=90)
    return Drawn(points, grid.figure, notes)


def lines(config: LayerLines, names: Names, scores: Scores) -> pd.DataFrame:
    """Return a row for each panel, line and layer; a representation without layers has one value for all layers."""
    rows: list[Row] = []
    scored = {line.representation: scores.layers(line.representation) for line in config.series}
    layers = {layer for of_line in scored.values() if of_line != [STATIC] for layer in of_line}
    first = [STATIC] if STATIC in layers else []
    axis = [*first, *sorted((layer for layer in layers if layer.isdigit()), key=int), *config.sums]
    for measure, line, (x, layer) in product(config.measures, config.series, enumerate(axis)):
        only = scored[line.representation] == [STATIC]
        model = Model(representation=line.representation, mixing_weight=0, layers=STATIC if only else layer)
        values = scores.cell(model, Variant(line.weighting, "none"), names.measures[measure])
        by_task = list(values.by_task.values())
        spread = stdev(by_task) if len(by_task) > 1 else None
        row: Row = {
            "panel": f"{measure} | {line.panel}", "series": line.named(names), "point": _layer(layer), "x": x,
            "spread": spread,
        }  # fmt: skip
        rows += _point(row, values, by_task)
    return _points(rows)


def _layer(name: str) -> str:
    """Return a layer by the paper's number: -1 is the table of input embeddings."""
    return "-1" if name == STATIC else name


# Scores over the share of static averages and the layer: a map for each measure, with a cross at the maximum

_HOW_DRAWN = "Each map has a scale of its own; the cross is at its best value."


@partial(
    Declaration,
    title="{title}",
    description="mixing map: {title}",
    caption=f"Scores over the share of static averages and the layer; the cross is the best of them.{_PART_OF}",
    reads=_SCORES,
    settings=MixingMap,
)
def mixing_map(request: FigureRequest[MixingMap]) -> Drawn:
    """Draw maps, three next to each other, with layers on the horizontal and shares on the vertical axis."""
    import seaborn

    config, (names, scores) = request.config, _read(request)
    points = maps(config, names, scores)
    rows = points.dropna(subset=["y"]).astype({"point": "float"})
    source = names.representations.get(config.representation, config.representation)
    notes = [f"{source}; w is the share of its static averages. {_UNITS} {_HOW_DRAWN}"]
    notes.append(_gaps(points["panel"], points["note"]))
    if not len(rows):
        return Drawn(points, None, ["No share of static averages was scored.", *notes])

    def draw(data: pd.DataFrame, **_: Any) -> None:
        numbers = data.pivot_table("y", "point", "x").sort_index(ascending=False)
        labels = data.groupby("x")["series"].first()
        axes = seaborn.heatmap(numbers, cmap="cividis", xticklabels=labels)
        best = data.loc[data["y"].idxmax()]
        across, down = numbers.columns.get_loc(best["x"]), numbers.index.get_loc(best["point"])
        axes.plot(across + 0.5, down + 0.5, "X", color="white", markeredgecolor=INK)

    columns = side_by_side(rows["panel"].nunique(), 3)
    size = panel_size(columns, 2.3)
    grid = seaborn.FacetGrid(rows, col="panel", col_wrap=columns, **size, sharex=False, sharey=False)
    grid.map_dataframe(draw)
    grid.set_titles("{col_name}")
    grid.set_axis_labels("layer", "w")
    grid.tick_params(axis="y", rotation=0)
    return Drawn(points, grid.figure, notes)


def maps(config: MixingMap, names: Names, scores: Scores) -> pd.DataFrame:
    """Return a row for each map, share and layer."""
    rows: list[Row] = []
    variant = Variant(config.weighting, "none")
    layers = scores.layers(config.representation)
    for name, (x, layer), share in product(config.measures, enumerate(layers), config.mixing_weights):
        model = Model(representation=config.representation, mixing_weight=share, layers=layer)
        for panel, measure in _panels(config, scores, name, names.measures[name]).items():
            values = scores.cell(model, variant, measure)
            row: Row = {"panel": panel, "series": _layer(layer), "point": f"{share:g}", "x": x}
            rows += _point(row, values, values.by_seed.values())
    return _points(rows)


def _panels(config: MixingMap, scores: Scores, name: str, measure: Measure) -> dict[str, Measure]:
    """Return the measure by its name, or its restriction to each of its tasks by the name of the task."""
    if not config.split:
        return {name: measure}
    return {task: measure.model_copy(update={"tasks": [task]}) for task in scores.tasks(measure)}


# One measure over another: a point for every variant of a model; the legend may show Pearson's r of a model's points


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
)
def variant_scatter(request: FigureRequest[VariantScatter]) -> Drawn:
    """Plot one measure over another; the points are cells of a table, so claims can refer to them."""
    import seaborn

    config, (names, scores) = request.config, _read(request)
    points = build(config.table, names, scores).to_pandas(types_mapper=pd.ArrowDtype)
    pairs = _pairs(points, config, names)
    notes = [*filter(None, [config.note]), _UNITS, _gaps(pairs["model"], pairs["note"])]
    rows = pairs.dropna(subset=["x", "y"])
    if not len(rows):
        return Drawn(points, None, [f"No model has both {config.x} and {config.y}.", *notes])
    if config.correlation:
        of_model = {model: group["x"].corr(group["y"]) for model, group in rows.groupby("model")}
        rows = rows.assign(model=[f"{model} (r = {of_model[model]:.2f})" for model in rows["model"]])
    figure, ((axes,),) = new_figure(3.6)
    seaborn.scatterplot(rows, x="x", y="y", hue="model", style="model", ax=axes)
    axes.set(xlabel=config.x, ylabel=config.y)
    if config.y_scale == "log":
        log_scale(axes)
    return Drawn(points, figure, notes)


def _pairs(points: pd.DataFrame, config: VariantScatter, names: Names) -> pd.DataFrame:
    """Return a row for each variant of each model: x and y, or a note with the reason for a missing point."""
    cells = points.set_index(["run", "heading"])[["mean", "note"]].to_dict("index")
    rows = []
    for model, variant in product(config.models, variants_of(config.variants)):
        x, y = (cells[f"{axis}: {variant.text(names)}", model] for axis in (config.x, config.y))
        missing = pd.isna([x["mean"], y["mean"]]).any()
        notes = dict.fromkeys(cell["note"] for cell in (x, y) if missing and pd.notna(cell["note"]))
        rows.append((names.model(model), x["mean"], y["mean"], "; ".join(notes) or None))
    return frame(rows, model="str", x="float", y="float", note="str")
