"""What a figure is: a module of this folder, the settings and needs of its name, and a caption.

    figures/<name>.py                COLUMNS, TITLE, DESCRIPTION, points(), draw(): see ``FigureModule``
    settings/figures/<name>.py       NEEDS, Config
    resources/captions/<name>.rst

Nothing else names it. The other modules of this folder are what several figures share.
"""

import importlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Generic, NamedTuple, Protocol, TypeVar, cast

import pyarrow as pa
from matplotlib.figure import Figure

from workflow_scripts.config import Settings
from workflow_scripts.figures.style import empty_panel, new_figure
from workflow_scripts.reporting.called import Called
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
    """The figure's ``TITLE``, filled in."""
    footnotes: Sequence[str] = ()
    """Sentences to print below the panels, after the figure's own: substitutions and gaps."""

    def new_figure(self, panels_inches: float, notes: Sequence[str]) -> Figure:
        """A figure with title, notes and footnotes, and room for panels that are so high."""
        return new_figure(self.style, panels_inches, self.title, notes, self.footnotes)

    def empty(self, message: str) -> Figure:
        """A figure of one panel that says why nothing is drawn."""
        figure = self.new_figure(1, [])
        empty_panel(figure, message)
        return figure


class FigureModule(Protocol):
    """What a figure's module offers; a module that follows this is drawn wherever its needs are met."""

    COLUMNS: pa.Schema
    """Columns of what is drawn, which is written next to the picture."""

    TITLE: str
    """Printed above the picture; ``{title}`` is the experiment's, other braces hold settings of ``Config``."""

    DESCRIPTION: str
    """What the picture shows, for those who do not see it; braces as in ``TITLE``."""

    def points(self, request: Request[Any]) -> pa.Table:
        """Read the inputs and compute what is drawn, with ``COLUMNS``.

        Raises:
            ConfigError: if the settings do not fit the data.
        """

    def draw(self, points: pa.Table, request: Request[Any]) -> Figure:
        """Draw what ``points`` returned on a figure of ``request.new_figure``, in ``style.figure_style``."""


def load_figure(name: str) -> FigureModule:
    """Import ``figures/<name>.py``."""
    return cast(FigureModule, importlib.import_module(f"workflow_scripts.figures.{name}"))
