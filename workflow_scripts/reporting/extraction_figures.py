"""Figures of the extraction study: one module a kind of figure, imported by its name.

A module has ``Config`` (which cells), ``points(config, names, scores)`` (columns of ``EXTRACTION_POINTS``) and
``draw(points, config, style, footnotes)``.
"""

import importlib
from collections.abc import Sequence
from typing import Any, Protocol, cast

import pyarrow as pa
from matplotlib.figure import Figure

from workflow_scripts.config import Slice
from workflow_scripts.reporting.extraction_cells import Names, Scores
from workflow_scripts.reporting.style import FigureStyle


class FigureModule(Protocol):
    """What a module of a kind of figure offers."""

    Config: type[Slice]

    def points(self, config: Any, names: Names, scores: Scores) -> pa.Table:
        """What is drawn."""

    def draw(self, points: pa.Table, config: Any, style: FigureStyle, footnotes: Sequence[str]) -> Figure:
        """The figure."""


def load_figure(kind: str) -> FigureModule:
    """The module of one kind of figure."""
    return cast(FigureModule, importlib.import_module(f"workflow_scripts.reporting.{kind}"))
