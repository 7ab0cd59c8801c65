"""Trains a tiny SimCSE as one of several ranks: torchrun ... -m tests.unit.training.rank_worker STOP FOLDER DROPOUT ...

One training for each folder and its dropout, one after the other; STOP is the step where they are cut off, or 0.
"""

import sys
from pathlib import Path

import torch
from safetensors.torch import save_file

from tests import tiny
from tests.checkpointing import write_checkpoints_by_steps
from workflow_scripts.methods import simcse
from workflow_scripts.models.dropout import keyed
from workflow_scripts.models.encoder import load_backbone, load_tokenizer
from workflow_scripts.settings.methods import MethodConfig
from workflow_scripts.training import ranks
from workflow_scripts.training.data import TrainingData
from workflow_scripts.training.loop import prepare, train
from workflow_scripts.training.sampler import Sampler

STEPS, BATCH = 6, 8
TEXTS = tiny.sentences(40)


class CutOffError(Exception):
    """The training was cut off."""


def objective_of(folder: Path, dropout: float) -> simcse.Objective:
    block = {
        "module": "simcse",
        "readout": {"kind": "pooling", "pooler": "cls", "layers": None},
        "head_at_test": False,
        "temperature": 0.05,
        "dropout": dropout,
    }
    config = MethodConfig.parse(block, "methods.simcse")
    encoder = simcse.build(config, load_backbone(folder / "encoder", **config.overrides))
    material = TrainingData(
        {"anchor": TEXTS}, load_tokenizer(folder / "encoder"), 16, Sampler(len(TEXTS), BATCH, seed=3)
    )
    return simcse.Objective(config, encoder, material)


def first_gradients(objective: simcse.Objective) -> dict[str, torch.Tensor]:
    """Loss and gradients of the first step."""
    objective.module.train()
    with keyed(5, 1, rank=ranks.rank(), ranks=ranks.world()):
        loss = objective.loss(1)
    loss.backward()
    named = dict(objective.module.named_parameters())
    ranks.average_gradients(named.values())
    found = {f"gradient {name}": p.grad.clone() for name, p in named.items() if p.grad is not None}
    objective.module.zero_grad()
    return found | {"loss": loss.detach()}


def main() -> None:
    stop, *asked = sys.argv[1:]
    for folder, dropout in zip(asked[::2], asked[1::2], strict=True):
        train_in(Path(folder), float(dropout), int(stop))


def train_in(folder: Path, dropout: float, stop: int) -> None:
    settings = tiny.training(max_steps=STEPS, batch_size=BATCH)
    prepare(settings, seed=5)
    write_checkpoints_by_steps()
    objective = objective_of(folder, dropout)
    found = first_gradients(objective)
    whole = objective.loss

    def loss(step: int) -> torch.Tensor:
        if step == stop:
            raise CutOffError
        return whole(step)

    objective.loss = loss  # type: ignore[method-assign]
    outcome = train(
        objective,
        settings,
        STEPS,
        seed=5,
        development=None,
        checkpoints=folder / "checkpoints",
        fingerprint="ranks",
    )
    if ranks.rank() == 0:
        found |= {f"weight {name}": tensor for name, tensor in objective.module.state_dict().items()}
        found["losses"] = torch.tensor(outcome.history["loss"].to_pylist())
        save_file(found, folder / "found.safetensors")


if __name__ == "__main__":
    with ranks.joined():
        main()
