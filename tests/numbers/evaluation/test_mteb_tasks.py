from collections import Counter

import pytest
import yaml
from datasets import Dataset, DatasetDict
from mteb.abstasks import AbsTaskSTS
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer

from benchmarks.material import minilm
from tests.support.evaluation_jobs import sts_metadata
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.evaluation.base import Score, gap
from workflow_scripts.evaluation.finished_tasks import run_tasks
from workflow_scripts.evaluation.mteb_data import find_tasks
from workflow_scripts.evaluation.mteb_scores import Evaluation, list_means, task_names
from workflow_scripts.provenance.cache import Cache
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.settings.suites import Mteb as Config
from workflow_scripts.settings.suites import MtebLists as Lists

LISTS = Lists.parse(yaml.safe_load((ROOT / "config/mteb.yaml").read_text("utf-8"))["mteb"], "mteb")
SETTINGS = Config(
    lists=["jtcse_sts22"],
    max_tokens=32,
    batch_size=8,
    metrics=["cosine_pearson"],
)
PAPERS = {
    "jtcse_classification": {"Classification": 45},
    "jtcse_reranking": {"Reranking": 14},
    "jtcse_bitext_mining": {"BitextMining": 15},
    "jtcse_sts22": {"STS": 1},
    "english_retrieval": {"Retrieval": 26},
}
"""For some lists, the kinds of their tasks and the papers' numbers of tasks."""
WORDS = ["cat", "dog", "car", "road", "sun", "moon", "rain", "tea", "milk", "bread", "king", "queen"]
ROWS = {
    "sentence1": [f"The {word} is here." for word in WORDS] * 2,
    "sentence2": [f"A {word} was there." for word in WORDS]
    + [f"A {word} was there." for word in reversed(WORDS)],
    "score": [5.0 - 0.1 * place for place in range(12)] + [0.1 * place for place in range(12)],
}


NO_CACHE = Cache(None, 1)


class LocalSTS(AbsTaskSTS):
    metadata = sts_metadata("LocalSTS", "local/sts")
    loads = 0

    def load_data(self, num_proc=None, *, timer=None, **_):
        type(self).loads += 1
        self.dataset = DatasetDict({"test": Dataset.from_dict(ROWS)})
        self.data_loaded = True


def run_local(folder, task=None, cache=NO_CACHE, **missing):
    def unexpected(_task, error):
        raise error

    task = task or LocalSTS()
    evaluation = Evaluation(minilm(), SETTINGS, folder, missing)
    gaps = run_tasks([evaluation.run(task, "a" * 64)], cache, unexpected)
    return [*gaps.values()] or evaluation.scores(task)


def directly():
    encoder = SentenceTransformer(str(minilm()), device="cpu")
    left, right = (
        encoder.encode(ROWS[side], normalize_embeddings=True) for side in ("sentence1", "sentence2")
    )
    return spearmanr((left * right).sum(axis=1), ROWS["score"]).statistic


def test_a_row_per_subset_and_metric_is_cached_unless_torn(tmp_path, cached):
    """An evaluation has a row per subset and metric and is taken from the cache unless it is torn."""
    folder = tmp_path / "results"
    first = run_local(folder, cache=cached)
    assert [(score.aggregation, score.metric) for score in first] == [
        ("mean", "main_score"),
        ("test:default", "main_score"),
        ("test:default", "cosine_pearson"),
    ]
    assert first[0].value == first[1].value == pytest.approx(directly(), abs=1e-4)
    assert "data first" in first[0].note
    loads = LocalSTS.loads
    assert run_local(folder, cache=cached) == first
    assert LocalSTS.loads == loads
    (entry,) = cached.folder.rglob("LocalSTS.json")
    entry.write_text(entry.read_text()[:50])
    assert run_local(folder, cache=cached) == first
    assert LocalSTS.loads > loads


class Unreachable(LocalSTS):
    def load_data(self, **_):
        raise ConnectionError("the hub is far\naway")


def test_a_task_without_its_data_is_a_gap_or_an_error(tmp_path):
    (found,) = run_local(tmp_path, Unreachable(), LocalSTS="nobody has it")
    assert (found.value, found.note) == (None, "nobody has it")
    with pytest.raises(
        DataError, match=r"LocalSTS: data set local/sts: ConnectionError: the hub is far\. Download"
    ):
        run_local(tmp_path, Unreachable())


def test_the_mean_of_a_list_is_over_tasks_not_their_parts():
    """The mean of a list is over its tasks and not over their parts."""
    lists = {"two": {"A": "a", "B": "b"}, "one": {"A": "a"}}
    config = SETTINGS.model_copy(update={"lists": ["two", "one"], "metrics": ["map_at_1", "map_at_5", "f1"]})
    scores = [
        Score("a", "mean", "main_score", 0.9, 30),
        Score("a", "test:en", "map_at_1", 0.1, 10),
        Score("a", "test:de", "map_at_1", 0.3, 20),
        Score("b", "dev:en", "map_at_1", 0.8, 5),
        Score("b", "dev:en", "map_at_5", 0.7, 5),
    ]
    assert [tuple(one)[:5] for one in list_means(scores, lists, config)] == [
        ("two", "mean", "map_at_1", pytest.approx((0.2 + 0.8) / 2), 35),
        tuple(gap("two", ""))[:5],
        ("one", "mean", "map_at_1", pytest.approx(0.2), 30),
    ]
    assert list_means(scores, lists, config)[1].note == "no map_at_5 of a"


def test_a_list_has_no_mean_if_a_part_of_a_task_has_no_value():
    """mteb writes NaN for a subset that it could not score; a mean over the other subsets is of other data."""
    config = SETTINGS.model_copy(update={"lists": ["one"], "metrics": ["f1"]})
    parts = [
        Score("a", "test:en", "f1", 0.4, 10),
        Score("a", "test:de", "f1", None, 0, "not a finite number"),
    ]
    assert list_means(parts, {"one": {"A": "a"}}, config) == [gap("one", "no f1 of a")]


def test_lists_hold_the_papers_numbers_of_tasks():
    """Lists hold the papers' numbers of tasks of a kind and this mteb knows all."""
    kinds = {
        name: Counter(task.metadata.type for task in find_tasks(task_names(LISTS.lists, [name])))
        for name in LISTS.lists
    }
    assert {name: kinds[name] for name in PAPERS} == PAPERS
    assert [sum(kinds[name].values()) for name in PAPERS] == [len(LISTS.lists[name]) for name in PAPERS]
    assert "jtcse_retrieval" in LISTS.not_in_this_mteb


def test_unknown_tasks_are_named():
    with pytest.raises(ConfigError, match="has no task NoSuchTask"):
        find_tasks(["NoSuchTask"])
