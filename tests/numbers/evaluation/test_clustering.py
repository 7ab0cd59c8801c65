import numpy as np
import pyarrow as pa
import pytest
from sklearn.exceptions import ConvergenceWarning

from tests.support.scored_tasks import evaluate
from workflow_scripts.columns import LABELLED
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import clustering
from workflow_scripts.evaluation.clustering import agreement, cluster, drawn, hungarian_accuracy
from workflow_scripts.settings.suites import Clustering as Config

CONFIG = Config(datasets=["toy"], max_tokens=64, seeds=3, n_init=2, label=None)


def labels(*values):
    return np.array(values, dtype=np.intp)


@pytest.fixture
def table():
    """Sixty texts of three classes, whose names are not numbers."""
    texts = [(f"text {number}", ("sport", "news", "arts")[number % 3]) for number in range(60)]
    rows = [{"split": "", "text1": text, "text2": None, "label": name} for text, name in texts]
    return pa.Table.from_pylist(rows, schema=LABELLED)


def test_nmi_is_v_measure_and_does_not_depend_on_names():
    found = agreement(labels(0, 0, 1, 1, 2), labels(2, 2, 0, 1, 1))
    assert found["nmi"] == pytest.approx(found["v_measure"])
    assert 0 < found["nmi"] < 1
    assert agreement(labels(0, 0, 1, 1), labels(1, 1, 0, 0)) == {"accuracy": 1, "nmi": 1, "v_measure": 1}


def test_mean_and_sd_are_those_of_the_seeds(table):
    vectors_ND = np.random.default_rng(0).normal(size=(60, 8)).astype(np.float32)
    found = evaluate(clustering, {"toy": table}, lambda _: vectors_ND, CONFIG)
    classes = np.unique(table["label"].to_pylist(), return_inverse=True)[1]
    seeds = [agreement(classes, cluster(vectors_ND, 3, seed, n_init=2)) for seed in range(3)]
    for metric in ("accuracy", "nmi", "v_measure"):
        values = [seed[metric] for seed in seeds]
        assert len(set(values)) > 1
        scores = {score.aggregation: score.value for score in found if score.metric == metric}
        assert scores == pytest.approx({"mean": np.mean(values), "sd": np.std(values, ddof=1)})
    assert {score.n for score in found} == {60}


def test_fewer_vectors_than_classes_carry_a_note(table):
    """Sixty texts of three classes and two vectors, such as many texts without a known word."""
    two_ND = np.repeat(np.eye(2, dtype=np.float32), 30, axis=0)
    with pytest.warns(ConvergenceWarning):
        found = evaluate(clustering, {"toy": table}, lambda _: two_ND, CONFIG)
    note = "2 clusters for 3 classes: the texts have no more different vectors"
    assert {score.note for score in found} == {note}
    three_ND = np.repeat(np.eye(3, dtype=np.float32), 20, axis=0)
    assert {score.note for score in evaluate(clustering, {"toy": table}, lambda _: three_ND, CONFIG)} == {
        None
    }


@pytest.mark.parametrize(
    ("column", "found"), [("one", "60 texts of 1 classes"), ("own", "60 texts of 60 classes")]
)
def test_labels_that_any_clustering_would_find_are_refused(table, column, found):
    texts = table["text1"].to_pylist()
    names = {"one": ["good"] * len(texts), "own": texts}[column]
    wrong = table.set_column(
        table.schema.get_field_index("label"), table.schema.field("label"), pa.array(names)
    )
    with pytest.raises(DataError, match=f"{found}. Check the column of labels"):
        clustering.load("toy", wrong, CONFIG)


def test_texts_are_drawn_from_all_of_a_larger_set_reproducibly():
    """Texts are drawn from all of a larger set and always the same."""
    table = pa.table({"text1": [f"text {n}" for n in range(1000)], "label": ["a", "b"] * 500})
    few = drawn(table, 100)
    assert len(few) == 100
    assert few == drawn(table, 100)
    places = [int(text.split()[1]) for text in few["text1"].to_pylist()]
    assert places == sorted(set(places))
    assert places[-1] > 900
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
