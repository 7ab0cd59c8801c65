"""The model of a run as evaluations use it: loaded once in a process, and every set of texts encoded once."""

from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

from workflow_scripts.evaluation.embeddings import Encode, Vectors
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.readouts import ReadoutConfig

_REMEMBERED_BYTES = 1 << 26
"""Vectors that are kept for the next job of the same process: 40,000 of width 384."""


class Opened:
    """A run's encoder on the device that its job was granted."""

    def __init__(self, folder: Path, gpus: int, readout: ReadoutConfig | None) -> None:
        self._encoder, self.tokenizer = load_encoder(folder, readout)
        self._encoder.to(granted_device(gpus))
        self._known: dict[tuple[int, tuple[str, ...]], Vectors] = {}
        self._room = _REMEMBERED_BYTES

    def encoding(self, max_tokens: int) -> Encode:
        """Texts, cut at so many tokens, to vectors, which are not to be changed."""

        def once(texts: Sequence[str]) -> Vectors:
            asked = (max_tokens, tuple(texts))
            if asked in self._known:
                return self._known[asked]
            vectors = encode(self._encoder, self.tokenizer, texts, max_tokens=max_tokens)
            if vectors.nbytes <= self._room:
                self._room -= vectors.nbytes
                self._known[asked] = vectors
            return vectors

        return once


def open_run(job: Job, readout: ReadoutConfig | None = None) -> Opened:
    """The model that a job evaluates, one time for all jobs of a process.

    Args:
        job: With the input ``model`` and, among its operational settings, ``gpu``.
        readout: In place of the run's own.
    """
    given = job.start.inputs["model"]
    return _opened(job.inputs["model"].parent, given.sha256, job.operational["gpu"], readout)


@lru_cache(maxsize=1)
def _opened(folder: Path, _record: str, gpus: int, readout: ReadoutConfig | None) -> Opened:
    """Of a folder as its record vouches for it."""
    return Opened(folder, gpus, readout)
