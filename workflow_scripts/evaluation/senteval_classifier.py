"""Softmax regression, trained like SentEval's PyTorch classifier with ``nhid`` 0.

A linear layer with mean cross-entropy; mini-batches in a new order every epoch; the penalty is the optimiser's weight
decay, on weights and bias alike. After every ``epoch_size`` epochs, the accuracy on held-out rows is measured, and the
best weights are kept. Training ends when ``tenacity`` + 1 rounds in total (the count is never reset) did not improve
it, and after ``max_epoch`` 200 at the latest. Held-out rows are those of the inner fold or the dev split; the final
fit of a cross-validated task holds out 5% of its own rows. Optimiser and schedule are those of SimCSE's evaluation in
mode ``test``: Adam at torch's default rate, batches of 64, ``tenacity`` 5, ``epoch_size`` 4.

SentEval also sets ``size_average = False`` on the loss, which torch has ignored since 0.4.1: the loss is a mean. Every
fit starts from the same seed, so fits that differ only in the penalty see the same batches; here they are trained
together, which changes only the time. Source: facebookresearch/SentEval, senteval/tools/classifier.py and
validation.py.

Shape suffixes: N rows, D features, C classes, W weight decays.
"""

import math
from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from workflow_scripts.arrays import Integers, Vectors

_MAX_EPOCH = 200
_BATCH_SIZE = 64
_TENACITY = 5
_EPOCH_SIZE = 4
_HELD_OUT = 0.05


def train(
    features_ND: Vectors,
    labels_N: Integers,
    rows: Integers,
    held_out: Integers | None,
    decays: Sequence[float],
    seed: int,
) -> Tensor:
    """Return weights trained on ``rows`` with every weight decay.

    Args:
        features_ND: Features of all rows of the task.
        labels_N: Classes from 0.
        rows: Rows to train on.
        held_out: Rows for early stopping; None to hold out 5% of ``rows``, at least one.
        decays: Values of the penalty.
        seed: Seed of initial weights and batch order.

    Returns:
        Weights of shape (W, C, D + 1), the bias last.
    """
    order = np.random.RandomState(seed)  # SentEval's stream of random numbers
    if held_out is None:
        shuffled, cut = order.permutation(len(rows)), max(1, int(_HELD_OUT * len(rows)))
        rows, held_out = rows[shuffled[cut:]], rows[shuffled[:cut]]
    features, dev_features = (torch.from_numpy(features_ND[part]) for part in (rows, held_out))
    labels, dev_labels = (torch.from_numpy(labels_N[part]) for part in (rows, held_out))
    model = _Models(features.shape[1], int(labels_N.max()) + 1, decays, seed)
    best = model.weights()
    best_accuracy = torch.full((len(decays),), -1.0)
    forgiven, stopped = torch.zeros(len(decays)), torch.zeros(len(decays), dtype=torch.bool)
    epoch = 0
    while epoch <= _MAX_EPOCH and not stopped.all():
        for _ in range(_EPOCH_SIZE):
            permutation = torch.from_numpy(order.permutation(len(rows)))
            for batch in permutation.split(_BATCH_SIZE):  # type: ignore[no-untyped-call]
                model.step(features[batch], labels[batch])
        epoch += _EPOCH_SIZE
        accuracy = (model.logits(dev_features).argmax(dim=-1) == dev_labels[:, None]).float().mean(dim=0)
        better = (accuracy > best_accuracy) & ~stopped
        best[better], best_accuracy[better] = model.weights()[better], accuracy[better]
        stopped |= ~better & (forgiven >= _TENACITY)
        forgiven += ~better
    return best


class _Models:
    """One softmax regression per weight decay, updated together."""

    def __init__(self, width: int, classes: int, decays: Sequence[float], seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        weight_CD, bias_C = torch.empty(classes, width), torch.empty(classes)
        # The initial weights of nn.Linear.
        torch.nn.init.kaiming_uniform_(weight_CD, a=math.sqrt(5), generator=generator)
        torch.nn.init.uniform_(bias_C, -1 / math.sqrt(width), 1 / math.sqrt(width), generator=generator)
        self.classes = classes
        self.weight = weight_CD.repeat(len(decays), 1)
        self.bias = bias_C.repeat(len(decays))
        self.decay = torch.tensor(list(decays)).repeat_interleave(classes)
        self.optimiser = torch.optim.Adam([self.weight, self.bias], foreach=False)

    def logits(self, features_ND: Tensor) -> Tensor:
        """Return logits, shape (N, W, C)."""
        return torch.addmm(self.bias, features_ND, self.weight.T).view(len(features_ND), -1, self.classes)

    def step(self, features_ND: Tensor, labels_N: Tensor) -> None:
        """Update every model on one batch, with an explicit gradient of mean cross-entropy."""
        residual = self.logits(features_ND).softmax(dim=-1)
        residual[torch.arange(len(labels_N)), :, labels_N] -= 1
        flat = residual.view(len(labels_N), -1) / len(labels_N)
        self.weight.grad = torch.addmm(self.decay[:, None] * self.weight, flat.T, features_ND)
        self.bias.grad = flat.sum(dim=0) + self.decay * self.bias
        self.optimiser.step()

    def weights(self) -> Tensor:
        """Return weights and biases, shape (W, C, D + 1)."""
        joined = torch.cat([self.weight, self.bias[:, None]], dim=1)
        return joined.view(-1, self.classes, joined.shape[1])
