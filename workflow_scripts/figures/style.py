"""The common style of all figures, and their SVG, which has the same bytes every time.

Text stays text, so it can be searched and read aloud.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from workflow_scripts.settings.report import Called

if TYPE_CHECKING:  # planning imports this module, and loads none of these
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure


WIDTH_INCHES = 7.3  # 700 pixels of a page
INK = "#1a1a1b"
COLOURS = ("#2280c3", "#cb5500", "#008a65", "#ad5f93", "#857300", "#7a7d84")
"""Colours of lines and points, after Okabe and Ito, with a contrast of about 4 to white."""
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", (0, (5, 2)), (0, (2, 2)), (0, (7, 2, 2, 2)))

POINTS = {"text": 8.0, "small": 7.0, "title": 9.5}
LINE = 1.35  # height of a line of text over its size
_LETTER = {"title": 0.64, "text": 0.55, "small": 0.59}
"""Width of a letter of DejaVu Sans over its size; titles are bold."""

_PANELS_SHARE = 0.75  # of a figure's width; the rest is for names next to the panels, scales and gaps
_BELOW_AXIS_INCHES = 0.5  # part of a panel's height that ticks and the horizontal axis's label take

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so text is equally wide on every machine
    "font.size": POINTS["text"],
    "axes.labelsize": POINTS["text"],
    "axes.titlesize": POINTS["text"],
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "text.color": INK,
    "text.parse_math": False,  # names may contain a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": POINTS["small"],
    "ytick.labelsize": POINTS["small"],
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "semblance",  # ids are random otherwise
}


def figure_style() -> AbstractContextManager[None]:
    """A context that draws in the project's style, and ignores the user's matplotlibrc."""
    from matplotlib import style

    context: AbstractContextManager[None] = style.context(["default", _RC])
    return context


def line_look(index: int) -> dict[str, Any]:
    """Colour and dashes of the line with this index: six colours, then the same colours with other dashes."""
    colour, dash = index % len(COLOURS), index // len(COLOURS)
    return {"color": COLOURS[colour], "linestyle": DASHES[dash % len(DASHES)]}


def lines_in(text: str, inches: float, size: str) -> list[str]:
    """Wrap a text to a width in inches; ``size`` is a key of ``POINTS``."""
    return wrap(text, int(inches * 72 / (POINTS[size] * _LETTER[size])), break_on_hyphens=False)


def upright(label: str, inches: float) -> str:
    """Wrap the label of a vertical axis to the axis's length; ``inches`` is the panel's height with ticks and label."""
    return "\n".join(lines_in(label, inches - _BELOW_AXIS_INCHES, "text"))


def heading(label: str, columns: int) -> str:
    """Wrap the title of one of several panels next to each other to the panel's width."""
    return "\n".join(lines_in(label, _PANELS_SHARE * WIDTH_INCHES / columns, "small"))


class Names(NamedTuple):
    """Names of runs as figures print them, and a footnote on the parts that are left out."""

    short: dict[str, str]
    footnotes: list[str]


def short_names(runs: Sequence[str], called: Called) -> Names:
    """Names in words, without the parts that all runs share.

    If short names are not unique or empty, full names are used; if these are not unique either, identifiers.
    """
    parts = {run: list(zip(run.split("."), called.parts(run), strict=True)) for run in runs}
    shared = set.intersection(*(set(run.split(".")) for run in runs)) if len(runs) > 1 else set()
    short = {
        run: ", ".join(text for part, text in named if part not in shared) for run, named in parts.items()
    }
    if not shared or not all(short.values()) or len(set(short.values())) < len(short):
        words = {run: called.run(run) for run in runs}
        return Names(words if len(set(words.values())) == len(words) else {run: run for run in runs}, [])
    left_out = [text for part, text in parts[runs[0]] if part in shared]
    return Names(short, [f"Names leave out what all runs share: {', '.join(left_out)}."])


