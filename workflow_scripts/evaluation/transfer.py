"""Transfer tasks: a linear classifier on frozen sentence vectors, following SentEval's protocols.

The splits of a task decide its protocol:

* none (MR, CR, SUBJ, MPQA): nested cross-validation. Each outer fold is tested once; its penalty is the one
  with the best mean accuracy over inner folds of the other rows.
* train and test (TREC, MRPC): the penalty is chosen by cross-validation on train, then train is fitted again.
* train, dev and test (SST2, SST5, SciCite, SICK-E): the penalty is chosen on dev.

Pairs of texts have the features [|u - v|, u * v]. A task with a class in the setting ``positive`` (MRPC) also gets its
F1. Graded tasks (SICK-R, STS-B) have five soft classes at equal distances over the range of their grades, which is that
of the training part or of the setting ``grades``: from 1 to 5, 3.6 is 0.4 of class 3 and 0.6 of class 4. The prediction
is the expected class, and the penalty is chosen by Pearson correlation on dev. SentEval's code has the range 1 to 5
for every task.

The classifier is one of two:

* ``exact``: scikit-learn's logistic regression at its optimum, with the penalties of SentEval without PyTorch
  (C of 2^-2 .. 2^3; with a test but no dev split 2^-1 .. 2^5). Deterministic, and the fastest. SentEval stops
  scikit-learn at its default tolerance, before the optimum.
* ``senteval``: SentEval's PyTorch classifier, weight decay 1e-5 .. 1e-2 (the grid in its code). Published numbers were
  obtained this way, with 10 folds.

As in SentEval, rows are first sorted by their number of words and their label (which determines the folds), folds are
stratified and shuffled, accuracies are rounded to 0.01% before penalties are compared, and the smallest value wins
ties. There are two differences: outer and inner folds depend on the setting ``seed`` (in SentEval, nested folds are
always shuffled with 1111), and graded tasks are solved exactly, by cross-entropy, with every classifier (in SentEval,
by mean squared error on probabilities, with Adam).

Shape suffixes: N rows, D features, C classes, P problems, S penalties.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import torch
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import f1_score
from sklearn.model_selection import StratifiedKFold
from threadpoolctl import threadpool_limits

from workflow_scripts.arrays import Floats, Integers, Vectors
from workflow_scripts.data.tables import number_of
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import senteval_classifier
from workflow_scripts.evaluation.base import Score, Task, not_scored
from workflow_scripts.evaluation.correlation import pearson, spearman, tied
from workflow_scripts.settings.suites import Transfer

Config = Transfer


_SOFT_CLASSES = 5
"""Number of classes of graded tasks, as in SentEval."""
_DECAYS = [1e-5, 1e-4, 1e-3, 1e-2]
_STRENGTHS = [2.0**power for power in range(-2, 4)]
_STRENGTHS_WITHOUT_DEV = [2.0**power for power in range(-1, 6)]
_TOLERANCE = 1e-7
"""Maximum component of the mean loss's gradient at which scikit-learn stops; predictions no longer change."""
_MAX_ITERATIONS = 1000
_NEVER = -1e9
"""Logit of a class without rows."""


class Positive(NamedTuple):
    """The class whose F1 is measured."""

    number: int
    label: str


class Fits(NamedTuple):
    """Classifiers of one subset of rows: a penalty each."""

    weights_SCF: torch.Tensor
    """Shape (S, C, D + 1), the intercept last."""
    unfinished: int = 0
    """Number of those that scikit-learn left before their optimum."""


Problem = tuple[Integers, Integers | None]
"""Training rows for a classifier with every penalty, and held-out rows for its evaluation, or None."""


def load(task: str, table: pa.Table, config: Config) -> Task:
    """Return a task of texts or pairs of texts.

    Its scores are ``accuracy`` (and ``f1`` of its positive class), or ``spearman`` and ``pearson`` for a graded task,
    and the score on the rows that chose the penalty (``dev_accuracy``, ``dev_pearson``).

    Raises:
        DataError: if a score is not a number, all scores of a part are equal, a class has too few rows for the folds or
            none in the training part, or the positive class does not exist or has no test part.
    """
    graded = task in config.graded
    labels = _grades(task, table) if graded else table["label"].to_pylist()
    order = senteval_order(table, labels)
    table = table.take(order)
    split = np.array(table["split"].to_pylist())
    rows = {name: np.flatnonzero(split == name) for name in dict.fromkeys(split.tolist())}
    if set(rows) not in ({""}, {"train", "test"}, {"train", "dev", "test"}):
        return not_scored(task, f"splits {sorted(rows)}; known: none; train, test; train, dev, test")
    if graded and "dev" not in rows:
        return not_scored(task, "a graded task needs a dev split")
    sorted_N = np.array(labels)[order]
    targets_N: NDArray[Any] = sorted_N if graded else _classes(config, task, sorted_N)
    _check_parts(task, sorted_N, rows, graded=graded)
    positive = None if graded else _positive(config, task, sorted_N, rows)
    sides = ["text1"] if table["text2"].null_count else ["text1", "text2"]

    def score(first: Vectors, *second: Vectors) -> list[Score]:
        features = first
        if second:
            features = np.concatenate([np.abs(first - second[0]), first * second[0]], axis=1)
        if graded:
            return _noted(*_graded(config, task, features, targets_N, rows))
        if "" in rows:
            return _noted(*_nested(config, task, features, targets_N))
        return _noted(*_tested(config, task, features, targets_N, rows, positive))

    return Task([table[side].to_pylist() for side in sides], score)


