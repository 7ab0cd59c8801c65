"""Declarations of figures: the function that draws each, its settings, its inputs and its texts.

A module of this package holds one figure, or several that look alike. ``@partial(Declaration, ...)`` turns a function
into a declaration; the figure has the function's name. Planning imports these modules, so only the functions that draw
import matplotlib, PyTorch and other heavy packages.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import pandas as pd

from workflow_scripts.config import Settings, names_in
from workflow_scripts.figures.style import LINE, POINTS, WIDTH_INCHES, lines_in
from workflow_scripts.settings.grids import Column, Experiment, MeanColumn
from workflow_scripts.settings.report import Called

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # planning reads declarations without matplotlib
    Axes = Figure = Any

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
    called: Called = Called()
    """Display names of runs, corpora and datasets."""
    title: str = ""
    """The figure's title, filled in."""
    footnotes: Sequence[str] = ()
    """Substitutions and gaps, printed below the panels after the figure's own notes."""

    def new_figure(self, panels_inches: float, notes: Sequence[str]) -> Figure:
        """Make a figure with the title above panels of this height, and notes and footnotes below them."""
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
        return figure

    def empty(self, message: str, panels_inches: float = 1, notes: Sequence[str] = ()) -> Figure:
        """Make a figure of one panel with the reason why nothing is drawn."""
        figure = self.new_figure(panels_inches, notes)
        axes = figure.subplots()
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


def load_figure(module: str, name: str) -> Declaration:
    """Import one figure."""
    declaration: Declaration = getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name)
    return declaration


@cache
def all_figures() -> dict[str, Declaration]:
    """Every figure by its name; imports all modules of this package."""
    modules = [vars(importlib.import_module(f"{_PACKAGE}.{module}")) for module in names_in(_PACKAGE)]
    figures = [value for module in modules for value in module.values() if isinstance(value, Declaration)]
    return {figure.name: figure for figure in sorted(figures, key=lambda figure: figure.name)}


def frame(rows: Sequence[Any], **columns: str) -> pd.DataFrame:
    """A table of ``rows`` with these columns and types, even if there are no rows."""
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def column_label(experiment: Experiment, heading: str, called: Called) -> str:
    """Label of a table's column: its heading, metric, scale and data, or the number of columns that it averages."""
    column = next(column for column in experiment.columns if column.heading == heading)
    if isinstance(column, MeanColumn):
        return f"{heading} (mean of {len(column.mean_of)} columns)"
    if not isinstance(column, Column):
        return heading
    data = called.dataset(column.task)
    metric = "" if column.metric in heading.lower() else f", {column.metric.capitalize()}"
    scale = "" if column.scale == 1 else f" \N{MULTIPLICATION SIGN} {column.scale:g}"
    on = "" if data.lower().startswith(heading.lower()) else f" on {data}"
    return f"{heading}{metric}{scale}{on}"
