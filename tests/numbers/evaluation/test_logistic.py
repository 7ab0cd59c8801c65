import numpy as np
import pytest
import torch
from sklearn.linear_model import LogisticRegression

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


@pytest.mark.parametrize("classes", [2, 4])
def test_every_subset_has_scikit_learns_probabilities_with_every_penalty(classes, random):
    features, labels = made(random, classes)
    rows = subsets(random, 5)
    solved = solve(features, np.eye(classes)[labels], rows, STRENGTHS)
    for weights, strength in zip(solved, STRENGTHS, strict=True):
        for found, kept in zip(weights, rows, strict=True):
            expected = reference(features[kept], labels[kept], strength)
            probabilities = expected.predict_proba(features.astype(np.float64))
            np.testing.assert_allclose(logits_of(found, features).softmax(dim=1), probabilities, atol=1e-5)
            assert classes > 2 or not found[0].any()  # one row of weights


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


def soft(labels, classes):
    targets = np.full((len(labels), classes), 0.2 / (classes - 1))
    targets[np.arange(len(labels)), labels] = 0.8
    return targets


@pytest.mark.parametrize("classes", [2, 4])
def test_what_is_open_after_the_usual_steps_has_the_same_solution(classes, random, monkeypatch):
    features, labels = made(random, classes)
    targets, rows = soft(labels, classes), subsets(random, 3)
    usual = solve(features, targets, rows, STRENGTHS)
    monkeypatch.setattr("workflow_scripts.evaluation.logistic._MAX_STEPS", 1)
    for ours, theirs in zip(usual, solve(features, targets, rows, STRENGTHS), strict=True):
        torch.testing.assert_close(
            theirs - theirs.mean(dim=1, keepdim=True),
            ours - ours.mean(dim=1, keepdim=True),
            atol=1e-5,
            rtol=0,
        )


@pytest.mark.parametrize("classes", [2, 3])
def test_a_subset_without_a_class_never_predicts_it(classes, random):
    features, labels = made(random, classes)
    rows = np.array([labels == 0, labels != 1])
    (weights,) = solve(20 * features, np.eye(classes)[labels], rows, [32.0])
    for found, kept in zip(weights, rows, strict=True):
        predicted = logits_of(found, 20 * features).argmax(dim=1).numpy()
        assert set(predicted) <= set(labels[kept])


def trec_like(random, rows, width, norm):
    """Questions of six classes, one of them rare, in a space of a few strong directions, not normalised."""
    labels = random.choice(6, size=rows, p=[0.22, 0.23, 0.22, 0.18, 0.134, 0.016])
    strength = np.exp(-np.arange(width) / (width / 4))
    features = (0.7 * random.normal(size=(6, width))[labels] + random.normal(size=(rows, width))) * strength
    features = features @ np.linalg.qr(random.normal(size=(width, width)))[0]
    features += 0.3 * np.abs(features).mean() * random.normal(size=width)
    return (features * norm / np.linalg.norm(features, axis=1).mean()).astype(np.float32), labels


@pytest.mark.slow
@pytest.mark.parametrize(("rows", "width", "norm"), [(1500, 128, 10), (1500, 64, 40), (300, 768, 15)])
def test_questions_in_raw_vectors_reach_the_optimum_up_to_a_c_of_32(rows, width, norm, random):
    """TREC's shape, where losses are small differences of large logits."""
    features, labels = trec_like(random, rows, width, norm)
    masks = np.array([random.random(rows) < 0.9, np.ones(rows, dtype=bool)])
    strengths = [2.0**power for power in range(-1, 6)]
    for weights_PCF, strength in zip(
        solve(features, np.eye(6)[labels], masks, strengths), strengths, strict=True
    ):
        for weights_CF, kept in zip(weights_PCF, masks, strict=True):
            assert gradient_left(weights_CF, features[kept], labels[kept], strength) < 1e-3
    model = reference(features, labels, strengths[-1])
    theirs_CF = torch.from_numpy(np.concatenate([model.coef_, model.intercept_[:, None]], axis=1))
    ours, theirs = (penalised_loss(w, features, labels, strengths[-1]) for w in (weights_CF, theirs_CF))
    assert float(ours) <= float(theirs) * (1 + 1e-6)
    found = logits_of(weights_CF, features).argmax(dim=1).numpy()
    assert abs((found == labels).mean() - model.score(features.astype(np.float64), labels)) <= 1e-4


def logits_of(weights_CF, features):
    return torch.from_numpy(features).double() @ weights_CF[:, :-1].T + weights_CF[:, -1]


def penalised_loss(weights_CF, features, labels, strength):
    losses = torch.nn.functional.cross_entropy(
        logits_of(weights_CF, features), torch.from_numpy(labels), reduction="sum"
    )
    return losses + weights_CF[:, :-1].square().sum() / (2 * strength)


def gradient_left(weights_CF, features, labels, strength):
    weights_CF = weights_CF.detach().clone().requires_grad_()
    penalised_loss(weights_CF, features, labels, strength).backward()
    return float(weights_CF.grad.abs().max())
