"""Common parts of figures: declarations (settings, inputs, texts) and style.

A module of this package holds one figure, or several that look alike. ``@partial(Declaration, ...)`` turns a function
into a declaration; the figure has the function's name. Planning imports these modules, so seaborn, matplotlib, PyTorch
and other heavy packages are imported only inside the functions that draw.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from pkgutil import iter_modules
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import pandas as pd

from workflow_scripts.settings.base import Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes
    from matplotlib.figure import Figure as Figure
else:  # planning reads declarations without matplotlib
    Axes = Figure = Any

# Declarations

TABLE_OF_GRID = "<results>/tables/{experiment}.parquet"
MODELS = "<results>/runs/{run}/seed{seed}/model/record.json"
VERDICTS = "<results>/claims.parquet"
TABLES_OF_CLAIMS = {
    "tables": "<results>/tables/{table}.parquet",
    "figures": "<results>/figures/extraction/record.json",
}
"""Inputs of the verdicts, by role: the tables whose cells claims compare, and figures drawn from such tables."""
_NOTHING: Mapping[str, str] = MappingProxyType({})
_PACKAGE = "workflow_scripts.figures"

ConfigT = TypeVar("ConfigT", bound=Settings)


class FigureRequest(NamedTuple, Generic[ConfigT]):
    """Settings and inputs that a job passes to a figure."""

    config: ConfigT
    inputs: Mapping[str, Sequence[Path]] = MappingProxyType({})
    """The files of each role."""
    names: Mapping[str, Any] = MappingProxyType({})
    """Definitions of the models, measures and variants in the settings of a figure of the extraction study."""


class Drawn(NamedTuple):
    """A figure, and the numbers in it, which are saved next to it."""

    data: pd.DataFrame
    figure: Figure | None
    """The figure; None without data. The job adds title and notes, and puts legends below all panels."""
    notes: Sequence[str] = ()
    """Notes on how the figure is drawn, or why it is not, and on missing data."""


class Declaration(NamedTuple):
    """A figure: the function that draws it, and its data for planning, the job and the page.

    An experiment has the figure if every input has at least one file and, for a figure with settings, if these are
    given in the experiment or in the section ``report``, under the figure's name. Figures of the extraction study are
    listed in ``extraction.figures``, with their declaration as ``kind``. A figure that reads ``VERDICTS`` is
    drawn once, in a study that compares claims.
    """

    draw: Callable[[FigureRequest[Any]], Drawn]
    """Read the inputs, compute the points and draw them.

    Raises ``ConfigError`` if the settings do not fit the data.
    """
    title: str
    """Printed above the picture; ``{title}`` is the experiment's, other braces hold the figure's settings."""
    description: str
    """Text for screen readers; braces as in ``title``."""
    caption: str
    """Printed below the picture on the page; ``{experiment}`` and ``{figure}`` are filled in."""
    reads: Mapping[str, str] = _NOTHING
    """Path patterns by role: one file for each ``{run}`` and ``{seed}`` of the experiment, for each ``{suite}`` of the
    kind in the path before it, and for each ``{corpus}`` on which its runs are trained."""
    settings: type[Settings] = Settings
    """Class of the settings. A field ``task`` excludes suites without that task; a field ``runs`` lists the runs."""
    of_run: Callable[[Any], bool] = lambda _: True
    """Whether it reads a run (``graph.runs.PlannedRun``)."""

    @property
    def name(self) -> str:
        """Return the name of the figure."""
        return self.draw.__name__

    @property
    def short_title(self) -> str:
        """Return the title without that of the experiment."""
        return self.title.removesuffix(": {title}")

    @property
    def module(self) -> str:
        """Return the name of the figure's module in this package."""
        return self.draw.__module__.rpartition(".")[2]


@cache
def all_figures() -> dict[str, Declaration]:
    """Return all figures by name; imports all modules of this package."""
    modules = [
        vars(importlib.import_module(f"{_PACKAGE}.{module.name}"))
        for module in iter_modules([str(Path(__file__).parent)])
    ]
    figures = [value for module in modules for value in module.values() if isinstance(value, Declaration)]
    return {figure.name: figure for figure in sorted(figures, key=lambda figure: figure.name)}


def frame(rows: Sequence[Any], **columns: str) -> pd.DataFrame:
    """Return a table of ``rows``, even without any, with these columns and types."""
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


# Style

# width of all panels: a page or a column of a paper, a screen or a telephone
WIDE_INCHES, NARROW_INCHES = 7.0, 3.5
INK = "#1a1a1b"
COLOURS = ("#2280c3", "#cb5500", "#008a65", "#ad5f93", "#857300", "#7a7d84")
"""Colours of lines and points, after Okabe and Ito, with a contrast of about 4 to white."""


def width_inches() -> float:
    """Return the width of all panels; every figure is drawn wide and narrow (``drawing.figure_style``)."""
    from matplotlib import rcParams

    return float(rcParams["figure.figsize"][0])


def is_narrow() -> bool:
    """Return whether a narrow figure is being drawn."""
    return width_inches() <= NARROW_INCHES


def side_by_side(panels: int, most: int) -> int:
    """Return the number of panels in a row: at most ``most``, and one in a narrow figure."""
    return 1 if is_narrow() else min(panels, most)


def panel_size(columns: int, inches: float) -> dict[str, float]:
    """Return seaborn's ``height`` and ``aspect`` of panels of this height that fill the width."""
    return {"height": inches, "aspect": width_inches() / columns / inches}


def new_figure(inches: float, rows: int = 1, columns: int = 1, **panels: Any) -> tuple[Figure, Any]:
    """Return a figure of this height, and the array of its panels' axes, of shape (rows, columns).

    Args:
        inches: Height of all panels.
        rows: Rows of panels.
        columns: Columns of panels.
        panels: Options of matplotlib's ``subplots``.
    """
    from matplotlib.figure import Figure

    # Not the constrained layout: its solver orders by memory address, so its last digits would vary.
    figure = Figure((width_inches(), inches), layout="tight")
    return figure, figure.subplots(rows, columns, squeeze=False, **panels)


def log_scale(axes: Axes) -> None:
    """Make the vertical axis logarithmic, with plain numbers, because texts are not parsed as mathematics."""
    from matplotlib.ticker import LogLocator, NullLocator, StrMethodFormatter

    axes.set_yscale("log")
    plain, round_numbers = StrMethodFormatter("{x:g}"), LogLocator(subs=(1, 2, 5))
    axes.yaxis.set(major_locator=round_numbers, major_formatter=plain, minor_locator=NullLocator())
