"""Whether several cards compute one card's step: NCCL with gathered negatives on the joint batch."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from workflow_scripts.gpu_check.lines import Line, judged, left_open
from workflow_scripts.gpu_check.material import SMALL, blocks, prepared
from workflow_scripts.gpu_check.right import CLOSE, Found, distance, found
from workflow_scripts.training import ranks

PART = "several cards"
CARDS = 2


def check(folder: Path, device: torch.device) -> Iterator[Line]:
    """SimCSE's gradient of a batch that two processes share, against one process's."""
    if device.type == "cuda" and torch.cuda.device_count() < CARDS:
        yield left_open(PART, "gradient of the joint batch", "two cards")
        return
    alone = found(prepared(blocks()["simcse"], folder, SMALL, device))
    place = folder / "shared.json"
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={CARDS}", "--standalone"]
    done = subprocess.run(
        [*command, "-m", __name__, str(folder), str(place), device.type],
        env=os.environ | {"OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        lines = done.stderr.strip().splitlines() or ["no reason was given"]
        yield Line(PART, "two processes", lines[-1], "to end well", "fails")
        return
    shared = json.loads(place.read_text("utf-8"))
    gradients = {
        name: torch.tensor(values).view_as(alone.gradients[name])
        for name, values in shared["gradients"].items()
    }
    both = Found(shared["loss"], gradients)
    yield judged(
        PART,
        f"gradient of the joint batch, {CARDS} processes ({shared['backend']})",
        distance(alone, both),
        CLOSE,
    )


def main() -> None:
    """One of the processes: its part of the batch; the first writes the mean gradient."""
    folder, place, kind = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    with ranks.joined():
        device = ranks.device() if kind == "cuda" else torch.device("cpu")
        trained = prepared(blocks()["simcse"], folder, SMALL, device)
        mine = found(trained)
        ranks.average_gradients(trained.objective.module.parameters())
        gradients = {
            name: p.grad.flatten().tolist()
            for name, p in trained.objective.module.named_parameters()
            if p.grad is not None
        }
        if ranks.rank() == 0:
            backend = "NCCL" if kind == "cuda" else "gloo"
            place.write_text(json.dumps({"loss": mine.loss, "gradients": gradients, "backend": backend}))


if __name__ == "__main__":
    main()
