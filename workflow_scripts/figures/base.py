"""What a figure is: one module of this folder, and a caption of its name in ``resources/captions``.

    figures/<name>.py       NEEDS, Config, COLUMNS, TITLE, DESCRIPTION, points(), draw(): see ``FigureModule``
    resources/captions/<name>.rst

Nothing else names it. A module of this folder is a figure if it assigns ``NEEDS``; the others are what several figures
share. This module imports nothing that draws: the job graph reads it in every job.
"""

import importlib
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar, cast

from workflow_scripts.config import Settings
from workflow_scripts.reporting.called import Called
from workflow_scripts.settings.figures import Needs

if TYPE_CHECKING:
    import pyarrow as pa
    from matplotlib.figure import Figure

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


class FigureModule(Protocol):
    """What a figure's module offers; a module that follows this is drawn wherever its needs are met."""

    NEEDS: Needs

    Config: type[Settings]
    """The block at ``NEEDS.config``, or plain ``Settings`` where there is none; both are in ``settings/figures``."""

    COLUMNS: "pa.Schema"
    """Columns of what is drawn, which is written next to the picture."""

    TITLE: str
    """Printed above the picture; ``{title}`` is the experiment's, other braces hold settings of ``Config``."""

    DESCRIPTION: str
    """What the picture shows, for those who do not see it; braces as in ``TITLE``."""

    def points(self, request: Request[Any]) -> "pa.Table":
        """Read the inputs and compute what is drawn, with ``COLUMNS``.

        Raises:
            ConfigError: if the settings do not fit the data.
        """

    def draw(
        self,
        points: "pa.Table",
        request: Request[Any],
        style: "FigureStyle",
        title: str,
        footnotes: Sequence[str],
    ) -> "Figure":
        """Draw ``points`` on a figure made by ``style.new_figure``, in ``style.figure_style``.

        Args:
            points: What ``points`` returned.
            request: What ``points`` was given.
            style: Settings that all figures share.
            title: ``TITLE``, filled in.
            footnotes: Sentences to print below the panels, after the figure's own; a page prints them elsewhere.
        """


def load_figure(name: str) -> FigureModule:
    """Import ``figures/<name>.py``."""
    return cast(FigureModule, importlib.import_module(f"workflow_scripts.figures.{name}"))


def of_pattern(pattern: str, paths: Iterable[Path]) -> list[Path]:
    """Those of ``paths`` that ``pattern`` describes, a value of ``Needs.inputs``."""
    literal = re.split(r"(\{[^}]*\})", pattern.removeprefix("<results>"))
    parts = ["[0-9]+" if p == "{seed}" else "[^/]+" if p[:1] == "{" else re.escape(p) for p in literal]
    regex = re.compile(".*" + "".join(parts))
    return [path for path in paths if regex.fullmatch(path.as_posix())]
