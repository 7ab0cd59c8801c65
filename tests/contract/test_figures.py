"""Every figure of the settings is one that a job can draw, says what it shows, and has a caption."""

import pytest

from tests.planning import ROOT
from tests.rooms.figures.conftest import drawn, request_of
from workflow_scripts.figures.base import FigureKind, load_figure
from workflow_scripts.settings.figures import FIGURES


@pytest.mark.parametrize("name", FIGURES)
def test_a_figure_has_all_that_the_contract_asks_for(name):
    kind, settings = load_figure(name), FIGURES[name]
    assert isinstance(kind, FigureKind) and bool(settings.model_fields) == (settings.needs.config is not None)
    fields = dict.fromkeys(settings.model_fields, "...")
    for text in (kind.title, kind.description):
        assert text.format_map(fields | {"title": "..."})
    assert (ROOT / f"resources/captions/{name}.rst").read_text("utf-8").strip()


NOTHING = {
    "alignment_uniformity": ({"task": "lee"}, "Alignment and uniformity are gaps for every run."),
    "attention_maps": ({"layers": [1]}, "No attention weights were kept."),
    "cosine_density": (
        {"task": "lee", "edges": [0, 1, 2], "bandwidth": 0.05},
        "No run of this experiment was scored",
    ),
    "learning_curves": ({"loss_blocks": 2}, "No run of this experiment is trained."),
    "scatter": ({"x": "STS12", "y": "STS-B"}, "No run has both STS12 and STS-B."),
    "threshold_path": ({}, "No run of this experiment has a threshold."),
}


@pytest.mark.parametrize("name", NOTHING)
def test_a_figure_of_nothing_says_so(finished, name):
    block, said = NOTHING[name]
    request = request_of(name, block, inputs={"table": [finished / "tables/lab.parquet"]})
    assert said in " ".join(drawn(load_figure(name).columns.empty_table(), request, name)[1])
