"""The memory and time that jobs ask for; they decide no result, so Snakemake reruns nothing for them."""

from collections.abc import Callable, Iterable
from functools import cache

from workflow_scripts.graph.sizes import parts_of
from workflow_scripts.graph.slices import Config, Wildcards

OF_SIZE = {"base": (1, 1), "large": (1, 3), "huge": (5, 60)}
"""Memory and time of a job that computes with one encoder, in those of one with BERT-base.

BERT-large computes 3.5 times as much; seven billion parameters 75 times, and they are 27 GB in float32.
"""

LONGEST = 7 * 24 * 60
"""Most minutes that a job asks for, since few queues take more; jobs that run so long go on in their next try."""


def asked(
    encoders: Config,
    gigabytes: int,
    *,
    minutes: int = 0,
    hours: int = 0,
    loads: Callable[[Wildcards], Iterable[str]] = lambda _: (),
) -> dict[str, Callable[..., str | int]]:
    """Functions of a job's wildcards and of its try: memory, such as 16GB, and minutes; a second try asks for twice.

    Args:
        encoders: The section of the configuration.
        gigabytes: Of a job that loads BERT-base or no encoder.
        minutes: Of such a job.
        hours: The same, in hours.
        loads: Encoders that a job computes with; of several, it needs the time of each.
    """

    @cache
    def needs(*loaded: str) -> list[tuple[int, int]]:
        parts = [part for encoder in loaded for part in parts_of(encoders, encoder)]
        return [OF_SIZE[size_of(encoders, part)] for part in parts] or [OF_SIZE["base"]]

    def memory(wildcards: Wildcards, attempt: int = 1) -> str:
        return f"{gigabytes * attempt * max(memory for memory, _ in needs(*loads(wildcards)))}GB"

    def runtime(wildcards: Wildcards, attempt: int = 1) -> int:
        factor = sum(time for _, time in needs(*loads(wildcards)))
        return min((minutes + 60 * hours) * attempt * factor, LONGEST)

    return {"mem": memory, "runtime": runtime}


def size_of(encoders: Config, encoder: str) -> str:
    """The class of size that a fetched or adapted encoder is configured as."""
    block = encoders[encoder]
    if "adapt" in block:
        return size_of(encoders, block["adapt"]["base"])
    size: str = block["fetch"].get("size", "base")
    return size
