import numpy as np
import pyarrow as pa
import pytest
import torch
from scipy.stats import pearsonr, spearmanr
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold

from tests.support.scored_tasks import evaluate
from workflow_scripts.columns import LABELLED
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import transfer
from workflow_scripts.evaluation.transfer import best_of, optima, senteval_order, soft_classes
from workflow_scripts.settings.suites import Transfer as Config

WIDTH = 8


def encode(sentences):
    """A vector of the numbers in a sentence."""
    return np.array([[float(word) for word in sentence.split()] for sentence in sentences], dtype=np.float32)


SETTINGS = Config(
    datasets=["task"], graded=[], classifier="exact", folds=4, seed=1111,
    max_tokens=64,
)  # fmt: skip


def scores_of(table, encoder=encode, **changes):
    """Scores of a table, with some settings changed."""
    return evaluate(transfer, {"task": table}, encoder, SETTINGS.model_copy(update=changes))


def sentences(random, count):
    return [" ".join(f"{number:.4f}" for number in random.normal(size=WIDTH)) for _ in range(count)]


def task(random, splits, classes=2, pairs=False, noise=1.0):
    """Texts whose labels are nearly linear in their vectors; ``splits`` says how many rows each split has."""
    count = sum(splits.values())
    firsts, seconds = sentences(random, count), sentences(random, count)
    features = encode(firsts)
    if pairs:
        features = np.concatenate([np.abs(features - encode(seconds)), features * encode(seconds)], axis=1)
    logits = features @ random.normal(size=(features.shape[1], classes))
    labels = (logits + noise * random.gumbel(size=logits.shape)).argmax(axis=1)
    columns = {
        "split": [name for name, rows in splits.items() for _ in range(rows)],
        "text1": firsts,
        "text2": seconds if pairs else [None] * count,
        "label": [str(label) for label in labels],
    }
    order = sorted(range(count), key=lambda row: labels[row])  # all texts have the same number of words
    return (
        pa.table(columns, schema=LABELLED),
        features[order],
        labels[order],
        np.array(columns["split"])[order],
    )


def values(scores):
    return {score.metric: score.value for score in scores}


@pytest.fixture
def random():
    return np.random.default_rng(3)


def fitted(features, labels, strength):
    model = LogisticRegression(C=strength, tol=1e-8, max_iter=5000)
    return model.fit(features.astype(float), labels)


def folds(labels, count=4):
    return StratifiedKFold(count, shuffle=True, random_state=1111).split(labels, labels)


def chosen_by_folds(features, labels, strengths):
    means = []
    for strength in strengths:
        accuracies = [
            fitted(features[kept], labels[kept], strength).score(features[left], labels[left])
            for kept, left in folds(labels)
        ]
        means.append(round(100 * np.mean(accuracies), 2))
    return strengths[int(np.argmax(means))], max(means) / 100


def test_nested_cross_validation_equals_a_loop_over_scikit_learn(random):
    table, features, labels, _ = task(random, {"": 240})
    strengths = [2.0**power for power in range(-2, 4)]
    tested, dev = [], []
    for kept, left in folds(labels):
        strength, best = chosen_by_folds(features[kept], labels[kept], strengths)
        tested.append(fitted(features[kept], labels[kept], strength).score(features[left], labels[left]))
        dev.append(best)
    found = values(scores_of(table))
    assert found["accuracy"] == pytest.approx(np.mean(tested))
    assert found["dev_accuracy"] == pytest.approx(np.mean(dev), abs=1e-4)
    assert 0.6 < found["accuracy"] < 0.99


@pytest.mark.parametrize(
    ("accuracies", "chosen"), [((0.80001, 0.80004), 0), ((0.80001, 0.80006), 1), ((0.7, 0.9, 0.9), 1)]
)
def test_the_smallest_of_equally_accurate_penalties_wins(accuracies, chosen):
    """As SentEval has it: 80.001% and 80.004% are the same, 80.006% is more."""
    assert best_of(np.array(accuracies)) == chosen


