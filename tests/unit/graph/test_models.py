"""Which models go, and what is made before."""

from types import SimpleNamespace

import pytest

from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.graph.reporting import Models
from workflow_scripts.graph.study import open_study

SIMCSE = "simcse.minilm_mlm.wiki_extract"
JTCSE = "jtcse.demo_twin.wiki_extract"


@pytest.fixture
def models(no_variables):
    """Makes the lookups of a study with one setting of ``keep_models``."""

    def of(keep="none", configfile=DEMO):
        study = open_study(merged_config(ROOT, configfile) | {"keep_models": keep}, ROOT)
        return Models(study)

    return of


def run(name):
    return SimpleNamespace(run=name)


def test_every_run_loses_weights_or_none_does(models):
    assert models("all").dropped() == []
    lists = models("none").dropped()
    assert len(lists) == 9 and f"<results>/runs/{JTCSE}/dropped_weights.parquet" in lists


def test_a_run_waits_for_its_scores_its_figures_and_the_runs_that_start_from_it(models):
    lookups = models()
    scores = [f"<results>/scores/sts/lee/{SIMCSE}/seed{seed}.parquet" for seed in (1, 2)]
    twins = [f"<results>/runs/{JTCSE}/seed{seed}/model/record.json" for seed in (1, 2)]
    figure = "<results>/figures/demo/record.json"
    assert lookups.readers(run(SIMCSE)) == sorted([*scores, *twins, figure])
    assert not set(twins) & set(lookups.readers(run(JTCSE)))
    assert lookups.of_run(run(JTCSE)) == twins
    assert lookups.seeds(run(SIMCSE)) == '{"seeds": [1, 2]}'


def test_a_teacher_waits_for_its_vectors(models):
    readers = models(configfile="config/config.yaml").readers(run("jtcse.bert_twin.wiki1m_sick_r"))
    assert any(file.startswith("<results>/teachers/jtcse_bert/") for file in readers)