def _grades(task: str, table: pa.Table) -> list[float]:
    try:
        return [number_of(label) for label in table["label"].to_pylist()]
    except ValueError as error:
        problem = f"{task}: {error}, but labels of a graded task must be scores"
        raise DataError(f"{problem}. Remove it from transfer.graded.") from error


def _classes(config: Config, task: str, labels: NDArray[Any]) -> Integers:
    """Return the class number of each row."""
    classes, numbers = np.unique(labels, return_inverse=True)
    largest = int(np.bincount(numbers).max())
    if len(classes) == 1 or largest < config.folds:
        problem = f"{len(labels)} rows of {len(classes)} classes, the largest of {largest}"
        need = f"{config.folds} folds need at least two classes, and {config.folds} rows of one"
        raise DataError(f"{task}: {problem}; {need}. Check the column of labels.")
    return numbers


def _check_parts(task: str, labels_N: NDArray[Any], rows: Mapping[str, Integers], *, graded: bool) -> None:
    """Raise DataError if a part cannot be predicted: equal grades, or a class without training rows."""
    for part, part_rows in rows.items():
        counts = Counter(labels_N[part_rows].tolist())
        if graded and len(counts) == 1:
            problem = f"all {len(part_rows)} scores of the {part} part are {labels_N[part_rows[0]]:g}"
            raise DataError(f"{task}: {problem}. If they are hidden, remove the task.")
        known = counts if part == "" else Counter(labels_N[rows["train"]].tolist())
        lacking = [
            label for label, count in counts.items() if not known[label] or (part == "" and count == 1)
        ]
        if lacking and not graded:
            problem = f"class {lacking[0]!r} has {counts[lacking[0]]} rows in the {part or 'one'} part"
            problem += ", and none in training" if part else ", and none in training when it is tested"
            raise DataError(f"{task}: {problem}. Correct the labels; if they are hidden, remove the task.")


def _positive(
    config: Config, task: str, labels_N: NDArray[Any], rows: Mapping[str, Integers]
) -> Positive | None:
    """Return number and name of the class whose F1 is measured; None without one."""
    label = config.positive.get(task)
    classes = np.unique(labels_N).tolist()
    if label is not None and label not in classes:
        problem = f"transfer.positive: {label!r} is not a class"
        raise DataError(f"{task}: {problem}. Choose from: {', '.join(map(repr, classes[:5]))}.")
    if label is not None and "test" not in rows:
        raise DataError(f"{task}: no test part, on which F1 is measured. Remove it from transfer.positive.")
    return None if label is None else Positive(classes.index(label), label)


def senteval_order(table: pa.Table, labels: Sequence[str] | Sequence[float]) -> list[int]:
    """Return row numbers, stably sorted by the numbers of words of the first and second text and by label."""
    firsts, seconds = table["text1"].to_pylist(), table["text2"].to_pylist()
    keys = [
        (len(first.split()), len(second.split()) if second else 0, label)
        for first, second, label in zip(firsts, seconds, labels, strict=True)
    ]
    return sorted(range(len(keys)), key=keys.__getitem__)


# Protocols: each returns its scores, and the number of its fits that did not reach their optimum


def _noted(scores: list[Score], unfinished: int) -> list[Score]:
    """Return scores with a note on fits that did not reach their optimum."""
    if not unfinished:
        return scores
    fits = "1 fit" if unfinished == 1 else f"{unfinished} fits"
    caveat = f"{fits} of the classifier stopped before the optimum"
    return [score._replace(note="; ".join(filter(None, [score.note, caveat]))) for score in scores]


