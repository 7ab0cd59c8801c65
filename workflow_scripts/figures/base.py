"""Shared parts of figures: declarations (settings, inputs, texts) and style.

A module of this package holds one figure, or several that look alike. ``@partial(Declaration, ...)`` turns a function
into a declaration; the figure has the function's name. Planning imports these modules, so only the functions that draw
import matplotlib, PyTorch and other heavy packages.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from textwrap import wrap
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import numpy as np
import pandas as pd

from workflow_scripts.config import Settings
from workflow_scripts.settings.grids import Column, Experiment, MeanColumn

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.cm import ScalarMappable
    from matplotlib.figure import Figure as Figure
else:  # planning reads declarations without matplotlib
    Axes = Figure = Any

# Declarations

TABLE_OF_GRID = "<results>/tables/{experiment}.parquet"
MODELS = "<results>/runs/{run}/seed{seed}/model/record.json"
_NOTHING: Mapping[str, str] = MappingProxyType({})
_PACKAGE = "workflow_scripts.figures"

ConfigT = TypeVar("ConfigT", bound=Settings)


class Request(NamedTuple, Generic[ConfigT]):
    """Settings, inputs and texts that a job passes to a figure."""

    config: ConfigT
    inputs: Mapping[str, Sequence[Path]] = MappingProxyType({})
    """The files of each role."""
    names: Mapping[str, Any] = MappingProxyType({})
    """For a figure of the extraction study: definitions of the models, measures and variants that its settings name."""
    title: str = ""
    """The figure's title, filled in."""
    footnotes: Sequence[str] = ()
    """Substitutions and gaps, printed below the panels after the figure's own notes."""

    def new_figure(
        self, panels_inches: float, notes: Sequence[str], rows: int = 1, columns: int = 1, **panels: Any
    ) -> tuple[Figure, Any]:
        """Make a figure with the title above panels of this height, and notes and footnotes below them.

        Args:
            panels_inches: Height of all panels.
            notes: How the figure is drawn.
            rows: Rows of panels.
            columns: Columns of panels.
            panels: As for matplotlib's ``subplots``.

        Returns:
            The figure, and the array of its panels' axes, of shape (rows, columns).
        """
        from matplotlib.figure import Figure

        width = WIDTH_INCHES - 0.1
        head = lines_in(self.title, width, "title")
        foot = [line for text in (*notes, *self.footnotes) for line in lines_in(text, width, "small")]
        above, below = (
            len(lines) * POINTS[size] * LINE / 72 + 0.08 * bool(lines)
            for lines, size in ((head, "title"), (foot, "small"))
        )
        height = panels_inches + above + below
        figure = Figure(figsize=(WIDTH_INCHES, height), dpi=72)
        # Not the constrained layout: its solver orders by memory address, so its last digits would vary.
        rect = (0, below / height, 1, 1 - above / height)
        figure.set_layout_engine("tight", rect=rect, pad=0.5, w_pad=1.2)
        left, bold = 0.04 / WIDTH_INCHES, {"size": POINTS["title"], "weight": "bold"}
        figure.text(left, 1 - 0.03 / height, "\n".join(head), va="top", linespacing=LINE, fontdict=bold)
        figure.text(left, 0.04 / height, "\n".join(foot), linespacing=LINE, size=POINTS["small"])
        return figure, figure.subplots(rows, columns, squeeze=False, **panels)

    def empty(self, message: str, panels_inches: float = 1, notes: Sequence[str] = ()) -> Figure:
        """Make a figure of one panel with the reason why nothing is drawn."""
        figure, ((axes,),) = self.new_figure(panels_inches, notes)
        axes.set_axis_off()
        axes.text(0.5, 0.5, message, ha="center", va="center", transform=axes.transAxes)
        return figure


class Drawn(NamedTuple):
    """A picture and the numbers that it shows, which are saved next to it."""

    points: pd.DataFrame
    picture: Figure


