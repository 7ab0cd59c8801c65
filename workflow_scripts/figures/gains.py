"""Gains that the papers claim: a study's differences with their intervals, next to the printed ones."""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from textwrap import wrap
from typing import Any, Literal, NamedTuple

import pandas as pd
import pyarrow as pa

from workflow_scripts.columns import CLAIMS, NOT_RUN
from workflow_scripts.figures.base import (
    COLOURS,
    INK,
    TABLES_OF_CLAIMS,
    VERDICTS,
    Axes,
    Declaration,
    Drawn,
    Figure,
    FigureRequest,
    frame,
    is_narrow,
    new_figure,
    width_inches,
)
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.cells import MINUS, Row, brief, level_text
from workflow_scripts.reporting.records import claimed_tables, record_of
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.grids import PAPERS, Column, Experiment

_COLOUR_OF = {"supported": COLOURS[2], "contradicted": COLOURS[1], "undecided": COLOURS[5]}
_SHAPE_OF = {"supported": "o", "contradicted": "s", "undecided": "o"}
_BAR: dict[str, Any] = {"linewidth": 1.6, "solid_capstyle": "butt"}
_ZERO: dict[str, Any] = {"color": INK, "linewidth": 0.8}
_PRINTED: dict[str, Any] = {
    "marker": "D",
    "markersize": 4.5,
    "markerfacecolor": "none",
    "markeredgecolor": INK,
    "linestyle": "",
}
_WORDS = {"spearman": "Spearman", "pearson": "Pearson", "isoscore": "IsoScore"}
_LABEL_POINTS, _LETTER = 6.5, 0.58  # size of the claims' texts, and width of a letter, in sizes of the font
_LINE_INCHES, _GAP_INCHES, _AROUND_INCHES = 0.108, 0.05, 0.6  # a line of text, between lines, around a panel
_TEXT_SHARE = 0.44  # of the width of a wide figure
_MARGIN, _AT_EDGE = (
    0.04,
    0.2,
)  # of an axis's length: left at an end, and where values of points beyond it are written
_FAR = 10  # deviations from the median beyond which a point is drawn at the edge


_Side = Literal["left", "right"] | None
"""The edge that a point lies beyond, if any."""


class _Line(NamedTuple):
    """A line of a panel: a paper's name, or a claim."""

    text: str
    inches: float
    row: Row | None
    """Numbers of the claim; None for a paper."""


@partial(
    Declaration,
    title="Gains that the papers claim, measured here and printed there",
    description="A row per claim: the measured difference with its interval as a bar, coloured by verdict, and the "
    "printed difference as a hollow diamond.",
    caption="Each row is a claim of a paper that this study compares. A point is the difference between the two "
    "sides as measured here, a bar its interval, a colour the verdict, and a hollow diamond the difference between the "
    "numbers that the paper prints. Right of zero, the side that the claim names first is higher.",
    reads={"verdicts": VERDICTS, **TABLES_OF_CLAIMS},
)
def gains(request: FigureRequest[Settings]) -> Drawn:
    """Draw a row per compared claim, in a panel for each unit."""
    (path,) = request.inputs["verdicts"]
    rows = read_table(path, CLAIMS).to_pylist()
    tables = claimed_tables(*(request.inputs.get(role, ()) for role in TABLES_OF_CLAIMS))
    points = claim_points(rows, _units(tables))
    left_out = len(rows) - len(points)
    notes = [f"{left_out} claims of the papers are not compared by this study."] if left_out else []
    if not len(points):
        return Drawn(points, None, ["No claim is compared, so there is no difference to draw.", *notes])
    alpha = record_of(path).settings["significance"]["alpha"]
    return Drawn(points, draw_gains(points), [*reading_notes(points, alpha), *notes])


def claim_points(rows: Sequence[Row], units: Mapping[tuple[str, str, str], str]) -> pd.DataFrame:
    """Return a row for each compared claim, with its measured and its printed difference.

    Args:
        rows: Rows of ``columns.CLAIMS``.
        units: Units by table, run and heading.
    """
    points = [
        {name: row[name] for name in ("paper", "claim", "says", "verdict", "difference", "low", "high")}
        | {
            "unit": units[row["table"], row["run"], row["heading"]],
            "printed": None
            if None in (row["printed_ours"], row["printed_theirs"])
            else row["printed_ours"] - row["printed_theirs"],
        }
        for row in rows
        if row["verdict"] != NOT_RUN
    ]
    return frame(
        points, paper="str", claim="str", says="str", unit="str", verdict="str", difference="float", low="float",
        high="float", printed="float",
    )  # fmt: skip