def _nested(config: Config, task: str, features: Vectors, labels: Integers) -> tuple[list[Score], int]:
    outer = _folds(config, labels, np.arange(len(labels)))
    chosen, unfinished = _chosen_by_folds(config, _STRENGTHS, features, labels, [rows for rows, _ in outer])
    tested = [
        (_predict(weights, features[left]) == labels[left]).mean()
        for (weights, _), (_, left) in zip(chosen, outer, strict=True)
    ]
    values = {"accuracy": np.mean(tested), "dev_accuracy": np.mean([accuracy for _, accuracy in chosen])}
    note = f"mean of {config.folds} folds, penalty chosen inside each"
    scores = [Score(task, "", metric, float(value), len(labels), note) for metric, value in values.items()]
    return scores, unfinished


def _tested(
    config: Config,
    task: str,
    features: Vectors,
    labels: Integers,
    rows: Mapping[str, Integers],
    positive: Positive | None,
) -> tuple[list[Score], int]:
    train, test = rows["train"], rows["test"]
    choosing = rows.get("dev", train)
    if "dev" in rows:
        ((fits, unfinished),) = _fitted(config, _STRENGTHS, features, labels, [(train, choosing)])
        accuracies = _accuracies(fits, features, labels, choosing)
        best = best_of(accuracies)
        weights, dev_accuracy = fits[best], float(accuracies[best])
    else:
        ((weights, dev_accuracy),), unfinished = _chosen_by_folds(
            config, _STRENGTHS_WITHOUT_DEV, features, labels, [train]
        )
    predicted = _predict(weights, features[test])
    accuracy = float((predicted == labels[test]).mean())
    scores = [
        Score(task, "", "accuracy", accuracy, len(test)),
        Score(task, "", "dev_accuracy", dev_accuracy, len(choosing)),
    ]
    if positive:
        f1 = float(f1_score(labels[test] == positive.number, predicted == positive.number, zero_division=0))
        scores.append(Score(task, "", "f1", f1, len(test), f"F1 of class {positive.label}"))
    return scores, unfinished


def _chosen_by_folds(
    config: Config, strengths: list[float], features: Vectors, labels: Integers, parts: Sequence[Integers]
) -> tuple[list[tuple[torch.Tensor, float]], int]:
    """Return for each part of the rows the weights with the best penalty over its folds, and its accuracy.

    Also return the number of fits that did not reach their optimum.
    """
    folds = [fold for rows in parts for fold in _folds(config, labels, rows)]
    problems = [*folds, *((rows, None) for rows in parts)]
    fits = _fitted(config, strengths, features, labels, problems)
    by_fold = [_accuracies(fits[n].weights_SCF, features, labels, left) for n, (_, left) in enumerate(folds)]
    means = np.array(by_fold).reshape(len(parts), config.folds, -1).mean(axis=1)
    best = [best_of(accuracies) for accuracies in means]
    finals = zip(fits[len(folds) :], means, best, strict=True)
    chosen = [(final.weights_SCF[index], float(accuracies[index])) for final, accuracies, index in finals]
    return chosen, sum(fit.unfinished for fit in fits)


def _graded(
    config: Config, task: str, features: Vectors, scores_N: Floats, rows: Mapping[str, Integers]
) -> tuple[list[Score], int]:
    train = scores_N[rows["train"]]
    targets = soft_classes(scores_N, *config.grades.get(task, (train.min(), train.max())))
    ((weights, unfinished),) = _solved(features, targets, [rows["train"]], _STRENGTHS)
    classes, inputs_ND = np.arange(_SOFT_CLASSES), features.astype(np.float64)
    expected = {
        split: tied(_logits(weights.double(), inputs_ND[rows[split]]).softmax(dim=-1).numpy() @ classes)
        for split in ("dev", "test")
    }
    dev = tied(np.array([pearson(scores_N[rows["dev"]], predicted) for predicted in expected["dev"]]))
    best = int(np.argmax(dev))
    gold, predicted = scores_N[rows["test"]], expected["test"][best]
    scores = [
        Score(task, "", "spearman", spearman(gold, predicted), len(gold)),
        Score(task, "", "pearson", pearson(gold, predicted), len(gold)),
        Score(task, "", "dev_pearson", float(dev[best]), len(rows["dev"])),
    ]
    return scores, unfinished


def soft_classes(scores_N: Floats, low: float, high: float) -> Floats:
    """Return each score divided between the two nearest of five classes, shape (N, C) (Tai et al. 2015).

    The classes are at equal distances from low to high. A score beyond the first or last class belongs only to this
    class, such as STS-B's scores below 1 (in SentEval, the targets of such scores sum to less than 1).
    """
    positions = (np.clip(scores_N, low, high) - low) / (high - low) * (_SOFT_CLASSES - 1)
    shares: Floats = np.maximum(0, 1 - np.abs(positions[:, None] - np.arange(_SOFT_CLASSES)))
    return shares


