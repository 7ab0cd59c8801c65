"""Which models go, and what is made before."""

from types import SimpleNamespace

import pytest

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.graph.figures import Figures
from workflow_scripts.graph.keeping import Keeping
from workflow_scripts.graph.slices import as_json
from workflow_scripts.graph.study import open_study

SIMCSE = "simcse.minilm_mlm.wiki_extract"
JTCSE = "jtcse.demo_twin.wiki_extract"
MORE_DROPOUT = f"{SIMCSE}.more_dropout"


@pytest.fixture
def keeping(monkeypatch):
    """Makes the lookups of the demo with one setting of ``keep_models``."""
    for name in ("SEMBLANCE_DATA", "SEMBLANCE_OFFLINE", "SEMBLANCE_ANSWERS"):
        monkeypatch.setenv(name, "before")  # so that it is put back
        monkeypatch.delenv(name)

    def of(keep, configfile=DEMO):
        study = open_study(merged_config(ROOT, configfile) | {"keep_models": keep}, ROOT)
        return Keeping(study, Figures(study))

    return of


def run(name):
    return SimpleNamespace(run=name)


def test_nothing_goes_where_all_models_are_kept(keeping):
    assert keeping("all").dropped() == []


def test_every_run_loses_weights_otherwise(keeping):
    lists = keeping("none").dropped()
    assert len(lists) == 9
    assert f"<results>/runs/{JTCSE}/dropped_weights.parquet" in lists


def test_a_run_waits_for_its_scores_and_for_the_runs_that_start_from_it(keeping):
    lookups = keeping("best")
    scores = [
        f"<results>/scores/{kind}/{suite}/{SIMCSE}/seed{seed}.parquet"
        for kind, suite in (("geometry", "lee_space"), ("sts", "lee"))
        for seed in (1, 2)
    ]
    twins = [f"<results>/runs/{JTCSE}/seed{seed}/model/record.json" for seed in (1, 2)]
    assert lookups.readers(run(SIMCSE)) == sorted(
        [*scores, *twins, "<results>/figures/demo/token_similarity.svg"]
    )
    assert not set(twins) & set(lookups.readers(run(JTCSE)))
    assert lookups.models(run(SIMCSE)) == [
        f"<results>/runs/{SIMCSE}/seed{s}/model/record.json" for s in (1, 2)
    ]
    assert lookups.settings(run(SIMCSE)) == as_json({"keep_models": "best", "seeds": [1, 2]})


def test_a_teacher_waits_for_its_vectors(keeping):
    lookups = keeping("none", "config/config.yaml")
    readers = lookups.readers(run("jtcse.bert_twin.wiki1m_sick_r"))
    assert any(file.startswith("<results>/teachers/jtcse_bert/") for file in readers)