def _units(tables: Mapping[str, tuple[Path, pa.Table]]) -> dict[tuple[str, str, str], str]:
    """Return the unit of each cell of some tables: its metric, with its scale."""
    units = {}
    for name, (made_by, table) in tables.items():
        settings = record_of(made_by).settings
        grid = Experiment.parse(settings["experiment"], name) if "experiment" in settings else None
        for row in table.to_pylist():
            units[name, row["run"], row["heading"]] = _unit(row, grid)
    return units


def _unit(row: Row, grid: Experiment | None) -> str:
    """Return the unit of a cell; the heading of a column that is neither a metric nor a mean of one."""
    measures: set[tuple[str, float | None]] = {(row["metric"], row["scale"])}
    if grid:
        columns = grid.averaged(row["heading"])
        measures = {(column.metric, column.scale) for column in columns if isinstance(column, Column)}
    if len(measures) != 1:
        return str(row["heading"])
    ((metric, scale),) = measures
    word = _WORDS.get(metric, metric)
    return word if scale == 1 else f"{word} times {scale:g}"


def draw_gains(points: pd.DataFrame) -> Figure:
    """Return a figure with a panel for each unit, those with more claims first, and in it the claims of each paper."""
    units = [(unit, points[points["unit"] == unit]) for unit in points["unit"].value_counts().index]
    lines = [_lines(rows) for _, rows in units]
    heights = [sum(line.inches for line in of_panel) for of_panel in lines]
    inches = sum(heights) + _AROUND_INCHES * (len(units) + 1)
    figure, panels = new_figure(inches, len(units), height_ratios=heights)
    for (unit, rows), of_panel, (axes,) in zip(units, lines, panels, strict=True):
        axes.set_xlim(*axis_ends(rows))
        axes.set_xlabel(f"difference in {unit}")
        axes.locator_params(axis="x", nbins=5 if is_narrow() else 8)
        if is_narrow():  # long lines would cross the texts
            axes.spines["left"].set_visible(False)
            axes.grid(visible=False)
        else:
            axes.axvline(0, **_ZERO)
            axes.grid(visible=False, axis="y")
        _draw_lines(axes, of_panel)
    first: Axes = panels[0][0]
    first.tick_params(labeltop=True)  # its lower end may be far away
    _add_key(
        first,
        1 + 2 * _LINE_INCHES / heights[0],
        [verdict for verdict in _COLOUR_OF if (points["verdict"] == verdict).any()],
    )
    return figure


def _lines(rows: pd.DataFrame) -> list[_Line]:
    """Return the lines of a panel: each paper, and its claims."""
    lines = []
    for paper, claims in rows.groupby("paper", sort=False):
        lines.append(_Line(PAPERS.get(str(paper), str(paper)), _LINE_INCHES + 2 * _GAP_INCHES, None))
        for row in claims.to_dict("records"):
            text = _broken(row["says"])
            # in a narrow figure, the marks of a claim have a line of their own
            count = text.count("\n") + (2.3 if is_narrow() else 1)
            lines.append(_Line(text, count * _LINE_INCHES + _GAP_INCHES, row))
    return lines


def axis_ends(rows: pd.DataFrame) -> tuple[float, float]:
    """Return the ends of an axis with zero and all points, except those far from the others."""
    values = pd.concat([rows[name] for name in ("difference", "low", "high", "printed")]).dropna()
    middle = values.median()
    reach = _FAR * (values - middle).abs().median()
    shown = values[(values - middle).abs() <= reach]
    if not reach or _length(values) < 2 * _length(shown):
        shown = values
    while len(shown) < len(within := values[values.between(*_ends(values, shown))]):
        shown = within
    return _ends(values, shown)


def _ends(values: "pd.Series[float]", shown: "pd.Series[float]") -> tuple[float, float]:
    """Return the ends of an axis with zero and the shown values, with space beyond: for a text, if others lie there."""
    low, high, length = min(0.0, shown.min()), max(0.0, shown.max()), _length(shown) or 1.0
    below, above = (_AT_EDGE if others else _MARGIN for others in (values.min() < low, values.max() > high))
    return low - below * length, high + above * length


def _length(values: "pd.Series[float]") -> float:
    """Return the length of an axis that has zero and these values."""
    return float(max(0.0, values.max()) - min(0.0, values.min()))


def _draw_lines(axes: Axes, lines: Sequence[_Line]) -> None:
    """Draw the lines of a panel from top to bottom. Marks are right of texts, or below them in a narrow figure."""
    top, left = 0.0, 0 if is_narrow() else -_text_points()
    for line in lines:
        middle, bottom = top + line.inches / 2, top + line.inches
        beside = line.row is None or not is_narrow()
        axes.annotate(
            line.text, (0, middle if beside else top), (left, 0), xycoords=("axes fraction", "data"),
            textcoords="offset points", va="center" if beside else "top", fontsize=_LABEL_POINTS,
            weight="normal" if line.row else "bold",
        )  # fmt: skip
        if line.row:
            _draw_row(axes, middle if beside else bottom - _LINE_INCHES, line.row)
        top = bottom
    axes.set_ylim(top, 0)
    axes.set_yticks([])


