"""Whether several cards compute one card's step: NCCL with gathered negatives on the joint batch."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file

from workflow_scripts.gpu_check.lines import Line, judged, left_open
from workflow_scripts.gpu_check.material import SMALL, blocks, prepared
from workflow_scripts.gpu_check.right import CLOSE, Found, distance, found
from workflow_scripts.training import ranks

PART = "several cards"
CARDS = 2
SECONDS = 300
"""After which processes that wait for each other are ended."""


def check(folder: Path, device: torch.device) -> Iterator[Line]:
    """SimCSE's gradient of a batch that two processes share, against one process's."""
    if device.type == "cuda" and torch.cuda.device_count() < CARDS:
        yield left_open(PART, "gradient of the joint batch", "two cards")
        return
    alone = found(prepared(blocks()["simcse"], folder, SMALL, device))
    place = folder / "shared.safetensors"
    command = [sys.executable, "-m", "torch.distributed.run", f"--nproc-per-node={CARDS}", "--standalone"]
    failure = run_together([*command, "-m", __name__, str(folder), str(place), device.type], SECONDS)
    if failure:
        yield Line(PART, "two processes", failure.splitlines()[-1], "to end well", "fails")
        return
    gradients = load_file(place)
    both = Found(gradients.pop("loss").item(), gradients)
    backend = "NCCL" if device.type == "cuda" else "gloo"
    what = f"gradient of the joint batch, {CARDS} processes ({backend})"
    yield judged(PART, what, distance(alone, both), CLOSE)


def run_together(command: Sequence[str], seconds: float, **environment: str) -> str | None:
    """Run a command that starts other processes, and end all of them if it takes too long.

    Returns:
        None if it ends well; else what it wrote about its failure, never empty.
    """
    process = subprocess.Popen(
        command,
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,  # a group of its own
    )
    try:
        _, said = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGTERM)  # torchrun passes it on, and kills after half a minute
        process.communicate()
        return f"ended after {seconds:g} seconds"
    return (said.strip() or "no reason was given") if process.returncode else None


def main() -> None:
    """One of the processes: its part of the batch; the first writes the mean gradient."""
    folder, place, kind = Path(sys.argv[1]), Path(sys.argv[2]), sys.argv[3]
    with ranks.joined():
        device = ranks.device() if kind == "cuda" else torch.device("cpu")
        shared = found(prepared(blocks()["simcse"], folder, SMALL, device))
        if ranks.rank() == 0:
            save_file({**shared.gradients, "loss": torch.tensor(shared.loss)}, place)


if __name__ == "__main__":
    main()
