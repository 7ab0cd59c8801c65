"""Trains a small SimCSE as one of several ranks: torchrun ... -m tests.numbers.training.rank_worker STOP CHUNK FOLDER DROPOUT ...

One training for each folder and its dropout, one after the other; STOP is the step where they are cut off, or 0, and
CHUNK the number of sentences that are read at a time, or 0.
"""

import sys
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from tests.support import small_methods, toy_methods, toys
from tests.support.step_checkpoints import write_checkpoints_by_steps
from tests.support.steps_by_hand import found_in
from workflow_scripts.training import ranks
from workflow_scripts.training.loop import prepare, train

STEPS = 6


class CutOffError(Exception):
    """The training was cut off."""


def main() -> None:
    stop, chunk, *asked = sys.argv[1:]
    for folder, dropout in zip(asked[::2], asked[1::2], strict=True):
        train_in(Path(folder), float(dropout), int(stop), int(chunk) or None)


def train_in(folder: Path, dropout: float, stop: int, chunk: int | None) -> None:
    settings = toys.training(max_steps=STEPS, batch_size=small_methods.SIZE.batch, chunk=chunk)
    prepare(settings, seed=5)
    write_checkpoints_by_steps()
    block = small_methods.blocks()["simcse"] | {"dropout": dropout}
    trained = toy_methods.prepared(
        block, folder, small_methods.SIZE, small_methods.CPU, small_methods.ROWS, chunk=chunk
    )
    objective, first = trained.objective, found_in(trained.objective)
    inputs = objective.inputs

    def perhaps(step: int) -> Any:
        if step == stop:
            raise CutOffError
        return inputs(step)

    objective.inputs = perhaps  # type: ignore[method-assign]
    outcome = train(
        objective,
        settings,
        STEPS,
        seed=5,
        development=None,
        checkpoints=folder / "checkpoints",
        fingerprint="ranks",
        log=folder / f"rank{ranks.rank()}.log",
    )
    if ranks.rank() == 0:
        found = {f"gradient {name}": gradient for name, gradient in first.items() if name != "loss"}
        found |= {f"weight {name}": tensor for name, tensor in objective.module.state_dict().items()}
        found["loss"] = first["loss"]
        found["losses"] = torch.tensor(outcome.history["loss"].to_pylist())
        save_file(found, folder / "found.safetensors")


if __name__ == "__main__":
    with ranks.joined():
        main()
