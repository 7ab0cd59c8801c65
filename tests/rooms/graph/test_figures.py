"""Which figures the demo has and what each reads, written out; and what a module's declaration can say."""

import copy
from dataclasses import replace
from types import SimpleNamespace

import pytest

from workflow_scripts.graph.figures import Figures

OF_DEMO = [
    "alignment_uniformity",
    "cosine_density",
    "layer_attention",
    "learning_curves",
    "threshold_path",
    "token_similarity",
]


@pytest.fixture
def figures(study):
    return Figures(study)


def asking(study, **grid):
    """The study with other keys of the demo's grid."""
    changed = copy.deepcopy(study.blocks)
    changed["demo"] |= grid
    return Figures(replace(study, blocks=changed))


FROZEN = {"runs": 2, "token_similarity": None}
ASKED = {
    "the demo": ({}, OF_DEMO),
    "a block that asks for its figure": (
        {"scatter": {"x": "alignment", "y": "Spearman"}, "token_similarity": None},
        sorted({*OF_DEMO, "scatter"} - {"token_similarity"}),
    ),
    "no block": ({"alignment_uniformity": None}, OF_DEMO[1:]),
    "no suite": ({"suites": {}}, OF_DEMO[2:]),
    "no trained run": (FROZEN, ["alignment_uniformity", "cosine_density"]),
    "nothing": (FROZEN | {"suites": {}, "alignment_uniformity": None}, []),
}


@pytest.mark.parametrize(("grid", "drawn"), ASKED.values(), ids=ASKED)
def test_an_experiment_has_the_figures_whose_inputs_it_makes_and_whose_block_it_holds(study, grid, drawn):
    if "runs" in grid:
        grid = grid | {"runs": study.blocks["demo"]["runs"][: grid["runs"]]}
    figures = asking(study, **grid)
    record = ["<results>/figures/demo/record.json"] if drawn else []
    assert sorted(figures.by_experiment.get("demo", ())) == drawn and figures.drawn("demo") == record
    assert figures.drawn() == [*record, "<results>/figures/extraction/record.json"]


SIMCSE, THREE_R = (f"{method}.minilm_mlm.wiki_extract" for method in ("simcse", "simcse_3r"))
MODEL = "<results>/runs/{run}/seed{seed}/model/record.json"


POOLER = "simcse_layerattpooler.minilm_mlm.wiki_extract"


def read_by(figures, figure):
    """Files that a figure of the demo reads, by role."""
    inputs = figures.inputs(SimpleNamespace(experiment="demo"))
    named = (name.split(".") for name in inputs)
    return {role: inputs[f"{figure}.{role}"] for name, role in named if name == figure}


TRAINED = [SIMCSE, SIMCSE.replace("simcse", "simcse_s2sent"), POOLER, THREE_R, "jtcse.demo_twin.wiki_extract"]


def seeds(path, *runs):
    return [path.format(run=run, seed=seed) for run in runs for seed in (1, 2)]


@pytest.mark.parametrize(
    ("figure", "inputs"),
    [
        ("threshold_path", {"metrics": seeds("<results>/runs/{run}/seed{seed}/metrics.parquet", THREE_R)}),
        ("token_similarity", {"models": seeds(MODEL, SIMCSE, THREE_R)}),
        ("layer_attention", {"models": seeds(MODEL, POOLER)}),
        (
            "learning_curves",
            {"histories": seeds("<results>/runs/{run}/seed{seed}/history.parquet", *TRAINED)},
        ),
    ],
)
def test_a_figure_reads_the_runs_that_its_module_asks_for(figures, figure, inputs):
    assert read_by(figures, figure) == inputs