def test_a_task_with_train_and_test_chooses_by_folds_of_train(random):
    table, features, labels, split = task(random, {"train": 200, "test": 60}, classes=2, pairs=True)
    train, test = split == "train", split == "test"
    strength, dev = chosen_by_folds(features[train], labels[train], [2.0**power for power in range(-1, 6)])
    predicted = fitted(features[train], labels[train], strength).predict(features[test].astype(float))
    for label in ("0", "1"):
        found = scores_of(table, positive={"task": label})
        assert values(found) == {
            "accuracy": pytest.approx((predicted == labels[test]).mean()),
            "dev_accuracy": pytest.approx(dev, abs=1e-4),
            "f1": pytest.approx(f1_score(labels[test], predicted, pos_label=int(label))),
        }
        assert found[2].note == f"F1 of class {label}"
        assert {score.metric: score.n for score in found} == {"accuracy": 60, "dev_accuracy": 200, "f1": 60}
    assert values(scores_of(table)).keys() == {"accuracy", "dev_accuracy"}
    with pytest.raises(
        DataError, match=r"task: transfer\.positive: 'yes' is not a class\. Choose from: '0', '1'"
    ):
        transfer.load("task", table, SETTINGS.model_copy(update={"positive": {"task": "yes"}}))
    with pytest.raises(DataError, match="task: no test part, on which F1 is measured"):
        transfer.load(
            "task", task(random, {"": 40})[0], SETTINGS.model_copy(update={"positive": {"task": "1"}})
        )


def test_a_task_with_dev_chooses_there_and_does_not_train_on_it(random):
    table, features, labels, split = task(random, {"train": 120, "dev": 50, "test": 70}, classes=3, noise=3)
    train, dev, test = (split == name for name in ("train", "dev", "test"))
    models = [fitted(features[train], labels[train], 2.0**power) for power in range(-2, 4)]
    accuracies = [model.score(features[dev], labels[dev]) for model in models]
    best = models[int(np.argmax(np.round(accuracies, 4)))]
    assert values(scores_of(table)) == {
        "accuracy": pytest.approx(best.score(features[test], labels[test])),
        "dev_accuracy": pytest.approx(max(accuracies)),
    }


def test_a_soft_class_of_3_6_lies_between_3_and_4():
    scores = np.array([3.6, 1.0, 5.0, 0.2])
    expected = [[0, 0, 0.4, 0.6, 0], [1, 0, 0, 0, 0], [0, 0, 0, 0, 1], [1, 0, 0, 0, 0]]
    np.testing.assert_allclose(soft_classes(scores, 1, 5), expected, atol=1e-12)  # O-16
    np.testing.assert_allclose(soft_classes(25 * (scores - 1), 0, 100), expected, atol=1e-12)


def expected_classes(features, scores, train, strength):
    """By scikit-learn, with a row for each class that a score lies between, weighted by its share."""
    shares = soft_classes(scores, 1, 5)[:train]
    rows, classes = np.nonzero(shares)
    model = LogisticRegression(C=strength, tol=1e-8, max_iter=5000)
    model.fit(features[rows], classes, sample_weight=shares[rows, classes])
    return model.predict_proba(features) @ np.arange(1, 6)


def test_a_graded_task_predicts_expected_classes(random):
    """A graded task predicts expected classes with the penalty that is best on dev."""
    firsts = sentences(random, 400)
    features = np.abs(encode(firsts)).astype(float)
    scores = np.clip(1 + features[:, :3].sum(axis=1), 1, 5).round(2)
    splits = ["train"] * 250 + ["dev"] * 50 + ["test"] * 100
    zeros = ["0 " * (WIDTH - 1) + "0"] * 400  # so that |u - v| is |u|, and scores are linear in it
    table = pa.table([splits, firsts, zeros, list(map(str, scores))], schema=LABELLED)
    peers = [expected_classes(features, scores, 250, 2.0**power) for power in range(-2, 4)]
    dev = [pearsonr(scores[250:300], peer[250:300]).statistic for peer in peers]
    assert max(dev) > min(dev) + 1e-4
    predicted = peers[int(np.argmax(dev))][300:]
    found = scores_of(table, graded=["task"], grades={"task": (1, 5)})
    assert values(found) == {
        "spearman": pytest.approx(spearmanr(scores[300:], predicted).statistic, abs=1e-4),
        "pearson": pytest.approx(pearsonr(scores[300:], predicted).statistic, abs=1e-5),
        "dev_pearson": pytest.approx(max(dev), abs=1e-5),
    }
    assert found[0].n == 100
    with pytest.raises(DataError, match=r"class '1\.\d+' has 1 rows in the test part, and none in training"):
        scores_of(table)


