"""Benchmarks of mteb by name: which tasks they are, what a study plans, and what a job writes of them."""

import mteb
import pytest
from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTaskSTS
from mteb.abstasks.aggregate_task_metadata import AggregateTaskMetadata
from mteb.abstasks.aggregated_task import AbsTaskAggregate
from mteb.benchmarks.get_benchmark import _build_registry

from tests import tiny
from tests.evaluations import dataset, gaps_of, run, scores_in, sts_metadata
from tests.planning import DEMO, ROOT, merged_config
from workflow_scripts.columns import TASKS
from workflow_scripts.graph.checks import read_grids, study_findings
from workflow_scripts.provenance.artefacts import read_record
from workflow_scripts.settings.suites import Mteb as Config

TEXTS = tiny.sentences(40, seed=7)
SUITE = {"max_tokens": 32, "batch_size": 8, "metrics": ["cosine_pearson"]}
LOADED, BROKEN = [], []
"""Names of tasks whose data were loaded, and of those that raise."""


def local(name, shift=0, **more):
    """A task of pairs whose scores repeat with ``shift``, of one subset or one of each of ``eval_langs``."""

    class Local(AbsTaskSTS):
        metadata = sts_metadata(name, **more)

        def load_data(self, **_):
            LOADED.append(name)
            half = len(TEXTS) // 2
            scores = [float((place + shift) % (5 + shift)) for place in range(half)]
            rows = {"sentence1": TEXTS[:half], "sentence2": TEXTS[half:], "score": scores}
            parts = DatasetDict({"test": Dataset.from_dict(rows)})
            self.dataset = dict.fromkeys(self.hf_subsets, parts) if "eval_langs" in more else parts
            self.data_loaded = True

        def evaluate(self, *given, **named):
            if name in BROKEN:
                raise RuntimeError("no such column")
            return super().evaluate(*given, **named)

    return Local()


@pytest.fixture
def toy(monkeypatch):
    """A benchmark Toy: a task, one of three subsets, and one that averages two, of another type."""

    both = [local("Left", 1), local("Right", 2)]

    class Both(AbsTaskAggregate):
        metadata = sts_metadata("Both", kind=AggregateTaskMetadata, type="Retrieval", tasks=both)

    LOADED.clear()
    languages = {"en": ["eng-Latn"], "en-de": ["eng-Latn", "deu-Latn"], "de": ["deu-Latn"]}
    tasks = [local("One"), local("Many", 3, eval_langs=languages), Both()]
    monkeypatch.setitem(_build_registry(), "Toy", mteb.Benchmark(name="Toy", tasks=tasks))


UNKNOWN = [
    ({"benchmark": "MTEB(eng,v2)"}, ["suites.mteb.mteb_english.benchmark: mteb {} has no benchmark MTEB(eng,v2). Did you "
                                     "mean MTEB(eng, v2)?"]),
    ({"lists": ["jtcse_sts22"]},
     ["suites.mteb.mteb_english.benchmark: 'MTEB(eng, v2)' with lists ['jtcse_sts22']. Give one of them."]),
    ({"benchmark": None}, ["suites.mteb.mteb_english.benchmark: null with lists null. Give one of them."]),
]  # fmt: skip
COLUMN = {
    "heading": "x", "suite": "mteb_english", "task": "MTEB(eng, v2)", "aggregation": "mean", "metric": "main_score",
    "scale": 100, "digits": 1,
}  # fmt: skip


def findings(suite, **column):
    """Findings for the demo with mteb_english, and a column of it, in its grid."""
    config = merged_config(DEMO)
    grids, _ = read_grids(config, ROOT / "config")
    config["suites"]["mteb"]["mteb_english"] |= suite
    grids["demo"]["suites"]["mteb"] = ["mteb_english"]
    grids["demo"]["columns"] = [*grids["demo"]["columns"], COLUMN | column]
    return study_findings(config, grids, ROOT, None)[2]


@pytest.mark.parametrize(("suite", "lines"), UNKNOWN)
def test_names_that_mteb_does_not_know_are_found_before_any_job(tmp_path, monkeypatch, suite, lines):
    monkeypatch.chdir(tmp_path)
    assert findings(suite) == [line.format(mteb.__version__) for line in lines]


