"""What a card says of a run's sources, looked up in the configuration."""

import json
from types import SimpleNamespace

import pytest

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.graph.runs import all_runs, read_experiments
from workflow_scripts.graph.sharing import Sharing
from workflow_scripts.graph.study import Study
from workflow_scripts.reporting.model_card import Config

CONFIG = merged_config(ROOT, DEMO)
GRIDS = read_experiments(CONFIG, ROOT / "config/experiments")
STUDY = Study(CONFIG, GRIDS, all_runs(GRIDS, CONFIG["encoders"]), ROOT)
SHARING = Sharing(STUDY)


@pytest.mark.parametrize("name", STUDY.runs)
def test_every_run_of_the_demo_has_sources_with_licences(name):
    found = Config.parse(json.loads(SHARING.settings(SimpleNamespace(run=name, seed="1"))), "card")
    assert [(source.name, source.licence) for source in found.encoders] == [("minilm", "Apache-2.0")]
    adapted = "minilm_mlm" in name or "demo_twin" in name  # both have seen the corpus
    assert [source.name for source in found.data] == (["wiki_extract"] if adapted else [])
    assert (found.training is None) == (STUDY.runs[name].corpus is None)
    assert all(source.licence and source.origin for source in [*found.encoders, *found.data])


def test_a_card_shows_all_seeds_of_its_run_and_no_other_run():
    files = SHARING.scores(SimpleNamespace(run="simcse.minilm_mlm.wiki_extract", seed="1"))
    assert files == [
        f"<results>/scores/{suite}/simcse.minilm_mlm.wiki_extract/seed{seed}.parquet"
        for suite in ("geometry/lee_space", "sts/lee")
        for seed in (1, 2)
    ]
    assert len(SHARING.cards()) == 15
