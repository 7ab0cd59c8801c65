"""What a figure is: settings and needs, what draws it, and a caption, all by its name.

settings/figures.py              its class, in FIGURES; ``needs`` say which module draws it
figures/<module>.py              KINDS: see ``FigureKind``
resources/captions/<name>.rst
"""

import importlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, TypeVar

import pyarrow as pa
from matplotlib.figure import Figure

from workflow_scripts.config import Settings
from workflow_scripts.figures.style import new_figure
from workflow_scripts.reporting.called import Called
from workflow_scripts.settings.experiment import Column, Experiment, MeanColumn
from workflow_scripts.settings.figures import FIGURES
from workflow_scripts.settings.style import FigureStyle

ConfigT = TypeVar("ConfigT", bound=Settings)


class Request(NamedTuple, Generic[ConfigT]):
    """What a job hands to a figure."""

    config: ConfigT
    inputs: Mapping[str, Sequence[Path]] = MappingProxyType({})
    """The files of each role."""
    names: Mapping[str, Any] = MappingProxyType({})
    """Of a figure of the extraction study: definitions of the models, measures and variants that its block names."""
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


class FigureKind(NamedTuple):
    """What a module offers for each figure that it draws, which is drawn wherever its needs are met."""

    columns: pa.Schema
    """Columns of what is drawn, which is written next to the picture."""

    title: str
    """Printed above the picture; ``{title}`` is the experiment's, other braces hold its settings."""

    description: str
    """What the picture shows, for those who do not see it; braces as in ``title``."""

    points: Callable[[Request[Any]], pa.Table]
    """Read the inputs and compute what is drawn, with ``columns``.

    Raises ``ConfigError`` if the settings do not fit the data.
    """

    draw: Callable[[pa.Table, Request[Any]], Figure]
    """Draw what ``points`` returned on a figure of ``request.new_figure``, in ``style.figure_style``."""


def load_figure(name: str) -> FigureKind:
    """Import what draws a figure: ``KINDS`` of the module that its needs name."""
    kinds: Mapping[str, FigureKind] = importlib.import_module(
        f"workflow_scripts.figures.{FIGURES[name].needs.module}"
    ).KINDS
    return kinds[name]


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
