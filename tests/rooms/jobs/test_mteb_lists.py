"""Lists of mteb's tasks as a job scores them, with tasks that average others."""

import mteb
import pytest
from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTaskSTS
from mteb.abstasks.aggregate_task_metadata import AggregateTaskMetadata
from mteb.abstasks.aggregated_task import AbsTaskAggregate

from tests.support import toys
from tests.support.evaluation_jobs import dataset, gaps_of, run, scores_in, sts_metadata
from workflow_scripts.columns import TASKS
from workflow_scripts.provenance.artefacts import read_record

TEXTS = toys.sentences(40, seed=7)
LISTS = {"Toy": {"One": "One", "Many": "Many", "Both": "Both"}, "STS": {"One": "One", "Many": "Many"}}
SUITE = {"max_tokens": 32, "batch_size": 8, "metrics": ["cosine_pearson"], "lists": [*LISTS]}
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
    """A task, one of three subsets, and one that averages two."""

    both = [local("Left", 1), local("Right", 2)]

    class Both(AbsTaskAggregate):
        metadata = sts_metadata("Both", kind=AggregateTaskMetadata, type="Retrieval", tasks=both)

    LOADED.clear()
    BROKEN.clear()  # of a test that failed
    languages = {"en": ["eng-Latn"], "en-de": ["eng-Latn", "deu-Latn"], "de": ["deu-Latn"]}
    tasks = {"One": local("One"), "Many": local("Many", 3, eval_langs=languages), "Both": Both()}
    monkeypatch.setattr(mteb, "get_task", tasks.__getitem__)


def evaluated(folder, model, without=None, cache=None):
    scores = folder / "results/demo/scores/mteb/demo/run/seed0.parquet"
    rows = [
        {"task": name, "repository": "a/b", "revision": "first", "sha256": None, "missing": reason}
        for name, reason in {"One": None, "Many": None, "Left": None, "Right": None, **(without or {})}.items()
    ]  # fmt: skip
    settings = {"suite": SUITE, "lists": LISTS}
    fetched = dataset(folder, "tasks", TASKS, rows)
    run("evaluate_mteb", settings, cache=cache, model=model, tasks=fetched, scores=scores)
    return scores, scores_in(scores)


def means(rows, metric):
    return {
        row["task"]: row["value"] for row in rows if (row["metric"], row["aggregation"]) == (metric, "mean")
    }


def test_lists_are_scored_with_results_that_mteb_reads(toy, model, tmp_path):
    """Lists are scored and their results are those that mteb reads."""
    scores, rows = evaluated(tmp_path, model)
    main, pearson = means(rows, "main_score"), means(rows, "cosine_pearson")
    assert len({main["One"], main["Many"], main["Both"]}) == 3
    of_parts = {
        row["aggregation"]: row["value"]
        for row in rows
        if row["task"] == "Many" and row["metric"] == "cosine_pearson"
    }
    (one,) = (row["value"] for row in rows if row["task"] == "One" and row["metric"] == "cosine_pearson")
    assert pearson["STS"] == pytest.approx((one + sum(of_parts.values()) / 3) / 2)
    assert [*map(str, read_record(scores).labels)] == []

    cache = mteb.ResultCache(scores.with_suffix(".checkpoints"))
    (results,) = cache.load_results(tasks=[*LISTS["Toy"]]).model_results
    assert results.model_name == "semblance/frozen_avg.tiny-seed0"
    assert len(results.model_revision) == 40
    assert {one.task_name: one.get_score() for one in results.task_results} == {
        name: pytest.approx(main[name]) for name in LISTS["Toy"]
    }


def test_an_average_with_a_missing_task_is_a_gap(toy, model, tmp_path):
    """A task that averages others is a gap where one of them has no data."""
    _, rows = evaluated(tmp_path, model, without={"Right": "nobody has it"})
    gaps = gaps_of(rows)
    assert gaps["Both"] == "nobody has it"
    assert gaps["Toy"] == "no cosine_pearson of Both"
    assert "STS" in means(rows, "cosine_pearson")
    assert "Both" not in means(rows, "main_score")


def test_a_task_that_raises_is_a_labelled_gap_and_tried_again(toy, model, tmp_path, cached):
    BROKEN.append("One")
    scores, rows = evaluated(tmp_path, model, cache=cached)
    BROKEN.clear()
    assert "RuntimeError: no such column" in gaps_of(rows)["One"]
    assert "One" not in means(rows, "main_score")
    assert "task One of frozen_avg.tiny, seed 0, failed" in str(read_record(scores).labels[0])
    LOADED.clear()
    _, rows = evaluated(tmp_path, model, cache=cached)
    assert LOADED == ["One"]
    assert "One" in means(rows, "main_score")
    assert [*map(str, read_record(scores).labels)] == []