@pytest.mark.parametrize(("scale", "start"), [(1, 0), (0.25, -0.25), (25, -25), (-2, 7)])
def test_grades_of_any_range_give_the_same_correlations(random, scale, start):
    firsts = sentences(random, 200)
    scores = np.clip(1 + np.abs(encode(firsts))[:, :3].sum(axis=1), 1, 5).round(2)
    splits = ["train"] * 120 + ["dev"] * 40 + ["test"] * 40
    zeros = ["0 " * (WIDTH - 1) + "0"] * 200

    def found(labels):
        table = pa.table([splits, firsts, zeros, [repr(float(one)) for one in labels]], schema=LABELLED)
        return values(scores_of(table, graded=["task"]))

    assert found(start + scale * scores) == pytest.approx(found(scores), abs=1e-4)
    assert found(scores)["pearson"] > 0.5


def hidden(labels, **parts):
    splits = [part for part, rows in parts.items() for _ in range(rows)]
    texts = [f"{number} 1 1 1 1 1 1 1" for number in range(len(splits))]
    return pa.table([splits, texts, [None] * len(splits), labels], schema=LABELLED)


@pytest.mark.parametrize(
    ("labels", "parts", "graded", "message"),
    [
        (["0", "1"] * 8 + ["-1"] * 4, {"train": 16, "test": 4}, [], "class '-1' has 4 rows in the test part, and none in training"),
        (["0", "1"] * 8 + ["0", "2"] * 4, {"train": 16, "dev": 4, "test": 4}, [], "class '2' has 2 rows in the dev part"),
        (["true", "false"] * 8 + ["1"] * 4, {"train": 16, "test": 4}, [], "class '1' has 4 rows in the test part"),
        (["0", "1"] * 8 + ["2"], {"": 17}, [], "class '2' has 1 rows in the one part, and none in training when it is tested"),
        (["1", "2.5"] * 8 + ["-1"] * 4, {"train": 12, "dev": 4, "test": 4}, ["task"], "all 4 scores of the test part are -1. If they are hidden"),
        (["1", "1_0"] * 8, {"train": 12, "test": 4}, ["task"], "score '1_0' is not a number"),
    ],
)  # fmt: skip
def test_a_part_that_cannot_be_predicted_is_refused(labels, parts, graded, message):
    with pytest.raises(DataError, match=f"task: {message}"):
        transfer.load("task", hidden(labels, **parts), SETTINGS.model_copy(update={"graded": graded}))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"grades": {"task": (1, 5)}}, "grades: task is not defined"),
        ({"graded": ["task"], "positive": {"task": "1"}}, "positive: task is not defined"),
        (
            {"graded": ["task"], "grades": {"task": (5, 1)}},
            r"grades\.task: 5 to 1\. Write the minimum first",
        ),
    ],
)
def test_grades_and_positive_classes_are_of_tasks_that_have_them(settings, message):
    with pytest.raises(ValueError, match=message):
        Config(**(SETTINGS.model_dump() | settings))


def test_f1_is_a_score_of_tasks_with_a_positive_class_only():
    config = Config(**(SETTINGS.model_dump() | {"datasets": ["task", "other"], "positive": {"task": "1"}}))
    both = config.written({})
    assert both["task"] - both["other"] == {("", "f1")}
    assert config.for_task("other").positive == {}


def test_sentevals_classifier_runs_nested_folds(random):
    table, *_ = task(random, {"": 1000}, noise=0.1)
    assert values(scores_of(table, classifier="senteval", folds=2))["accuracy"] > 0.8


