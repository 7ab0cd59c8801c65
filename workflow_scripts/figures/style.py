"""One look for all figures, and their SVG: the same bytes every time, readable on light and on dark paper.

Text stays text, so that it can be searched and read aloud. What is drawn in ``INK`` takes the colour of the
text around the figure (``currentColor``), light on a dark scheme; the other colours stand out from white and from
near-black alike (contrast about 4).
"""

from __future__ import annotations

import io
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from html import escape
from textwrap import wrap
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.settings.report import Called

if TYPE_CHECKING:  # drawing loads these, and planning does not
    import pandas as pd
    from matplotlib.axes import Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure


class FigureStyle(Settings):
    """Settings that all figures share."""

    width_inches: float = Field(
        gt=2, le=20, description="Width of a figure; 7.3 inches are 700 pixels of a page."
    )


INK = "#1a1a1b"
PAPER = "#fefeff"
_SCHEME = (
    "svg {{ color: #1d1f23 }} @media (prefers-color-scheme: dark) "
    "{{ svg {{ color: #e6e7e9 }} #{name}-paper path {{ fill: #16181c !important }} }}"
)
"""Colours of text and paper in both schemes."""
COLOURS = ("#2280c3", "#cb5500", "#008a65", "#ad5f93", "#857300", "#7a7d84")
"""After Okabe and Ito, for both papers."""
DASHES: tuple[str | tuple[int, tuple[int, ...]], ...] = ("-", (0, (5, 2)), (0, (2, 2)), (0, (7, 2, 2, 2)))

_POINTS = {"text": 8.0, "small": 7.0, "title": 9.5}
_LINE = 1.35  # height of a line of text over its size
# Width of a letter of DejaVu Sans over its size; titles are bold.
_LETTER = {"title": 0.64, "text": 0.55, "small": 0.59}

_PANELS_SHARE = 0.75  # of a figure's width; names at their side, scales and gaps have the rest
_BELOW_AXIS_INCHES = 0.5  # of a panel's height: its ticks and the label below them

_RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so that text has one width everywhere
    "font.size": _POINTS["text"],
    "axes.labelsize": _POINTS["text"],
    "axes.titlesize": _POINTS["text"],
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.linewidth": 0.6,
    "text.color": INK,
    "text.parse_math": False,  # names may hold a dollar sign
    "xtick.color": INK,
    "ytick.color": INK,
    "xtick.labelsize": _POINTS["small"],
    "ytick.labelsize": _POINTS["small"],
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "grid.color": INK,
    "grid.alpha": 0.13,
    "grid.linewidth": 0.5,
    "lines.linewidth": 1.6,
    "figure.facecolor": PAPER,
    "axes.facecolor": "none",
    "svg.fonttype": "none",
}


@contextmanager
def figure_style() -> Iterator[None]:
    """Draw in the project's style, whatever the user's matplotlibrc says."""
    from matplotlib import rc_context, rcdefaults, rcParams

    with rc_context():
        rcdefaults()
        rcParams.update(_RC)
        yield


def line_look(index: int) -> dict[str, Any]:
    """Colour and dashes of the line with this number: six colours, then the same with other dashes."""
    colour, dash = index % len(COLOURS), index // len(COLOURS)
    return {"color": COLOURS[colour], "linestyle": DASHES[dash % len(DASHES)]}


def new_figure(
    style: FigureStyle, panels_inches: float, title: str, notes: Sequence[str], footnotes: Sequence[str]
) -> Figure:
    """A figure with a title above and texts below its panels.

    Args:
        style: What all figures share.
        panels_inches: Height that the panels share.
        title: Printed above them.
        notes: How the figure is drawn, printed below them.
        footnotes: What does not concern this figure alone, such as substitutions; printed last.
    """
    from matplotlib.figure import Figure

    width = style.width_inches
    head, said, labels = (
        [line for text in texts for line in _lines(text, width - 0.1, size)]
        for texts, size in (([title], "title"), (notes, "small"), (footnotes, "small"))
    )
    top, middle, bottom = (
        len(lines) * _POINTS[size] * _LINE / 72 + (0.08 if lines else 0)
        for lines, size in ((head, "title"), (said, "small"), (labels, "small"))
    )
    height = panels_inches + top + middle + bottom
    figure = Figure(figsize=(width, height), dpi=72)
    # Not the constrained layout: its solver orders by memory address, so that the last digits change.
    rect = (0, (middle + bottom) / height, 1, 1 - top / height)
    figure.set_layout_engine("tight", rect=rect, pad=0.5, w_pad=1.2)
    left = 0.04 / width
    above: dict[str, Any] = {"size": _POINTS["title"], "weight": "bold", "va": "top"}
    figure.text(left, 1 - 0.03 / height, "\n".join(head), linespacing=_LINE, **above)
    for lines, base in ((said, bottom), (labels, 0.0)):
        below: dict[str, Any] = {"size": _POINTS["small"], "va": "bottom"}
        figure.text(left, (base + 0.04) / height, "\n".join(lines), linespacing=_LINE, **below)
    return figure


def _lines(text: str, inches: float, size: str) -> list[str]:
    return wrap(text, int(inches * 72 / (_POINTS[size] * _LETTER[size])), break_on_hyphens=False)