def log_scale(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with plain numbers, since texts are not parsed as mathematics."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.set_yscale("log")
    plain, round_numbers = StrMethodFormatter("{x:g}"), LogLocator(subs=(1, 2, 5))
    axes.yaxis.set(major_locator=round_numbers, major_formatter=plain, minor_locator=NullLocator())


def shades(name: str, low: float, high: float) -> ScalarMappable:
    """A colour scale between two numbers; a missing number has no colour."""
    from matplotlib import colormaps
    from matplotlib.cm import ScalarMappable
    from matplotlib.colors import Normalize

    # With 50 shades or more, matplotlib would draw the colour bar as a bitmap.
    colours = colormaps[name].resampled(48).with_extremes(bad="none")
    return ScalarMappable(Normalize(low, high), colours)


def draw_map(
    axes: Axes, numbers: pd.DataFrame, across: Sequence[Any], down: Sequence[Any], **more: Any
) -> None:
    """Draw a heat map, with the labels of its columns and rows."""
    from seaborn import heatmap

    heatmap(numbers, ax=axes, cbar=False, xticklabels=across, yticklabels=down, **more)
    axes.tick_params(axis="x", rotation=90)
    axes.tick_params(axis="y", rotation=0)
    axes.collections[0].set_edgecolor("face")  # else viewers leave gaps between cells


def colour_bar(figure: Figure, source: ScalarMappable, label: str, **place: Any) -> None:
    """Draw the legend of a colour scale."""
    bar = figure.colorbar(source, **place)
    bar.set_label(label)
    assert bar.solids is not None
    bar.solids.set_edgecolor("face")  # else viewers leave gaps between the colours
    bar.outline.set_edgecolor(INK)


LEGEND_AT_RIGHT: Mapping[str, Any] = {
    "loc": "center left", "bbox_to_anchor": (1, 0.5), "frameon": False,
    "fontsize": POINTS["small"], "labelspacing": 0.4,
}  # fmt: skip
"""Arguments of a legend at the right of its panel."""


def draw_lines(
    axes: Axes,
    points: pd.DataFrame,
    x: str,
    y: str,
    looks: Mapping[Any, dict[str, Any]],
    **more: Any,
) -> None:
    """Draw a line for each value of the column ``line``, or a diamond if the line has a single point.

    Args:
        axes: The panel.
        points: Rows with a ``line``, in the order of ``x``.
        x: Column of the horizontal axis.
        y: Column of the vertical axis.
        looks: Colour and dashes of each line.
        more: Look of all lines.
    """
    for name, own in points.groupby("line", sort=False):
        single = {"marker": "D", "markersize": 4.5, "linestyle": "none"} if len(own) == 1 else {}
        axes.plot(own[x], own[y], **{"label": name} | looks[name] | more | single)


def name_lines(axes: Axes) -> None:
    """Add a legend at the panel's right, in the order of the lines' right ends; lines without a label are left out."""
    named = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    if named:
        ordered = sorted(named, key=lambda line: -np.asarray(line.get_ydata())[-1])
        axes.legend(handles=ordered, **LEGEND_AT_RIGHT)


def to_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Write a figure as SVG text.

    Args:
        figure: Made by ``new_figure`` in ``figure_style``.
        name: Prefix of the ids of title and description.
        title: Text that screen readers read in place of the picture.
        description: A longer text for screen readers.
    """
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", metadata=dict.fromkeys(("Date", "Creator", "Format", "Type")))
    spoken = f'<title id="{name}-title">{escape(title)}</title>\n <desc id="{name}-desc">{escape(description)}</desc>'
    opening = f'role="img" aria-labelledby="{name}-title {name}-desc" version="1.1">'
    start, version, rest = buffer.getvalue().partition('version="1.1">')
    assert version, "matplotlib writes another opening tag than it did"
    return f"{start}{opening}\n {spoken}{rest}"
