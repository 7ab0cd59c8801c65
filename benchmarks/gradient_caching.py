"""Memory and time of a step of SimCSE with a batch of 512, in chunks of 32 sentences against all at once.

Each step, with both views of 512 sentences, has its own command, whose maximum resident memory is measured. Both
include PyTorch, MiniLM, its gradients and AdamW's moments. The price of chunks is a second forward pass. Times are
those of whole commands, of which starting takes a part, so the ratio of the steps is larger.
"""

import sys
from collections.abc import Callable, Iterator

import torch

from benchmarks.harness import THREADS, Measured, Timing, ratios
from benchmarks.material import minilm, wikipedia_sentences
from benchmarks.peers import Step, ours, recipe
from benchmarks.preparing import largest_memory
from tests.support.toys import SMALL, training_of

CODE = (
    "config/methods.yaml",
    "workflow_scripts/losses",
    "workflow_scripts/training/objective.py",
    "workflow_scripts/methods/simcse.py",
    "workflow_scripts/models",
    "workflow_scripts/training",
)
BATCH, CHUNK = 512, 32


def measure(timing: Timing) -> Iterator[Measured]:
    """Yield the ratios of memory and time of both ways, each a command."""
    batch = 64 if timing.small else BATCH
    ways = {"whole": None, "chunks": CHUNK}
    memory: dict[str, list[int]] = {way: [] for way in ways}

    def work(way: str) -> Callable[[], None]:
        code = f"from benchmarks import gradient_caching; gradient_caching.step({batch}, {ways[way]})"
        words = [sys.executable, "-c", code]
        return lambda: memory[way].append(largest_memory(words))

    seconds = timing.interleaved({way: work(way) for way in ways})
    against = f"chunks-of-{CHUNK}-against-a-batch-of-{batch}"
    yield Measured(
        "gradient_caching_memory",
        ratios(memory, "chunks", "whole")[-timing.rounds :],
        "times-the-memory",
        against,
    )
    yield Measured("gradient_caching_time", ratios(seconds, "chunks", "whole"), "times-the-time", against)


def step(batch: int, chunk: int | None) -> None:
    """Train MiniLM for one step."""
    torch.set_num_threads(THREADS)
    size = SMALL._replace(batch=batch, tokens=32)
    settings = training_of(size, cpu_threads=THREADS, chunk=chunk)
    ours(Step(minilm(), wikipedia_sentences(batch), settings, recipe("cls"), "cls", torch.device("cpu")))()