@pytest.mark.parametrize(
    ("classes", "found"),
    [
        (1, "40 rows of 1 classes, the largest of 40"),
        (40, "40 rows of 40 classes, the largest of 1; 4 folds need at least two"),
    ],
)
def test_labels_that_teach_nothing_are_refused(classes, found):
    labels = [str(number % classes) for number in range(40)]
    table = pa.table([[""] * 40, ["a text"] * 40, [None] * 40, labels], schema=LABELLED)
    with pytest.raises(DataError, match=f"toy: {found}"):
        transfer.load("toy", table, SETTINGS)


def test_rows_are_in_sentevals_order_before_they_are_folded():
    """By the words of the first text, then of the second, then by label; equal ones as they came."""
    rows = [("a b", "c d", "1"), ("a b", "c", "1"), ("a", "c d e", "1"), ("a b", "d", "0"), ("b a", "c", "1")]
    table = pa.Table.from_pylist(
        [{"split": "", "text1": one, "text2": other, "label": label} for one, other, label in rows],
        schema=LABELLED,
    )
    assert senteval_order(table, table["label"].to_pylist()) == [2, 3, 1, 4, 0]
    assert senteval_order(table, [5.0, 1.0, 3.0, 4.0, 0.5]) == [2, 4, 1, 3, 0]


@pytest.mark.parametrize("classes", [2, 3])
def test_a_classifier_is_at_the_optimum_of_its_rows(classes, random):
    """A classifier is at the optimum of its rows and never predicts a class without one."""
    features = random.normal(size=(300, WIDTH)).astype(np.float32)
    targets = random.dirichlet(np.ones(classes), size=300)
    rows = np.arange(0, 300, 2)
    found = optima(features, targets, rows, [0.25, 8.0])
    assert found.unfinished == 0
    for weights, strength in zip(found.weights_SCF, [0.25, 8.0], strict=True):
        weights.requires_grad_()
        logits = torch.from_numpy(features[rows]) @ weights[:, :-1].T + weights[:, -1]
        wanted = torch.from_numpy(targets[rows]).float()
        loss = torch.nn.functional.cross_entropy(logits, wanted, reduction="sum")
        (loss + weights[:, :-1].square().sum() / (2 * strength)).backward()
        assert float(weights.grad[-1].abs().max()) < 1e-3
    targets[rows, -1] = 0
    assert set(optima(features, targets, rows, [32.0]).weights_SCF[0, -1].tolist()) == {0, -1e9}


@pytest.mark.parametrize(
    ("splits", "changes", "fits"),
    [
        ({"": 240}, {}, 6 * (4 * 4 + 4)),
        ({"train": 200, "test": 40}, {}, 7 * (4 + 1)),
        ({"train": 160, "dev": 40, "test": 40}, {}, 6),
        ({"train": 160, "dev": 40, "test": 40}, {"graded": ["task"]}, 6),
    ],
)
def test_fits_before_their_optimum_are_counted_in_a_note(random, monkeypatch, splits, changes, fits):
    """Stopped at the first step, every fit but those that started at their optimum is counted."""
    table, *_ = task(random, splits, classes=3)
    assert all("optimum" not in (score.note or "") for score in scores_of(table, **changes))
    monkeypatch.setattr(transfer, "_MAX_ITERATIONS", 1)
    with pytest.warns(ConvergenceWarning):
        notes = {score.note for score in scores_of(table, **changes)}
    assert len(notes) == 1
    (note,) = notes
    before, count = note.removesuffix(" fits of the classifier stopped before the optimum").rpartition(" ")[
        ::2
    ]
    assert int(count) == pytest.approx(fits, rel=0.5)
    assert before == ("mean of 4 folds, penalty chosen inside each;" if "" in splits else "")


def test_threads_decide_no_number(random):
    table, *_ = task(random, {"": 240})
    threads = torch.get_num_threads()
    try:
        torch.set_num_threads(1)
        alone = scores_of(table)
        torch.set_num_threads(4)
        assert scores_of(table) == alone
    finally:
        torch.set_num_threads(threads)
