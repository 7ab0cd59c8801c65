"""The model of a run as evaluations use it."""

from functools import partial
from pathlib import Path

from workflow_scripts.evaluation.embeddings import Encode
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.encoding import encode
from workflow_scripts.models.folders import load_encoder
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.readouts import ReadoutConfig


class Opened:
    """A run's encoder on the device that its job was granted."""

    def __init__(self, folder: Path, gpus: int, readout: ReadoutConfig | None) -> None:
        self._encoder, self.tokenizer = load_encoder(folder, readout)
        self._encoder.to(granted_device(gpus))

    def encoding(self, max_tokens: int) -> Encode:
        """Texts, cut at so many tokens, to vectors."""
        return partial(encode, self._encoder, self.tokenizer, max_tokens=max_tokens)


def open_run(job: Job, readout: ReadoutConfig | None = None) -> Opened:
    """The model that a job evaluates.

    Args:
        job: With the input ``model`` and, among its operational settings, ``gpu``.
        readout: In place of the run's own.
    """
    return Opened(job.inputs["model"].parent, job.operational["gpu"], readout)
