import numpy as np
import pyarrow as pa
import pytest

from tests.numbers.evaluation.scored import evaluate
from workflow_scripts.columns.corpora import LABELLED
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import clustering
from workflow_scripts.evaluation.clustering import agreement, cluster, drawn, hungarian_accuracy
from workflow_scripts.settings.suites.clustering import Config

CONFIG = Config(datasets=["toy"], max_tokens=64, seeds=3, n_init=2, label=None)


def labels(*values):
    return np.array(values, dtype=np.intp)


@pytest.fixture
def blobs():
    """Three classes of twenty texts each, far apart; class names are not numbers."""
    random = np.random.default_rng(1)
    centres = {"sport": (9, 0), "news": (-9, 0), "arts": (0, 9)}
    texts = {f"{name} {number}": name for name in centres for number in range(20)}
    rows = [{"split": "", "text1": text, "text2": None, "label": name} for text, name in texts.items()]
    vectors = {text: np.array(centres[name]) + random.normal(size=2) for text, name in texts.items()}
    return pa.Table.from_pylist(rows, schema=LABELLED), vectors


def encoder(vectors):
    return lambda texts: np.array([vectors[text] for text in texts], dtype=np.float32)


def test_nmi_is_v_measure_and_does_not_depend_on_names():
    found = agreement(labels(0, 0, 1, 1, 2), labels(2, 2, 0, 1, 1))
    assert found["nmi"] == pytest.approx(found["v_measure"])
    assert 0 < found["nmi"] < 1
    assert agreement(labels(0, 0, 1, 1), labels(1, 1, 0, 0)) == {"accuracy": 1, "nmi": 1, "v_measure": 1}


def test_classes_that_lie_apart_are_found_by_every_seed(blobs):
    table, vectors = blobs
    scores = evaluate(clustering, {"toy": table}, encoder(vectors), CONFIG)
    assert {(s.aggregation, s.metric): s.value for s in scores} == {
        (aggregation, metric): pytest.approx(value)
        for aggregation, value in {"mean": 1.0, "sd": 0.0}.items()
        for metric in ("accuracy", "nmi", "v_measure")
    }
    assert {s.n for s in scores} == {60}


def test_mean_and_sd_are_those_of_the_seeds(blobs):
    table, _ = blobs
    random = np.random.default_rng(0)
    noise = {text: random.normal(size=8) for text in table["text1"].to_pylist()}
    found = evaluate(clustering, {"toy": table}, encoder(noise), CONFIG)
    scores = {(score.aggregation, score.metric): score.value for score in found}
    classes = np.unique(table["label"].to_pylist(), return_inverse=True)[1]
    vectors = encoder(noise)(table["text1"].to_pylist())
    seeds = [hungarian_accuracy(classes, cluster(vectors, 3, seed, n_init=2)) for seed in range(3)]
    assert len(set(seeds)) > 1
    assert scores["mean", "accuracy"] == pytest.approx(np.mean(seeds))
    assert scores["sd", "accuracy"] == pytest.approx(np.std(seeds, ddof=1))


@pytest.mark.parametrize(
    ("column", "found"), [("one", "60 texts of 1 classes"), ("own", "60 texts of 60 classes")]
)
def test_labels_that_any_clustering_would_find_are_refused(blobs, column, found):
    table, vectors = blobs
    texts = table["text1"].to_pylist()
    names = {"one": ["good"] * len(texts), "own": texts}[column]
    wrong = table.set_column(
        table.schema.get_field_index("label"), table.schema.field("label"), pa.array(names)
    )
    with pytest.raises(DataError, match=f"{found}. Check the column of labels"):
        evaluate(clustering, {"toy": wrong}, encoder(vectors), CONFIG)


def test_texts_are_drawn_from_all_of_a_larger_set_and_always_the_same():
    table = pa.table({"text1": [f"text {n}" for n in range(1000)], "label": ["a", "b"] * 500})
    few = drawn(table, 100)
    assert len(few) == 100 and few == drawn(table, 100)
    places = [int(text.split()[1]) for text in few["text1"].to_pylist()]
    assert places == sorted(set(places)) and places[-1] > 900
    assert abs(few["label"].to_pylist().count("a") - 50) < 20
    assert drawn(table, None) is drawn(table, 1000) is table


@pytest.mark.parametrize(
    ("classes", "clusters", "accuracy"),
    [
        ((0, 0, 1, 1), (1, 1, 0, 0), 1.0),
        ((0, 0, 1, 1), (0, 1, 0, 1), 0.5),
        ((0, 1, 1, 1, 2), (0, 0, 0, 0, 0), 0.6),  # the share of the largest class
        ((0, 0, 0, 1), (0, 1, 2, 3), 0.5),  # more clusters than classes leave some without one
        (
            [0] * 5 + [1] * 4 + [0] * 4,
            [0] * 9 + [1] * 4,
            8 / 13,
        ),  # cluster 0, largest in class 0, is class 1's
    ],
)
def test_accuracy_takes_the_best_map_of_clusters_to_classes(classes, clusters, accuracy):
    """O-12."""
    assert hungarian_accuracy(labels(*classes), labels(*clusters)) == accuracy
