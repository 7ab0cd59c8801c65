"""The section ``report`` of the configuration; each rule reads only a part of it."""

from typing import Any

from pydantic import create_model

from workflow_scripts.config import Settings
from workflow_scripts.figures.base import load_figure
from workflow_scripts.figures.style import FigureStyle
from workflow_scripts.graph.figures import declared_figures
from workflow_scripts.reporting.experiment import Experiment
from workflow_scripts.reporting.page import Config as PageConfig


def figures_at(section: str) -> dict[str, type[Settings]]:
    """Blocks of figures in a section of the configuration: key to what the figure's module reads there."""
    paths = {name: needs.config for name, needs in declared_figures().items() if needs.config}
    return {
        path.removeprefix(section): load_figure(name).Config
        for name, path in paths.items()
        if path.startswith(section)
    }


_SHARED: dict[str, Any] = {key: (block, ...) for key, block in figures_at("report.").items()}
_ASKED: dict[str, Any] = {
    key: (block | None, None) for key, block in figures_at("grids.{experiment}.").items()
}

Report: Any = create_model(
    "Report",
    __base__=Settings,
    __doc__="Figures and page.",
    figure=(FigureStyle, ...),
    page=(PageConfig, ...),
    **_SHARED,
)
Grid: type[Experiment] = create_model(
    "Grid", __base__=Experiment, __doc__="One grid in ``config/experiments``.", **_ASKED
)