def _draw_row(axes: Axes, at: float, row: Row) -> None:
    """Draw a claim at a height: interval, measured difference, and the printed one."""
    if is_narrow():
        axes.plot([0, 0], [at - _LINE_INCHES / 2, at + _LINE_INCHES / 2], **_ZERO)
    style = _style(row["verdict"])
    if pd.notna(row["low"]) and pd.notna(row["high"]):
        axes.plot([row["low"], row["high"]], [at, at], color=style["color"], **_BAR)
    beyond = _draw_point(axes, at, row["difference"], style | {"linestyle": ""})
    texts = {beyond: _signed(row["difference"])}
    if pd.notna(row["printed"]):
        beyond = _draw_point(axes, at, row["printed"], _PRINTED)
        texts[beyond] = ", ".join(filter(None, [texts.get(beyond), f"printed {_signed(row['printed'])}"]))
    for side, text in texts.items():
        if side:
            _write_at_edge(axes, at, side, text)


def _style(verdict: str) -> dict[str, Any]:
    """Return colour and mark of a measured difference."""
    return {"color": _COLOUR_OF[verdict], "marker": _SHAPE_OF[verdict], "markersize": 4.5}


def _draw_point(axes: Axes, at: float, value: float, style: Mapping[str, Any]) -> _Side:
    """Draw a point, as an arrow at the edge if it lies beyond the axis; returns the side of that edge."""
    low, high = axes.get_xlim()
    if low <= value <= high:
        axes.plot(value, at, **style)
        return None
    edge, marker = (low, "<") if value < low else (high, ">")
    axes.plot(edge, at, **{**style, "marker": marker}, clip_on=False)
    return "left" if value < low else "right"


def _write_at_edge(axes: Axes, at: float, side: _Side, text: str) -> None:
    """Write the values of points beyond an edge: above their marks; below, if these are below a text."""
    low, high = axes.get_xlim()
    edge, inwards = (low, 4) if side == "left" else (high, -4)
    axes.annotate(
        text, (edge, at), xytext=(inwards, -6 if is_narrow() else 5), textcoords="offset points", ha=side,
        va="center", fontsize=_LABEL_POINTS - 0.5,
    )  # fmt: skip


def _signed(value: float) -> str:
    return f"{MINUS if value < 0 else '+'}{brief(abs(value))}"


def _broken(text: str) -> str:
    """Return the text of a claim in lines that fit the space for texts."""
    letters = int(_text_points() / _LABEL_POINTS / _LETTER)
    return "\n".join(wrap(text.removesuffix("."), letters, break_on_hyphens=False))


def _text_points() -> float:
    """Return the width of texts: a part of a wide figure, or all of a narrow one."""
    return (0.9 if is_narrow() else _TEXT_SHARE) * 72 * width_inches()


def _add_key(axes: Axes, above: float, verdicts: Sequence[str]) -> None:
    """Add the key of colours and marks above the first panel, since few readers would look below so many rows."""
    from matplotlib.legend import Legend
    from matplotlib.lines import Line2D

    keys = [Line2D([], [], label=verdict, **_style(verdict), **_BAR) for verdict in verdicts]
    keys.append(Line2D([], [], label="printed in the paper", **_PRINTED))
    columns, left = (2, 0.0) if is_narrow() else (len(keys), 1.0)
    place: dict[str, Any] = {
        "loc": f"lower {'left' if is_narrow() else 'right'}",
        "bbox_to_anchor": (left, above),
    }
    labels = [str(key.get_label()) for key in keys]
    legend = axes.add_artist(Legend(axes, keys, labels, ncols=columns, **place))
    legend.set_clip_on(False)  # or the layout would leave no space for it


def reading_notes(points: pd.DataFrame, alpha: float) -> Iterator[str]:
    """Yield notes on how to read the figure, and on claims with fewer marks than others."""
    yield (
        f"A bar is the {level_text(alpha)} interval of its claim. Verdicts are corrected for the number of claims, "
        "bars are not. "
        "An arrow at an edge has the value of a point beyond it; a bar that reaches an edge goes on beyond."
    )
    if single := points["low"].isna().sum():
        yield f"Without an interval, because too little was repeated for one: {single} of {len(points)}."
    if drawn := points["printed"].isna().sum():
        yield f"Without a diamond, because the paper does not print both numbers: {drawn} of {len(points)}."
