"""Every module of figures that declares needs is one that the job can draw, found without a list."""

import importlib
import inspect

import pyarrow as pa
import pytest

from tests.planning import ROOT
from workflow_scripts.config import Settings
from workflow_scripts.figures import sweep
from workflow_scripts.figures.base import FigureModule, load_figure
from workflow_scripts.graph.configuration import read_yaml
from workflow_scripts.graph.figures import declared_figures
from workflow_scripts.graph.runs import one_column_a_task, runs_of
from workflow_scripts.settings.study import Grid

FIGURES = list(declared_figures())


def test_figures_are_found():
    assert {"learning_curves", "scatter", "mixing_map"} <= {*FIGURES}
    assert not {"base", "style", "curves", "extraction", "maps", "named_points"} & {*FIGURES}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_all_that_the_contract_asks_for(name):
    module, settings = load_figure(name), importlib.import_module(f"workflow_scripts.settings.figures.{name}")
    assert isinstance(module.COLUMNS, pa.Schema) and issubclass(settings.Config, Settings)
    assert (settings.Config is Settings) == (settings.NEEDS.config is None)
    fields = dict.fromkeys(settings.Config.model_fields, "...")
    for text in (module.TITLE, module.DESCRIPTION):
        assert text.format_map(fields | {"title": "..."})
    for function in ("points", "draw"):
        own, asked = (
            list(inspect.signature(getattr(one, function)).parameters) for one in (module, FigureModule)
        )
        assert own == [name for name in asked if name != "self"]


@pytest.mark.parametrize(
    "path", sorted((ROOT / "config/experiments").glob("*.yaml")), ids=lambda path: path.stem
)
def test_what_a_grid_asks_of_its_figures_is_in_its_columns_and_runs(path):
    grid = Grid.parse(one_column_a_task(read_yaml(path)), path.stem)
    if grid.sweep:
        sweep.check_plots(grid.sweep, grid)
    if grid.scatter:
        assert {grid.scatter.x, grid.scatter.y} <= {column.heading for column in grid.columns}
    if grid.token_similarity:
        assert {*grid.token_similarity.runs} <= {*runs_of(read_yaml(path))}


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_a_caption(name):
    assert (ROOT / f"resources/captions/{name}.rst").read_text("utf-8").strip()
