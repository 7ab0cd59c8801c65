"""How much memory a training takes, by encoder and batch, and whether the host's is what its rule asks for.

Rules ask the queue for whole cards, and say nothing of their memory: the table tells which card a batch fits.
"""

import resource
from collections.abc import Iterator
from pathlib import Path

import torch

from workflow_scripts.gpu_check.lines import Line, judged, left_open
from workflow_scripts.gpu_check.material import BASE, Size, blocks, prepared, write_encoder
from workflow_scripts.gpu_check.waits import one_step

PART = "fits"
SIZES = {
    "6 layers, 384 wide": BASE._replace(layers=6, width=384, heads=12, feed_forward=1536),
    "12 layers, 768 wide": BASE,
    "24 layers, 1024 wide": BASE._replace(layers=24, width=1024, heads=16, feed_forward=4096),
}
BATCHES = (64, 128, 256, 512)
HOST_GB = 16
"""Of the host's memory, what rule train_encoder asks for."""


def check(folder: Path, device: torch.device) -> Iterator[Line]:
    """A line for each encoder and batch, then the host's memory."""
    if device.type == "cpu":
        yield left_open(PART, "peak memory by encoder and batch", "a card")
    for name, size in SIZES.items() if device.type == "cuda" else ():
        place = folder / name
        write_encoder(place, size)
        for batch in BATCHES:
            gigabytes = peak(place, size._replace(batch=batch), device)
            found = "more than the card has" if gigabytes is None else f"{gigabytes:.1f} GB"
            yield Line(PART, f"SimCSE, {name}, batch {batch}", found, "", "measured")
    gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    yield judged(PART, "the host's memory, all parts of this check", gigabytes, HOST_GB, " GB")


def peak(folder: Path, size: Size, device: torch.device) -> float | None:
    """The most gigabytes that two steps take; None where the card has too few."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    try:
        step = one_step(prepared(blocks()["simcse"], folder, size, device, rows=2 * size.batch), size)
        step()
        step()
    except torch.cuda.OutOfMemoryError:
        return None
    return torch.cuda.max_memory_allocated(device) / 1e9