def upright(label: str, inches: float) -> str:
    """The label of an upright axis, in lines no longer than the axis; the panel's height includes ticks and label."""
    return "\n".join(_lines(label, inches - _BELOW_AXIS_INCHES, "text"))


def heading(label: str, style: FigureStyle, columns: int) -> str:
    """What stands above one of several panels side by side, in lines no longer than the panel is wide."""
    return "\n".join(_lines(label, _PANELS_SHARE * style.width_inches / columns, "small"))


class Names(NamedTuple):
    """Names of runs as figures print them, and the footnote that says what was left out."""

    short: dict[str, str]
    footnotes: list[str]


def short_names(runs: Sequence[str], called: Called) -> Names:
    """Names in words, without the parts that all runs share, where the rest still tells them apart.

    Where even whole names in words do not, runs are called by their identifiers.
    """
    parts = {run: run.split(".") for run in runs}
    shared = set.intersection(*map(set, parts.values())) if len(runs) > 1 else set()
    whole = {run: list(zip(parts[run], called.parts(run), strict=True)) for run in runs}
    short = {
        run: ", ".join(text for part, text in named if part not in shared) for run, named in whole.items()
    }
    if not shared or not all(short.values()) or len(set(short.values())) < len(short):
        words = {run: called.run(run) for run in runs}
        return Names(words if len(set(words.values())) == len(words) else {run: run for run in runs}, [])
    left_out = [text for part, text in whole[runs[0]] if part in shared]
    return Names(short, [f"Names leave out what all runs share: {', '.join(left_out)}."])


def in_lines(name: str, inches: float) -> str:
    """A run's name for the side of a panel of that height, with a line or more for each of its parts."""
    parts = name.replace(", ", ",\n").replace(" + ", "\n+ ").splitlines()
    return "\n".join(upright(part, inches) for part in parts)


def log_scale(axes: Axes) -> None:
    """Make the upright axis logarithmic, with plain numbers, since texts are not read as mathematics."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


def colour_bar(figure: Figure, source: ScalarMappable, label: str, **place: Any) -> None:
    """A bar that says which colour is which number."""
    bar = figure.colorbar(source, **place)
    bar.set_label(label)
    assert bar.solids is not None
    bar.solids.set_edgecolor("face")  # viewers leave gaps between its steps
    bar.outline.set_edgecolor(INK)


BESIDE: Mapping[str, Any] = {
    "loc": "center left", "bbox_to_anchor": (1, 0.5), "frameon": False,
    "fontsize": _POINTS["small"], "labelspacing": 0.4,
}  # fmt: skip
"""A legend at the right of its panel."""


def draw_lines(
    axes: Axes,
    points: pd.DataFrame,
    x: str,
    y: str,
    looks: Mapping[Any, dict[str, Any]],
    **more: Any,
) -> None:
    """Draw a line for each value of the column ``line``; a diamond if it has one point, where no line would be seen.

    Args:
        axes: The panel.
        points: Rows with a ``line``, in the order of ``x``.
        x: Column to the right.
        y: Column upwards.
        looks: Colour and dashes of each line.
        more: Look of all lines.
    """
    for name, own in points.groupby("line", sort=False):
        single = {"marker": "D", "markersize": 4.5, "linestyle": "none"} if len(own) == 1 else {}
        axes.plot(own[x], own[y], **{"label": name} | looks[name] | more | single)


def name_lines(axes: Axes) -> None:
    """Name the lines that have labels at the panel's side, in the order of their right ends."""
    named = [line for line in axes.lines if not str(line.get_label()).startswith("_")]
    if named:
        axes.legend(handles=sorted(named, key=lambda line: -np.asarray(line.get_ydata())[-1]), **BESIDE)


def to_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Write a figure as SVG text.

    Args:
        figure: Made by ``new_figure`` in ``figure_style``.
        name: Begins every id, so that a page may hold several figures; letters, digits, ``_`` and ``-``.
        title: Read aloud in place of the picture.
        description: What the picture shows, for those who do not see it.
    """
    from matplotlib import rc_context

    figure.patch.set_gid("paper")
    buffer = io.StringIO()
    nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    with rc_context({"svg.hashsalt": name}):
        figure.savefig(buffer, format="svg", metadata=nothing)
    # What stands between tags is text.
    svg = re.sub(r"<[^>]*>", lambda tag: _restyled(tag[0], name), buffer.getvalue())
    spoken = f'<title id="{name}-title">{escape(title)}</title>\n <desc id="{name}-desc">{escape(description)}</desc>'
    scheme = _SCHEME.format(name=name)
    opening = f'role="img" aria-labelledby="{name}-title {name}-desc" version="1.1">'
    start, found, rest = svg.partition('version="1.1">')
    assert found, "matplotlib writes another opening tag than it did"
    return f"{start}{opening}\n {spoken}\n <style>{scheme}</style>{rest}"


def _restyled(tag: str, name: str) -> str:
    """A tag with ids that begin with a figure's name, paths in 1/100 point, and the ink of the text around it."""
    tag = re.sub(r'(\bid="|"#|url\(#)', rf"\g<1>{name}-", tag)
    tag = re.sub(r'\bd="[^"]*"', lambda path: re.sub(r"(\.\d\d)\d+", r"\1", path[0]), tag)
    return tag.replace(INK, "currentColor").replace("stroke: #000000", "stroke: currentColor")
