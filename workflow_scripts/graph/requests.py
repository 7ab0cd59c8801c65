"""What a job asks a queue for: what its rule says for an encoder as large as BERT-base, and more for a larger one.

How large an encoder is says its ``size`` in config/encoders.yaml. Each new try of a job asks for as much again.
"""

from collections.abc import Callable

from workflow_scripts.graph.sizes import parts_of
from workflow_scripts.graph.slices import Wildcards
from workflow_scripts.graph.study import Study

OF_SIZE = {"base": (1, 1), "large": (1, 3), "huge": (5, 60)}
"""Memory and time of a job that computes with one encoder, in those of one with BERT-base.

BERT-large computes 3.5 times as much; seven billion parameters 75 times, and they are 27 GB in float32.
"""


class Requests:
    """Functions of a job's wildcards and of its try; they decide no result, so Snakemake reruns nothing for them."""

    def __init__(self, study: Study) -> None:
        self._study = study

    def memory(self, gigabytes: int, of: str = "") -> Callable[..., str]:
        """Memory, such as 16GB.

        Args:
            gigabytes: Of a job with BERT-base.
            of: What the job computes with: a wildcard, ``run`` or ``teacher``, or ``extraction``, that study's encoder.
        """

        def amount(wildcards: Wildcards, attempt: int = 1) -> str:
            return f"{gigabytes * attempt * max(memory for memory, _ in self._needs(of, wildcards))}GB"

        return amount

    def minutes(self, minutes: int, of: str = "") -> Callable[..., int]:
        """Minutes, of several encoders those of each; the arguments are as for ``memory``."""

        def amount(wildcards: Wildcards, attempt: int = 1) -> int:
            return minutes * attempt * sum(time for _, time in self._needs(of, wildcards))

        return amount

    def _needs(self, of: str, wildcards: Wildcards) -> list[tuple[int, int]]:
        """Of every encoder that a job computes with."""
        if not of:
            return [OF_SIZE["base"]]
        named = self._study.config["extraction"]["encoder"] if of == "extraction" else getattr(wildcards, of)
        encoder = self._study.runs[named].encoder if of == "run" else named
        parts = parts_of(self._study.config["encoders"], encoder)
        return [OF_SIZE[self._size(part)] for part in parts]

    def _size(self, encoder: str) -> str:
        block = self._study.config["encoders"][encoder]
        return self._size(block["adapt"]["base"]) if "adapt" in block else block["fetch"].get("size", "base")
