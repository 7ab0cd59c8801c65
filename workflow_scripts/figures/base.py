"""What a figure is: a function with a declaration of its settings, its inputs and its texts.

A module of this package holds one figure, or several that look alike. ``@partial(Declaration, ...)`` makes a
declaration of a function, whose name is the figure's. Planning imports these modules, so that matplotlib, PyTorch and
the like are imported by the functions that draw.
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

import pandas as pd

from workflow_scripts.config import Settings, names_in
from workflow_scripts.figures.style import FigureStyle, new_figure
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
    """What a job hands to a figure."""

    config: ConfigT
    inputs: Mapping[str, Sequence[Path]] = MappingProxyType({})
    """The files of each role."""
    names: Mapping[str, Any] = MappingProxyType({})
    """For a figure of the extraction study: definitions of the models, measures and variants that its block names."""
    called: Called = Called()
    """What readers see in place of the identifiers of runs, corpora and datasets."""
    style: FigureStyle = FigureStyle(width_inches=7.3)
    """Settings that all figures share."""
    title: str = ""
    """The figure's title, filled in."""
    footnotes: Sequence[str] = ()
    """Sentences to print below the panels, after the figure's own: substitutions and gaps."""

    def new_figure(self, panels_inches: float, notes: Sequence[str]) -> Figure:
        """A figure with title, notes and footnotes, and room for panels of that height."""
        return new_figure(self.style, panels_inches, self.title, notes, self.footnotes)

    def empty(self, message: str, panels_inches: float = 1, notes: Sequence[str] = ()) -> Figure:
        """A figure of one panel that says why nothing is drawn."""
        figure = self.new_figure(panels_inches, notes)
        axes = figure.subplots()
        axes.set_axis_off()
        axes.text(0.5, 0.5, message, ha="center", va="center", transform=axes.transAxes)
        return figure


class Drawn(NamedTuple):
    """The numbers that a figure shows, which are written beside the picture, and the picture."""

    points: pd.DataFrame
    picture: Figure


class Declaration(NamedTuple):
    """A figure: the function that draws it, and what planning, the job and the page need to know of it.

    An experiment has the figure if its block of settings is there and every input has a file.
    """

    draw: Callable[[Request[Any]], Drawn]
    """Reads the inputs, computes the points and draws them on a figure of ``request.new_figure``.

    Raises ``ConfigError`` if the settings do not fit the data.
    """
    title: str
    """Printed above the picture; ``{title}`` is the experiment's, other braces hold the figure's settings."""
    description: str
    """The picture in words, for readers who do not see it; braces as in ``title``."""
    caption: str
    """Printed below the picture on the page; ``{experiment}`` and ``{figure}`` are filled in."""
    reads: Mapping[str, str] = _NOTHING
    """Role to the path of its files: one for each ``{run}`` and ``{seed}`` of the experiment, for each ``{suite}``
    of the kind in the path before it, and for each ``{corpus}`` that its runs are trained on."""
    settings: type[Settings] = Settings
    """Class of its block. Its field ``task`` leaves out suites without that task, its field ``runs`` other runs."""
    block: str | None = None
    """Path of the block: ``report.<name>`` is shared by all experiments, a block ``grids.{experiment}.<name>`` makes an
    experiment ask for the figure, ``extraction.figures.{figure}`` belongs to the extraction study, whose figures name
    their declaration as ``kind``."""
    trained: bool = False
    """Whether runs without training are left out."""
    method: Mapping[str, str] = _NOTHING
    """Setting of a run's method to a shell pattern of its value; runs with another value are left out."""

    @property
    def name(self) -> str:
        """Name of the figure."""
        return self.draw.__name__

    @property
    def module(self) -> str:
        """Module of this package that draws it."""
        return self.draw.__module__.rpartition(".")[2]

    @property
    def of_extraction(self) -> bool:
        """Whether the figure is one of the extraction study."""
        return (self.block or "").startswith("extraction.")


def load_figure(module: str, name: str) -> Declaration:
    """Import one figure."""
    found: Declaration = getattr(importlib.import_module(f"{_PACKAGE}.{module}"), name)
    return found


@cache
def all_figures() -> dict[str, Declaration]:
    """Every figure by its name; imports all modules of this package."""
    modules = [vars(importlib.import_module(f"{_PACKAGE}.{module}")) for module in names_in(_PACKAGE)]
    found = (one for module in modules for one in module.values() if isinstance(one, Declaration))
    return {one.name: one for one in sorted(found, key=lambda one: one.name)}


def frame(rows: Sequence[Any], **columns: str) -> pd.DataFrame:
    """A table of ``rows`` with these columns and types, which hold for no rows too."""
    return pd.DataFrame(rows, columns=list(columns)).astype(columns)


def column_label(experiment: Experiment, heading: str, called: Called) -> str:
    """What a column holds: its heading, metric, scale and data, or how many columns it averages."""
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
