"""One small training to be crashed by ckpt-chaos: python -m tests.faults.training INPUTS OUT.

INPUTS is made by tests.jobs.make_inputs beforehand, so that the training's own files are the only ones written.
"""

import os
import sys
from pathlib import Path

from tests.checkpointing import write_checkpoints_by_steps
from tests.jobs import config, run_here


def main() -> None:
    """Train in OUT, going on from what is there."""
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
