"""Which models go, and what is made before."""

from types import SimpleNamespace

from tests.planning import DEMO, ROOT, merged_config, study_in
from workflow_scripts.graph.reporting import Models
from workflow_scripts.graph.study import open_study

SIMCSE = "simcse.minilm_mlm.wiki_extract"
JTCSE = "jtcse.demo_twin.wiki_extract"


def test_a_run_waits_for_its_scores_its_figures_and_the_runs_that_start_from_it(study):
    assert Models(study).dropped() == []
    models = Models(open_study(merged_config(ROOT, DEMO) | {"keep_models": "none"}, ROOT))
    assert (
        len(models.dropped()) == 9 and f"<results>/runs/{JTCSE}/dropped_weights.parquet" in models.dropped()
    )
    simcse, jtcse = (SimpleNamespace(run=name) for name in (SIMCSE, JTCSE))
    scores = [f"<results>/scores/sts/lee/{SIMCSE}/seed{seed}.parquet" for seed in (1, 2)]
    twins = [f"<results>/runs/{JTCSE}/seed{seed}/model/record.json" for seed in (1, 2)]
    assert models.readers(simcse) == sorted([*scores, *twins, "<results>/figures/demo/record.json"])
    assert not {*twins} & {*models.readers(jtcse)}
    assert models.of_run(jtcse) == twins and models.seeds(simcse) == '{"seeds": [1, 2]}'


def test_a_teacher_waits_for_its_vectors(no_variables):
    readers = Models(study_in(ROOT, [])).readers(SimpleNamespace(run="jtcse.bert_twin.wiki1m_sick_r"))
    assert any(file.startswith("<results>/teachers/jtcse_bert/") for file in readers)
