"""Loading of model folders, whose files determine the class of the encoder.

Classes that few runs use are imported by name: an edit of such a class then reruns no other run.
"""

import importlib
from pathlib import Path
from typing import TYPE_CHECKING

from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.folders import SUM_FILE, read_settings
from workflow_scripts.models.text_encoder import TextEncoder
from workflow_scripts.provenance.artefacts import identity
from workflow_scripts.settings.readouts import ReadoutConfig

if TYPE_CHECKING:
    from workflow_scripts.models.readouts.as_published import PublishedEncoder


def load_encoder(folder: Path, readout: ReadoutConfig | None = None) -> TextEncoder:
    """Return the encoder of a run's model folder in evaluation mode, after verifying every file in the folder.

    Args:
        folder: The model folder.
        readout: A readout without parameters that replaces the run's readouts and heads.

    Raises:
        DataError: if the folder was not written by a run, or was changed later.
    """
    identity(folder)
    encoder = class_of(folder).load(folder)
    return (encoder.with_readout(readout) if readout else encoder).eval()


def class_of(folder: Path) -> type[TextEncoder]:
    """Return the class that wrote a model folder.

    Raises:
        DataError: if the folder is not the model of a run.
    """
    kind: type[TextEncoder] = SentenceEncoder
    if (folder / SUM_FILE).exists():
        kind = importlib.import_module("workflow_scripts.models.ensemble").EnsembleEncoder
    elif read_settings(folder).readout.kind == "as_published":
        kind = published_class()
    return kind


def published_class() -> "type[PublishedEncoder]":
    """Return the class of encoders as published."""
    kind: type[PublishedEncoder] = importlib.import_module(
        "workflow_scripts.models.readouts.as_published"
    ).PublishedEncoder
    return kind
