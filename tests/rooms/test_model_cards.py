"""What a card says of a run's sources, looked up in the configuration."""

import copy
import json

import pytest

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.graph.checks import read_grids
from workflow_scripts.graph.reporting import Page, card
from workflow_scripts.graph.study import Study
from workflow_scripts.reporting.model_card import Config

CONFIG = merged_config(ROOT, DEMO)
GRIDS = read_grids(CONFIG, ROOT / "config")[0]


def study_of(config=CONFIG, grids=GRIDS):
    return Study(config, grids, ROOT)


def card_of(study, run):
    return Config.parse(json.loads(card(study.runs[run])), "card")


STUDY = study_of()
SIMCSE = "simcse.minilm_mlm.wiki_extract"


@pytest.mark.parametrize("name", STUDY.runs)
def test_every_run_of_the_demo_has_sources_with_licences(name):
    found = card_of(STUDY, name)
    assert [(source.name, source.licence) for source in found.encoders] == [("minilm", "Apache-2.0")]
    adapted = "minilm_mlm" in name or "demo_twin" in name  # both have seen the corpus
    assert [source.name for source in found.data] == (["wiki_extract"] if adapted else [])
    assert (found.training is None) == (STUDY.runs[name].corpus is None)
    assert all(source.licence and source.origin for source in [*found.encoders, *found.data])


def test_a_card_shows_all_seeds_of_its_run_and_no_other_run_whichever_experiment_asks_for_them():
    other = copy.deepcopy(GRIDS["demo"]) | {"suites": {"sts": ["stsb"]}, "baseline": None}
    other["runs"] = [{"method": "simcse", "encoder": "minilm_mlm", "corpus": "wiki_extract"}]
    config = CONFIG | {"experiments": [*CONFIG["experiments"], "other"]}
    asked_twice = study_of(config, GRIDS | {"other": other})
    for study, suites in ((STUDY, ["lee"]), (asked_twice, ["lee", "stsb"])):
        assert study.runs[SIMCSE].scores == [
            f"<results>/scores/sts/{suite}/{SIMCSE}/seed{seed}.parquet" for suite in suites for seed in (1, 2)
        ]


def test_a_card_and_a_page_name_the_sentences_that_a_corpus_adds():
    config = copy.deepcopy(CONFIG)
    config["corpora"]["wiki_extract"]["also"] = "sick_r_all"
    study = study_of(config)
    assert [source.name for source in card_of(study, SIMCSE).data] == ["sick_r_all", "wiki_extract"]
    assert "sick_r_all" in Page(study).datasets


def test_a_card_and_a_page_name_what_is_behind_the_teacher_and_the_base_of_a_base():
    config, grids = copy.deepcopy(CONFIG), copy.deepcopy(GRIDS)
    adapted = config["encoders"]["minilm_mlm"]["adapt"]
    config["encoders"] |= {
        "bert_wiki": {"label": None, "adapt": adapted | {"base": "bert_base", "corpus": "wiki1m"}},
        "bert_nli": {"label": None, "adapt": adapted | {"base": "bert_wiki", "corpus": "wiki_sentences"}},
        "taught": {"label": None, "runs": [{"method": "frozen_avg", "encoder": "bert_nli"}]},
    }
    block = {"encoder": "minilm", "corpus": "wiki_extract", "method": "distil", "teacher": "taught"}
    grids["demo"]["runs"] = [block]
    study = study_of(config, grids)
    found = card_of(study, "distil.minilm.wiki_extract.taught")
    assert [source.name for source in found.encoders] == ["bert_base", "minilm"]
    assert [source.name for source in found.data] == ["wiki1m", "wiki_extract", "wiki_sentences"]
    assert study.read_corpora == ["wiki1m", "wiki_extract", "wiki_sentences"]
