"""Which figures the demo has and what each reads, written out; and what a module's declaration can say."""

import copy
import json
from types import SimpleNamespace

import pytest

from workflow_scripts.graph.figures import Figures
from workflow_scripts.settings.extraction.cells import Names

OF_DEMO = [
    "alignment_uniformity",
    "cosine_density",
    "layer_attention",
    "learning_curves",
    "threshold_path",
    "token_similarity",
]
SIMCSE, THREE_R = (f"{method}.minilm_mlm.wiki_extract" for method in ("simcse", "simcse_3r"))
MODEL = "<results>/runs/{run}/seed{seed}/model/record.json"
POOLER = "simcse_layerattpooler.minilm_mlm.wiki_extract"


@pytest.fixture
def figures(study):
    return Figures(study)


def asking(study, **grid):
    """The study with other keys of the demo's grid."""
    changed = copy.deepcopy(study.grids)
    changed["demo"] |= grid
    return Figures(type(study)(study.config, changed, study.runs, study.root))


def job(experiment="demo"):
    return SimpleNamespace(experiment=experiment)


def read_by(figures, figure):
    """Files that a figure of the demo reads, by role."""
    named = (name.split(".") for name in figures.inputs(job()))
    return {role: figures.inputs(job())[f"{figure}.{role}"] for name, role in named if name == figure}


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
        grid = grid | {"runs": study.grids["demo"]["runs"][: grid["runs"]]}
    figures = asking(study, **grid)
    record = ["<results>/figures/demo/record.json"] if drawn else []
    assert figures.of("demo") == drawn and figures.drawn("demo") == record
    assert figures.drawn() == [*record, "<results>/figures/extraction/record.json"]


TRAINED = [SIMCSE, SIMCSE.replace("simcse", "simcse_s2sent"), POOLER, THREE_R, "jtcse.demo_twin.wiki_extract"]
"""In the order of the grid."""


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


def test_a_figure_of_scores_reads_every_run_and_the_table(figures):
    read = read_by(figures, "alignment_uniformity")
    assert read["table"] == ["<results>/tables/demo.parquet"]
    assert read["scores"][0] == "<results>/scores/sts/lee/frozen_avg.minilm/seed0.parquet"
    assert len(read["scores"]) == len(read_by(figures, "cosine_density")["similarities"]) == 13


def test_a_job_is_told_the_module_and_block_of_each_figure_and_what_all_share(figures):
    settings = json.loads(figures.settings(job()))
    assert list(settings["figures"]) == OF_DEMO and settings["style"] == {"width_inches": 7.3}
    told = settings["figures"]["learning_curves"]
    assert (told["module"], told["kind"]) == ("curves", "learning_curves")
    assert told["config"] == {"loss_blocks": 50} and told["caption"].startswith(
        "Training loss and development score "
    )
    assert told["title"].startswith("Unsupervised SimCSE, ") and told["runs"] == TRAINED
    assert told["called"]["runs"][SIMCSE] == ["SimCSE", "adapted MiniLM", "Wikipedia"]
    assert told["called"]["corpora"] == {"wiki_extract": "Wikipedia"} and told["called"]["datasets"] == {}
    drawing = json.loads(figures.settings(job("extraction")))["figures"]["extraction_figure4"]
    assert drawing["kind"] == drawing["config"]["kind"] == "layer_lines" and drawing["module"] == "extraction"
    assert drawing["title"] == drawing["config"]["title"]
    assert Names.parse(drawing["names"], "names").datasets == {"lee": "Lee and Pincombe"}


def test_the_code_of_figures_is_theirs_and_the_readouts_of_what_they_load(study):
    alone = asking(study, token_similarity=None)
    drawing = {f"figures.{name}" for name in ("cosine_density", "curves", "inside_models", "planes")}
    assert {*alone.modules(job())} == {
        *drawing,
        "models.readouts.layer_attention",
        "settings.readouts.layer_attention",
    }
    assert alone.modules(job("extraction")) == ["figures.extraction"]
