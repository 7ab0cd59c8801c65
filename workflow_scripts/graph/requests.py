"""What a job asks a queue for: what its rule says for an encoder as large as BERT-base, and more for a larger one.

How large an encoder is says its ``size`` in config/encoders.yaml. Each new try of a job asks for as much again.
"""

from collections.abc import Callable
from typing import NamedTuple

from workflow_scripts.graph.slices import Wildcards
from workflow_scripts.graph.study import Study


class Needs(NamedTuple):
    """Of a job that computes with one encoder, in those of one with BERT-base."""

    memory: int = 1
    time: int = 1


OF_SIZE = {"base": Needs(), "large": Needs(1, 3), "huge": Needs(5, 60)}
"""BERT-large computes 3.5 times as much; seven billion parameters 75 times, and they are 27 GB in float32."""


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

        def asked(wildcards: Wildcards, attempt: int = 1) -> str:
            return f"{gigabytes * attempt * max(needs.memory for needs in self._needs(of, wildcards))}GB"

        return asked

    def minutes(self, minutes: int, of: str = "") -> Callable[..., int]:
        """Minutes, of several encoders those of each; the arguments are as for ``memory``."""

        def asked(wildcards: Wildcards, attempt: int = 1) -> int:
            return minutes * attempt * sum(needs.time for needs in self._needs(of, wildcards))

        return asked

    def _needs(self, of: str, wildcards: Wildcards) -> list[Needs]:
        if not of:
            return [Needs()]
        named = self._study.config["extraction"]["encoder"] if of == "extraction" else getattr(wildcards, of)
        return self._behind(self._study.runs[named].encoder if of == "run" else named)

    def _behind(self, encoder: str) -> list[Needs]:
        """Of every encoder that one consists of."""
        block = self._study.config["encoders"][encoder]
        if "adapt" in block:
            return self._behind(block["adapt"]["base"])
        members = self._study.members(encoder).values()
        return [needs for run in members for needs in self._behind(run.encoder)] or [
            OF_SIZE[block["fetch"].get("size", "base")]
        ]
