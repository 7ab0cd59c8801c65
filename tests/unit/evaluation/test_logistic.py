import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

from workflow_scripts.errors import TrainingError
from workflow_scripts.evaluation.logistic import solve

STRENGTHS = [0.25, 1.0, 8.0]


@pytest.fixture
def random():
    return np.random.default_rng(0)


def made(random, classes, rows=300, width=12):
    features = random.normal(size=(rows, width)).astype(np.float32)
    logits = features @ random.normal(size=(width, classes)) + random.gumbel(size=(rows, classes))
    return features, logits.argmax(axis=1)


def subsets(random, count, rows=300):
    return random.random((count, rows)) < 0.8


def reference(features, labels, strength):
    model = LogisticRegression(C=strength, tol=1e-10, max_iter=10_000)
    return model.fit(features.astype(np.float64), labels)


@pytest.mark.parametrize("strength", STRENGTHS)
def test_two_classes_give_scikit_learns_coefficients_on_every_subset(strength, random):
    features, labels = made(random, 2)
    rows = subsets(random, 7)
    weights = solve(features, np.eye(2)[labels], rows, STRENGTHS)[STRENGTHS.index(strength)]
    for found, kept in zip(weights, rows, strict=True):
        expected = reference(features[kept], labels[kept], strength)
        assert found[0].tolist() == [0] * 13
        np.testing.assert_allclose(found[1, :-1], expected.coef_[0], atol=1e-5)
        np.testing.assert_allclose(found[1, -1], expected.intercept_[0], atol=1e-5)


def test_many_classes_give_scikit_learns_probabilities(random):
    features, labels = made(random, 4)
    rows = subsets(random, 5)
    for weights, strength in zip(solve(features, np.eye(4)[labels], rows, STRENGTHS), STRENGTHS, strict=True):
        for found, kept in zip(weights, rows, strict=True):
            expected = reference(features[kept], labels[kept], strength)
            logits = torch.from_numpy(features).double() @ found[:, :-1].T + found[:, -1]
            probabilities = expected.predict_proba(features.astype(np.float64))
            np.testing.assert_allclose(logits.softmax(dim=1), probabilities, atol=1e-5)


def test_a_problem_is_solved_the_same_alone_and_among_others(random, monkeypatch):
    features, labels = made(random, 3)
    rows = subsets(random, 6)
    together = solve(features, np.eye(3)[labels], rows, [1.0])[0]
    alone = torch.cat([solve(features, np.eye(3)[labels], rows[[index]], [1.0])[0] for index in range(6)])
    torch.testing.assert_close(together, alone, atol=1e-5, rtol=0)
    monkeypatch.setattr("workflow_scripts.evaluation.logistic._CELLS", 2 * 3 * 300)
    torch.testing.assert_close(
        solve(features, np.eye(3)[labels], rows, [1.0])[0], together, atol=1e-5, rtol=0
    )


def test_the_solution_has_no_gradient_left(random):
    features, labels = made(random, 3)
    targets = np.full((300, 3), 0.1)
    targets[np.arange(300), labels] = 0.8  # soft classes
    weights = solve(features, targets, np.ones((1, 300), dtype=bool), [2.0])[0][0].requires_grad_()
    logits = torch.from_numpy(features).double() @ weights[:, :-1].T + weights[:, -1]
    penalty = weights[:, :-1].square().sum() / (2 * 2.0)
    loss = penalty - (torch.from_numpy(targets) * logits.log_softmax(dim=1)).sum()
    loss.backward()
    assert weights.grad.abs().max() < 1e-3  # of a loss of hundreds
    assert loss > 100


def test_classes_that_a_line_separates_converge_too(random):
    features = random.normal(size=(100, 5)).astype(np.float32)
    labels = (features[:, 0] > 0).astype(int)
    weights = solve(features, np.eye(2)[labels], np.ones((1, 100), dtype=bool), [1e6])[0]
    logits = torch.from_numpy(features).double() @ weights[0, 1, :-1] + weights[0, 1, -1]
    assert ((logits > 0).numpy() == labels).all()


def test_a_problem_that_is_not_solved_in_time_is_reported(random, monkeypatch):
    monkeypatch.setattr("workflow_scripts.evaluation.logistic._MAX_STEPS", 1)
    features, labels = made(random, 2)
    with pytest.raises(TrainingError, match="1 of 1 fits with C 1 are open after 1 steps"):
        solve(features, np.eye(2)[labels], np.ones((1, 300), dtype=bool), [1.0])