# Classifiers


def _fitted(
    config: Config, strengths: list[float], features: Vectors, labels: Integers, problems: Sequence[Problem]
) -> list[Fits]:
    """Return the classifiers of each problem."""
    if config.classifier == "exact":
        targets_NC = np.eye(int(labels.max()) + 1)[labels]
        return _solved(features, targets_NC, [rows for rows, _ in problems], strengths)
    return [
        Fits(senteval_classifier.train(features, labels, *problem, _DECAYS, config.seed))
        for problem in problems
    ]


def _solved(
    features: Vectors, targets_NC: Floats, subsets: Sequence[Integers], strengths: list[float]
) -> list[Fits]:
    """Return the classifiers of each subset of rows; each of the job's threads fits a subset."""
    parallel = Parallel(n_jobs=torch.get_num_threads(), prefer="threads")
    with threadpool_limits(1):  # threads inside a fit would gain little
        return list(parallel(delayed(optima)(features, targets_NC, rows, strengths) for rows in subsets))


def optima(features_ND: Vectors, targets_NC: Floats, rows: Integers, strengths: Sequence[float]) -> Fits:
    """Return the logistic regression of some rows with every penalty.

    A row with a soft label is repeated for each of its classes, weighted by its share. A class without rows is never
    predicted.
    """
    kept, classes = np.nonzero(targets_NC[rows])
    shares, inputs_ND = targets_NC[rows][kept, classes], features_ND[rows[kept]].astype(np.float64)
    present = np.unique(classes)
    weights_SCF = np.zeros((len(strengths), targets_NC.shape[1], features_ND.shape[1] + 1))
    weights_SCF[..., -1] = np.where(np.isin(np.arange(targets_NC.shape[1]), present), 0, _NEVER)
    fitted = present if len(present) > 2 else present[1:]  # two classes have one row of weights
    model = LogisticRegression(solver="newton-cg", tol=_TOLERANCE, max_iter=_MAX_ITERATIONS, warm_start=True)
    unfinished = 0
    for index, strength in enumerate(strengths if len(present) > 1 else ()):
        model.set_params(C=strength).fit(inputs_ND, classes, sample_weight=shares)
        weights_SCF[index, fitted] = np.concatenate([model.coef_, model.intercept_[:, None]], axis=1)
        unfinished += _largest_slope(model, inputs_ND, classes, shares) > 10 * _TOLERANCE
    return Fits(torch.from_numpy(weights_SCF).float(), unfinished)


def _largest_slope(model: Any, inputs_ND: Floats, classes_N: Integers, shares_N: Floats) -> float:
    """Return the maximum component of the gradient of the mean loss, in which scikit-learn measures convergence."""
    errors_NC = model.predict_proba(inputs_ND) - (classes_N[:, None] == model.classes_)
    errors_NC = shares_N[:, None] * errors_NC[:, -len(model.coef_) :]
    slopes_CD = errors_NC.T @ inputs_ND + model.coef_ / model.C
    return float(max(np.abs(slopes_CD).max(), np.abs(errors_NC.sum(axis=0)).max()) / shares_N.sum())


def _logits(weights: torch.Tensor, features: Vectors | Floats) -> torch.Tensor:
    """Return the logits of one classifier (C, D + 1) or several (S, C, D + 1), shape (N, C) or (S, N, C)."""
    return torch.from_numpy(features) @ weights[..., :-1].mT + weights[..., None, :, -1]


def _predict(weights: torch.Tensor, features: Vectors) -> Integers:
    predicted: Integers = _logits(weights, features).argmax(dim=-1).numpy()
    return predicted


def _accuracies(weights: torch.Tensor, features: Vectors, labels: Integers, rows: Integers) -> Floats:
    """Return the accuracies of several classifiers on some rows, shape (S,)."""
    accuracies: Floats = (_predict(weights, features[rows]) == labels[rows]).mean(axis=1)
    return accuracies


def best_of(accuracies_S: Floats) -> int:
    """Return the index of the best score after rounding to 0.01%; the first one wins ties."""
    return int(np.argmax(np.round(100 * accuracies_S, 2)))


def _folds(config: Config, labels: Integers, rows: Integers) -> list[tuple[Integers, Integers]]:
    """Return for each fold the kept and the held-out rows of ``rows``."""
    splitter = StratifiedKFold(config.folds, shuffle=True, random_state=config.seed)
    return [(rows[kept], rows[left]) for kept, left in splitter.split(np.zeros(len(rows)), labels[rows])]
