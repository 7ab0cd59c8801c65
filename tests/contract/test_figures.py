"""Every figure can be drawn by a job, has texts for all readers, and reads all its settings."""

import ast
import inspect
import sys

import pytest

from tests.rooms.figures.conftest import shown
from workflow_scripts.figures.base import all_figures
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.grids import GridBlock
from workflow_scripts.settings.study import Report
from workflow_scripts.settings.wording import classes_in


@pytest.mark.parametrize("figure", all_figures().values(), ids=all_figures())
def test_a_figure_has_texts_for_all_readers(figure):
    fields = dict.fromkeys(figure.settings.model_fields, "...") | {"title": "..."}
    assert figure.title.format_map(fields)
    assert figure.description.format_map(fields)
    assert figure.caption.format(experiment="lab", figure="one").strip()
    assert figure.draw.__doc__


ELSEWHERE = {
    "runs",
    "kind",
    "title",
    "below",
}  # planning chooses runs and figures by them, and the page the place


@pytest.mark.parametrize("figure", all_figures().values(), ids=all_figures())
def test_every_setting_of_a_figure_is_read_where_it_is_drawn(figure):
    """One that changes nothing would go unnoticed."""
    fields = figure.settings.model_fields
    nested = {block for field in fields.values() for block in classes_in(field.annotation)}
    blocks = [figure.settings, *(block for block in nested if block.__name__ in ("Plot", "Series"))]
    sources = [inspect.getsource(one) for one in (sys.modules[figure.draw.__module__], *blocks)]
    read = {
        node.attr
        for source in sources
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.Attribute)
    }
    own = {field for block in blocks for field in block.model_fields}
    assert own <= read | ELSEWHERE


NOTHING = {
    "attention_maps": ({"layers": [1]}, "maps", "No attention weights were kept."),
    "cosine_density": (
        {"task": "lee", "edges": [0, 1, 2], "bandwidth": 0.05},
        "similarities",
        "No run of this experiment was scored on this task.",
    ),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_figure_of_nothing_says_so(name):
    block, role, said = NOTHING[name]
    assert said in shown(name, block, {role: []}).texts


def test_settings_of_figures_belong_to_a_grid_report_or_study():
    """An optional one of a grid."""
    keys = {name: field.annotation for name, field in Report.model_fields.items()}
    keys |= {name: field.annotation for name, field in GridBlock.model_fields.items()}
    for name, figure in all_figures().items():
        kinds = (figure.settings, figure.settings | None)
        assert figure.settings is Settings or "kind" in figure.settings.model_fields or keys[name] in kinds
