import copy

import numpy as np
import pytest
import torch

from workflow_scripts.evaluation.senteval_classifier import FAST, FULL, train

SEED = 5


@pytest.fixture
def task():
    random = np.random.default_rng(0)
    features = random.normal(size=(230, 6)).astype(np.float32)
    labels = (features @ random.normal(size=(6, 3)) + random.gumbel(size=(230, 3))).argmax(axis=1)
    return features, labels, np.arange(0, 200), np.arange(200, 230)


def as_senteval_does(features, labels, rows, held_out, decay, optimiser, batch, tenacity, epoch_size):
    """One fit, one penalty, torch's own layer, loss and weight decay, in the order of SentEval's steps."""
    np.random.seed(SEED)  # noqa: NPY002
    torch.manual_seed(SEED)
    model = torch.nn.Linear(features.shape[1], 3)
    optimise = optimiser(model.parameters(), weight_decay=decay)
    if held_out is None:
        shuffled = np.random.permutation(len(rows))  # noqa: NPY002
        rows, held_out = rows[shuffled[int(0.05 * len(rows)) :]], rows[shuffled[: int(0.05 * len(rows))]]
    inputs, targets = torch.from_numpy(features[rows]), torch.from_numpy(labels[rows])
    best, best_accuracy, count, epoch = None, -1, 0, 0
    while epoch <= 200:
        for _ in range(epoch_size):
            order = torch.from_numpy(np.random.permutation(len(rows)))  # noqa: NPY002
            for start in range(0, len(rows), batch):
                chosen = order[start : start + batch]
                optimise.zero_grad()
                torch.nn.functional.cross_entropy(model(inputs[chosen]), targets[chosen]).backward()
                optimise.step()
        epoch += epoch_size
        predicted = model(torch.from_numpy(features[held_out])).argmax(dim=1).numpy()
        accuracy = (predicted == labels[held_out]).mean()
        if accuracy > best_accuracy:
            best, best_accuracy = copy.deepcopy(model), accuracy
        else:
            if count >= tenacity:
                break
            count += 1
    return torch.cat([best.weight, best.bias[:, None]], dim=1).detach()


@pytest.mark.parametrize("own_held_out", [True, False])
@pytest.mark.parametrize(
    ("recipe", "settings"),
    [(FULL, (torch.optim.Adam, 64, 5, 4)), (FAST, (torch.optim.RMSprop, 128, 3, 2))],
)
def test_fits_side_by_side_equal_fits_one_by_one(task, recipe, settings, own_held_out):
    features, labels, rows, held_out = task
    held_out = held_out if own_held_out else None
    decays = [1e-5, 1e-1, 2.0]
    found = train(features, labels, rows, held_out, decays, recipe, SEED)
    expected = [as_senteval_does(features, labels, rows, held_out, decay, *settings) for decay in decays]
    torch.testing.assert_close(found, torch.stack(expected), atol=2e-5, rtol=1e-4)
    assert not torch.allclose(found[0], found[2], atol=1e-2)  # the penalty is at work


def test_of_fewer_than_twenty_rows_one_decides_when_to_stop():
    features, labels = np.repeat(np.eye(2, dtype=np.float32), 9, axis=0), np.repeat([0, 1], 9)
    (weights,) = train(features, labels, np.arange(18), None, [1e-5], FAST, SEED)
    predicted = torch.from_numpy(features) @ weights[:, :2].T + weights[:, 2]
    assert predicted.argmax(dim=1).tolist() == labels.tolist()
