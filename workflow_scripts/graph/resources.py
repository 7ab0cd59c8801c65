"""Memory and runtime of jobs, which change no result: Snakemake reruns nothing for them."""

from collections.abc import Callable, Iterable
from functools import cache

from workflow_scripts.graph.slices import Wildcards
from workflow_scripts.graph.study import Study

OF_SIZE = {"base": (1, 1), "large": (1, 3), "huge": (5, 60)}
"""Factors of memory and runtime of a job with one encoder, relative to BERT-base.

BERT-large needs 3.5 times the computation. Seven billion parameters need 75 times, and 27 GB in float32.
"""


LONGEST = 7 * 24 * 60
"""Upper limit of requested minutes (a week): few queues allow more, and a longer training resumes on retry."""


def resources_of(
    study: Study,
    gigabytes: int,
    *,
    minutes: int = 0,
    hours: int = 0,
    encoders: Callable[[Wildcards], Iterable[str]] = lambda _: (),
) -> dict[str, Callable[..., str | int]]:
    """Return resource functions: memory, such as 16GB, and runtime in minutes, both multiplied by the attempt.

    Args:
        study: The study with the encoders.
        gigabytes: Memory of a job that loads BERT-base or no encoder.
        minutes: Runtime of such a job.
        hours: The same, in hours.
        encoders: Names of the encoders that a job loads; the times of several are added.
    """

    @cache
    def factors(*loaded: str) -> list[tuple[int, int]]:
        parts = [part for encoder in loaded for part in study.encoders[encoder].parts]
        return [OF_SIZE[study.settings.fetched(part).size] for part in parts] or [OF_SIZE["base"]]

    def memory(wildcards: Wildcards, attempt: int = 1) -> str:
        return f"{gigabytes * attempt * max(memory for memory, _ in factors(*encoders(wildcards)))}GB"

    def runtime(wildcards: Wildcards, attempt: int = 1) -> int:
        factor = sum(time for _, time in factors(*encoders(wildcards)))
        return min((minutes + 60 * hours) * attempt * factor, LONGEST)

    return {"mem": memory, "runtime": runtime}
