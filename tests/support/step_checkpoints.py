"""Checkpoints at steps that a test can name, where trainings go by the clock.

``python -m tests.support.step_checkpoints INPUTS OUT`` is a small training to be crashed. INPUTS is made by tests.support.training_jobs.make_inputs
beforehand, so that the training's own files are the only ones written.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

CHECKPOINT_EVERY = 4


def write_checkpoints_by_steps(patch: Callable[[type, str, Any], None] = setattr) -> None:
    """One after every fourth step of a process, each finished before the next step begins."""
    from workflow_scripts.training.loop import _Writer

    def is_due(writer: Any) -> bool:
        writer._writing.result()
        writer.steps = getattr(writer, "steps", 0) + 1
        due: bool = writer.steps % CHECKPOINT_EVERY == 0
        if due:  # the write that follows waits for itself
            write = type(writer).write
            writer.write = lambda checkpoint: (write(writer, checkpoint), writer._writing.result())
        return due

    patch(_Writer, "is_due", is_due)


def main() -> None:
    """Train in OUT, going on from what is there."""
    from tests.support.training_jobs import config, run_here

    inputs, out = (Path(argument).resolve() for argument in sys.argv[1:])
    out.mkdir(parents=True, exist_ok=True)
    for name in ("encoder", "corpus"):
        if not (out / name).exists():
            (out / name).symlink_to(inputs / name)
    os.chdir(out)
    write_checkpoints_by_steps()
    run_here("train_encoder", config("train_encoder"))


if __name__ == "__main__":
    main()
