"""The section ``report`` of the configuration; each rule reads only a part of it."""

from typing import Annotated, Any

from pydantic import Field, create_model, model_validator

from workflow_scripts.config import Settings
from workflow_scripts.figures.base import load_figure
from workflow_scripts.figures.style import FigureStyle
from workflow_scripts.graph.figures import declared_figures
from workflow_scripts.graph.grid_columns import one_column_a_task
from workflow_scripts.reporting.experiment import AnyColumn, Column, Experiment
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
_OF_EVERY_TASK: dict[str, Any] = {
    name: (field.annotation, field)
    for name, field in Column.model_fields.items()
    if name not in ("heading", "task")
}
_Tasks = Annotated[dict[str, str], Field(min_length=1)] | Annotated[list[str], Field(min_length=1)]
TaskColumns: Any = create_model(
    "TaskColumns",
    __base__=Settings,
    __doc__="A score of several tasks, each of which is a column.",
    tasks=(_Tasks, Field(description="Tasks, whose names are the headings, or headings to tasks.")),
    **_OF_EVERY_TASK,
)


class _File(Experiment):
    """A grid as it is written."""

    columns: list[AnyColumn | TaskColumns] = Field(min_length=1)  # type: ignore[assignment]

    @model_validator(mode="before")
    @classmethod
    def _write_out(cls, given: dict[str, Any]) -> dict[str, Any]:
        return one_column_a_task(given)


Grid: type[Experiment] = create_model(
    "Grid", __base__=_File, __doc__="One grid in ``config/experiments``.", **_ASKED
)