def test_columns_are_held_against_what_a_benchmark_writes(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for sound in ({}, {"aggregation": "mean_of_types"}, {"task": "Retrieval"}, {"task": "STS12"}):
        assert findings({}, **sound) == []
    assert "MTEB is no task of suite mteb_english" in findings({}, task="MTEB")[0]
    assert 'has no "mean_of_types" of main_score' in findings({}, task="STS", aggregation="mean_of_types")[0]


def evaluated(folder, model, lists, without=None):
    scores = folder / "results/demo/scores/mteb/demo/run/seed0.parquet"
    rows = [
        {"task": name, "repository": "a/b", "revision": "first", "sha256": None, "missing": reason}
        for name, reason in {"One": None, "Many": None, "Left": None, "Right": None, **(without or {})}.items()
    ]  # fmt: skip
    settings = {"suite": SUITE | {"benchmark": "Toy"}, "lists": lists}
    run("evaluate_mteb", settings, model=model, tasks=dataset(folder, "tasks", TASKS, rows), scores=scores)
    return scores, scores_in(scores)


WHOLE = {
    "Toy": {"One": "One", "Many": "Many", "Both": "Both"},
    "STS": {"One": "One", "Many": "Many"},
    "Retrieval": {"Both": "Both"},
}


def main_scores(rows, aggregation="mean"):
    return {
        row["task"]: row["value"]
        for row in rows
        if row["metric"] == "main_score" and row["aggregation"] == aggregation
    }


def test_a_benchmark_is_evaluated_and_its_results_are_those_that_mteb_reads(toy, model, tmp_path):
    scores, rows = evaluated(tmp_path, model, WHOLE)
    mean = main_scores(rows)
    assert len({mean["One"], mean["Many"], mean["Both"]}) == 3
    assert mean["STS"] == pytest.approx((mean["One"] + mean["Many"]) / 2)
    assert mean["Toy"] == pytest.approx((mean["One"] + mean["Many"] + mean["Both"]) / 3)
    assert main_scores(rows, "mean_of_types") == {"Toy": pytest.approx((mean["STS"] + mean["Both"]) / 2)}
    written = Config(benchmark="Toy", **SUITE).written(WHOLE)
    cells = {(row["aggregation"], row["metric"]) for row in rows if row["task"] == "Toy" and row["value"]}
    assert cells == {("mean", "main_score"), ("mean_of_types", "main_score")} <= written["Toy"]
    assert read_record(scores).labels == []

    cache = mteb.ResultCache(scores.with_suffix(".checkpoints"))
    (results,) = cache.load_results(tasks=["One", "Many", "Both"]).model_results
    assert results.model_name == "semblance/frozen_avg.tiny-seed0" and len(results.model_revision) == 40
    assert {one.task_name: one.get_score() for one in results.task_results} == {
        name: pytest.approx(mean[name]) for name in WHOLE["Toy"]
    }


def test_a_task_that_averages_others_is_a_gap_where_one_of_them_has_no_data(toy, model, tmp_path):
    _, rows = evaluated(tmp_path, model, WHOLE, without={"Right": "nobody has it"})
    gaps = gaps_of(rows)
    assert gaps["Both"] == "nobody has it"
    assert gaps["Toy"] in ("main_score of Both is not there", "the mean of Retrieval is not there")
    assert "Toy" not in main_scores(rows) and "STS" in main_scores(rows)
    assert main_scores(rows, "mean_of_types") == {}


def test_a_task_that_raises_is_a_labelled_gap_and_tried_again(toy, model, tmp_path, cached):
    BROKEN.append("One")
    scores, rows = evaluated(tmp_path, model, WHOLE)
    BROKEN.clear()
    assert "RuntimeError: no such column" in gaps_of(rows)["One"] and "One" not in main_scores(rows)
    assert "task One of frozen_avg.tiny, seed 0, failed" in read_record(scores).labels[0]
    LOADED.clear()
    _, rows = evaluated(tmp_path, model, WHOLE)
    assert LOADED == ["One"] and "One" in main_scores(rows)
    assert read_record(scores).labels == []
