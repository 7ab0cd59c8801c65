"""Which figures the demo has and what each reads, written out; and what a module's declaration can say."""

import copy
import json
import subprocess
import sys
from types import SimpleNamespace

import pytest

from tests.planning import ROOT
from workflow_scripts.graph.figures import Figures, without_figures

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
NO_BLOCKS = {"alignment_uniformity": None, "token_similarity": None}
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


def test_an_experiment_has_the_figures_whose_inputs_it_makes_and_whose_block_it_holds(figures):
    assert figures.of("demo") == OF_DEMO
    assert figures.of("extraction") == ["extraction_figure4"]


def test_a_block_in_a_grid_asks_for_its_figure(study):
    grid = {"scatter": {"x": "alignment", "y": "Spearman"}, "token_similarity": None}
    assert asking(study, **grid).of("demo") == sorted({*OF_DEMO, "scatter"} - {"token_similarity"})


def test_a_figure_whose_suite_or_runs_are_not_there_is_not_drawn(study):
    assert asking(study, alignment_uniformity=None).of("demo") == OF_DEMO[1:]
    assert asking(study, suites={}).of("demo") == OF_DEMO[2:]
    frozen = asking(study, runs=study.grids["demo"]["runs"][:2], token_similarity=None)
    assert frozen.of("demo") == ["alignment_uniformity", "cosine_density"]


def test_an_experiment_s_figures_are_one_file_to_ask_for(figures):
    of_demo, of_extraction = (f"<results>/figures/{name}/record.json" for name in ("demo", "extraction"))
    assert figures.drawn() == [of_demo, of_extraction]
    assert (figures.drawn("demo"), figures.drawn("extraction")) == ([of_demo], [of_extraction])


def test_an_experiment_without_figures_asks_for_none(study):
    bare = asking(study, runs=study.grids["demo"]["runs"][:2], suites={}, **NO_BLOCKS)
    assert bare.drawn("demo") == [] and bare.experiments == ["extraction"]


def seeds(path, *runs):
    return [path.format(run=run, seed=seed) for run in runs for seed in (1, 2)]


@pytest.mark.parametrize(
    ("figure", "inputs"),
    [
        ("threshold_path", {"metrics": seeds("<results>/runs/{run}/seed{seed}/metrics.parquet", THREE_R)}),
        ("token_similarity", {"models": seeds(MODEL, SIMCSE, THREE_R)}),
        ("layer_attention", {"models": seeds(MODEL, POOLER)}),
    ],
)
def test_a_figure_reads_the_runs_that_its_module_asks_for(figures, figure, inputs):
    assert read_by(figures, figure) == inputs


def test_files_of_runs_are_in_the_order_of_the_grid(figures):
    trained = [
        SIMCSE,
        "simcse_s2sent.minilm_mlm.wiki_extract",
        POOLER,
        THREE_R,
        "jtcse.demo_twin.wiki_extract",
    ]
    histories = seeds("<results>/runs/{run}/seed{seed}/history.parquet", *trained)
    assert read_by(figures, "learning_curves") == {"histories": histories}
    read = read_by(figures, "alignment_uniformity")
    assert read["table"] == ["<results>/tables/demo.parquet"]
    assert read["scores"][0] == "<results>/scores/sts/lee/frozen_avg.minilm/seed0.parquet"
    assert len(read["scores"]) == len(read_by(figures, "cosine_density")["similarities"]) == 13


def test_a_figure_of_the_extraction_study_reads_the_scores_that_its_block_names(figures):
    assert figures.inputs(job("extraction")) == {
        "extraction_figure4.scores": [
            "<results>/extraction/scores/sts/plain/lee.parquet",
            "<results>/extraction/scores/sts/random/lee.parquet",
        ]
    }


def test_a_job_is_told_the_module_and_block_of_each_figure_and_what_all_share(figures):
    settings = json.loads(figures.settings(job()))
    assert list(settings["figures"]) == OF_DEMO and settings["style"] == {"width_inches": 7.3}
    told = settings["figures"]["learning_curves"]
    assert told.pop("runs")[0] == SIMCSE
    called = told.pop("called")
    assert called["runs"][SIMCSE] == ["SimCSE", "adapted MiniLM", "Wikipedia"]
    assert called["corpora"] == {"wiki_extract": "Wikipedia"} and called["datasets"] == {}
    assert told == {
        "module": "learning_curves",
        "title": "Unsupervised SimCSE, S2Sent, LayerAttPooler, 3R and JTCSE on Lee and Pincombe's documents",
        "config": {"loss_blocks": 50},
        "names": {},
    }
    drawing = json.loads(figures.settings(job("extraction")))["figures"]["extraction_figure4"]
    assert drawing["module"] == drawing["config"]["kind"] == "layer_lines"
    assert drawing["title"] == drawing["config"]["title"]
    assert set(drawing["names"]) == {
        "models", "measures", "weightings", "postprocessings", "encoder", "representations", "datasets"
    }  # fmt: skip
    assert drawing["names"]["encoder"] == "MiniLM" and drawing["names"]["datasets"] == {
        "lee": "Lee and Pincombe"
    }


def test_the_code_of_figures_is_theirs_and_the_readouts_of_what_they_load(study, figures):
    readouts = {"models.readouts.layer_attention", "models.readouts.pooling"}
    drawing = {f"figures.{name}" for name in ("cosine_density", "curves", "inside_models", "planes")}
    assert {one for one in figures.modules(job()) if one.startswith("figures.")} == drawing
    assert readouts <= {*figures.modules(job())}
    alone = asking(study, token_similarity=None).modules(job())
    assert {*alone} & readouts == {"models.readouts.layer_attention"}
    assert figures.modules(job("extraction")) == ["figures.extraction"]


def test_a_figure_has_a_caption_of_its_module(figures):
    assert figures.caption_files() == [
        f"resources/captions/{module}.rst" for module in sorted([*OF_DEMO, "layer_lines"])
    ]


def test_a_table_reads_a_grid_without_the_blocks_of_figures(study):
    grid = study.grids["demo"]
    assert {*grid} - {*without_figures(grid)} == {"alignment_uniformity", "token_similarity"}


def test_the_graph_loads_nothing_that_draws_or_computes():
    """Every job of a cluster builds the graph anew."""
    asked = (
        "import sys; from workflow_scripts.graph.figures import Figures; assert Figures;"
        "print({'matplotlib', 'numpy', 'pyarrow', 'torch', 'transformers'} & sys.modules.keys())"
    )
    found = subprocess.run(
        [sys.executable, "-c", asked], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert found.stdout.strip() == "set()"
