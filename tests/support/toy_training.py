"""A training of a layer that takes no time, and what a test needs to score or kill it."""

import numpy as np
import torch
from torch import nn

from tests.support.toys import training as settings
from workflow_scripts.training.loop import train
from workflow_scripts.training.objective import LossOutput, Objective

STEPS, SEED = 10, 7


class KilledError(Exception):
    """Raised where a process would be killed."""


class Toy(Objective):
    """A layer with dropout that learns to give zero; records the steps it was asked for."""

    def __init__(self, spoil=None):
        torch.manual_seed(0)
        self.module = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.3), nn.Linear(4, 1))
        self.module.register_parameter("unused", nn.Parameter(torch.ones(2)))
        self.asked = []
        self._spoil = spoil or (lambda step, loss: loss)

    def inputs(self, step):
        self.asked.append(step)
        return torch.from_numpy(np.random.default_rng(step).normal(size=(8, 4))).float(), torch.tensor(step)

    def loss(self, inputs):
        data, step = inputs
        return LossOutput(self._spoil(int(step), (self.module(data) ** 2).mean()))

    def weights(self):
        return {name: value.clone() for name, value in self.module.state_dict().items()}


def run(toy, folder, steps=STEPS, development=None, fingerprint="f", log=None, **changes):
    """The result of a training, with other settings if they are given."""
    values = {"learning_rate": 0.05, "weight_decay": 0.01} | changes
    return train(
        toy,
        settings(**values),
        steps,
        seed=SEED,
        development=development,
        checkpoints=folder,
        fingerprint=fingerprint,
        log=log,
    )


def scripted(toy, scores, seen=None):
    """A development score read from a list, noting the weights it was given."""
    remaining = list(scores)

    def score():
        if seen is not None:
            seen.append(toy.weights())
        return remaining.pop(0)

    return score
