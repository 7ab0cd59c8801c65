import copy

import numpy as np
import pytest
import torch

from workflow_scripts.evaluation.senteval_classifier import train

SEED = 5


@pytest.fixture
def task():
    random = np.random.default_rng(0)
    features = random.normal(size=(230, 6)).astype(np.float32)
    labels = (features @ random.normal(size=(6, 3)) + random.gumbel(size=(230, 3))).argmax(axis=1)
    return features, labels, np.arange(0, 200), np.arange(200, 230)


def as_senteval_does(features, labels, rows, held_out, decay):
    """One fit, one penalty, torch's own layer, loss and weight decay, in the order of SentEval's steps."""
    np.random.seed(SEED)  # noqa: NPY002
    torch.manual_seed(SEED)
    model = torch.nn.Linear(features.shape[1], 3)
    optimise = torch.optim.Adam(model.parameters(), weight_decay=decay)
    if held_out is None:
        shuffled = np.random.permutation(len(rows))  # noqa: NPY002
        rows, held_out = rows[shuffled[int(0.05 * len(rows)) :]], rows[shuffled[: int(0.05 * len(rows))]]
    inputs, targets = torch.from_numpy(features[rows]), torch.from_numpy(labels[rows])
    best, best_accuracy, count, epoch = None, -1, 0, 0
    while epoch <= 200:
        for _ in range(4):
            order = torch.from_numpy(np.random.permutation(len(rows)))  # noqa: NPY002
            for start in range(0, len(rows), 64):
                chosen = order[start : start + 64]
                optimise.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs[chosen]), targets[chosen]).backward()
                optimise.step()
        epoch += 4
        predicted = model(torch.from_numpy(features[held_out])).argmax(dim=1).numpy()
        accuracy = (predicted == labels[held_out]).mean()
        if accuracy > best_accuracy:
            best, best_accuracy = copy.deepcopy(model), accuracy
        else:
            if count >= 5:
                break
            count += 1
    return torch.cat([best.weight, best.bias[:, None]], dim=1).detach()


@pytest.mark.parametrize("own_held_out", [True, False])
def test_fits_side_by_side_equal_fits_one_by_one(task, own_held_out):
    features, labels, rows, held_out = task
    held_out = held_out if own_held_out else None
    decays = [1e-5, 1e-1, 2.0]
    found = train(features, labels, rows, held_out, decays, SEED)
    expected = [as_senteval_does(features, labels, rows, held_out, decay) for decay in decays]
    torch.testing.assert_close(found, torch.stack(expected), atol=2e-5, rtol=1e-4)
    assert not torch.allclose(found[0], found[2], atol=1e-2)  # the penalty is at work


def test_of_fewer_than_twenty_rows_one_decides_when_to_stop():
    features, labels = np.repeat(9 * np.eye(2, dtype=np.float32), 9, axis=0), np.repeat([0, 1], 9)
    (weights,) = train(features, labels, np.arange(18), None, [1e-5], SEED)
    predicted = torch.from_numpy(features) @ weights[:, :2].T + weights[:, 2]
    assert predicted.argmax(dim=1).tolist() == labels.tolist()