class Declaration(NamedTuple):
    """A figure: the function that draws it, and its data for planning, the job and the page.

    An experiment has the figure if the figure's settings exist and every input has at least one file.
    """

    draw: Callable[[Request[Any]], Drawn]
    """Read the inputs, compute the points and draw them on a figure from ``request.new_figure``.

    Raises ``ConfigError`` if the settings do not fit the data.
    """
    title: str
    """Printed above the picture; ``{title}`` is the experiment's, other braces hold the figure's settings."""
    description: str
    """Text for screen readers; braces as in ``title``."""
    caption: str
    """Printed below the picture on the page; ``{experiment}`` and ``{figure}`` are filled in."""
    reads: Mapping[str, str] = _NOTHING
    """Role to a path pattern: one file for each ``{run}`` and ``{seed}`` of the experiment, for each ``{suite}``
    of the kind in the path before it, and for each ``{corpus}`` that its runs are trained on."""
    settings: type[Settings] = Settings
    """Class of the settings. A field ``task`` excludes suites without that task; a field ``runs`` lists the runs."""
    block: str | None = None
    """Path of the settings in the configuration: ``report.<name>`` is shared by all experiments,
    ``grids.{experiment}.<name>`` requests the figure for one experiment, ``extraction.figures.{figure}`` belongs to
    the extraction study, whose figures name their declaration as ``kind``."""
    trained: bool = False
    """Whether runs without training are excluded."""
    method: Mapping[str, str] = _NOTHING
    """Setting of a run's method to a shell pattern; runs whose value does not match are excluded."""

    @property
    def name(self) -> str:
        """Name of the figure."""
        return self.draw.__name__

    @property
    def module(self) -> str:
        """Name of the figure's module in this package."""
        return self.draw.__module__.rpartition(".")[2]

    @property
    def for_extraction(self) -> bool:
        """Whether the figure belongs to the extraction study."""
        return (self.block or "").startswith("extraction.")


@cache
def all_figures() -> dict[str, Declaration]:
    """Every figure by its name; imports all modules of this package."""
    modules = [
        vars(importlib.import_module(f"{_PACKAGE}.{module.name}"))
        for module in iter_modules([str(Path(__file__).parent)])
    ]
    figures = [value for module in modules for value in module.values() if isinstance(value, Declaration)]
    return {figure.name: figure for figure in sorted(figures, key=lambda figure: figure.name)}


def frame(rows: Sequence[Any], **columns: str) -> pd.DataFrame:
    """A table of ``rows`` with these columns and types, even if there are no rows."""
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def column_label(experiment: Experiment, heading: str) -> str:
    """Label of a table's column: its heading, metric, scale and data, or the number of columns that it averages."""
    column = next(column for column in experiment.columns if column.heading == heading)
    if isinstance(column, MeanColumn):
        return f"{heading} (mean of {len(column.mean_of)} columns)"
    if not isinstance(column, Column):
        return heading
    metric = "" if column.metric in heading.lower() else f", {column.metric.capitalize()}"
    scale = "" if column.scale == 1 else f" \N{MULTIPLICATION SIGN} {column.scale:g}"
    on = "" if column.task.startswith(heading.lower()) else f" on {column.task}"
    return f"{heading}{metric}{scale}{on}"


# Style

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


def line_look(index: int) -> dict[str, Any]:
    """Colour and dashes of the line with this index: six colours, then the same colours with other dashes."""
    colour, dash = index % len(COLOURS), index // len(COLOURS)
    return {"color": COLOURS[colour], "linestyle": DASHES[dash % len(DASHES)]}


def lines_in(text: str, inches: float, size: str) -> list[str]:
    """Wrap a text to a width in inches, names of runs also behind a point; ``size`` is a key of ``POINTS``."""
    breakable = re.sub(r"(?<=\w\.)(?=[a-z])", "\v", " ".join(text.split()))
    letters = int(inches * 72 / (POINTS[size] * _LETTER[size]))
    lines = wrap(breakable, letters, break_on_hyphens=False, replace_whitespace=False)
    return [line.replace("\v", "") for line in lines]


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


def short_names(runs: Sequence[str]) -> Names:
    """Names of runs without the parts that all share; whole ones if nothing would be left of one, or two were equal."""
    shared = set.intersection(*(set(run.split(".")) for run in runs)) if len(runs) > 1 else set()
    short = {run: ".".join(part for part in run.split(".") if part not in shared) for run in runs}
    if not shared or not all(short.values()) or len(set(short.values())) < len(short):
        return Names({run: run for run in runs}, [])
    left_out = [part for part in runs[0].split(".") if part in shared]
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
