"""How much memory a training takes, by encoder and batch."""

from collections.abc import Iterator
from pathlib import Path

import torch

from workflow_scripts.gpu_check.lines import Line, left_open
from workflow_scripts.gpu_check.material import BASE, Size, blocks, prepared, write_encoder
from workflow_scripts.gpu_check.waits import one_step

PART = "fits"
SIZES = {
    "6 layers, 384 wide": BASE._replace(layers=6, width=384, heads=12, feed_forward=1536),
    "12 layers, 768 wide": BASE,
    "24 layers, 1024 wide": BASE._replace(layers=24, width=1024, heads=16, feed_forward=4096),
}
BATCHES = (64, 128, 256, 512)


def check(folder: Path, device: torch.device) -> Iterator[Line]:
    """A line for each encoder and batch."""
    if device.type == "cpu":
        yield left_open(PART, "peak memory by encoder and batch", "a card")
        return
    for name, size in SIZES.items():
        place = folder / name
        write_encoder(place, size)
        for batch in BATCHES:
            gigabytes = peak(place, size._replace(batch=batch), device)
            found = "more than the card has" if gigabytes is None else f"{gigabytes:.1f} GB"
            yield Line(PART, f"SimCSE, {name}, batch {batch}", found, "", "measured")


def peak(folder: Path, size: Size, device: torch.device) -> float | None:
    """Gigabytes of two steps at most; None where the card has too few."""
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats(device)
    try:
        step = one_step(prepared(blocks()["simcse"], folder, size, device, rows=2 * size.batch), size)
        step()
        step()
    except torch.cuda.OutOfMemoryError:
        return None
    return torch.cuda.max_memory_allocated(device) / 1e9
