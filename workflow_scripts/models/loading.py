"""A run's model folder back into an encoder."""

from pathlib import Path

from pydantic import Field
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerBase

from workflow_scripts.artefacts import check_model_folder
from workflow_scripts.config import Slice
from workflow_scripts.errors import DataError
from workflow_scripts.models.encoder import SentenceEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.readouts import AnyReadout

ENCODER_FILE = "semblance_encoder.json"
HEAD_FILE = "head.safetensors"
READOUT_FILE = "readout.safetensors"


class SavedEncoder(Slice):
    """What a model folder adds to its backbone."""

    readout: AnyReadout
    head: bool = Field(description="Whether a trained MLP head lies in the folder.")
    head_at_test: bool = Field(description="Whether the head is part of the embedding.")
    max_tokens: int = Field(gt=2, description="Length the encoder was trained with.")


def load_encoder(folder: Path) -> tuple[SentenceEncoder, PreTrainedTokenizerBase]:
    """Load a run's model folder after checking every file in it.

    Raises:
        DataError: if the folder is not what a run wrote.
    """
    check_model_folder(folder)
    if not (folder / ENCODER_FILE).exists():
        raise DataError(
            f"{folder}: no {ENCODER_FILE}; an encoder, not a run's model. Name the model of a run."
        )
    described = SavedEncoder.model_validate_json((folder / ENCODER_FILE).read_text("utf-8"))
    encoder = SentenceEncoder(
        load_backbone(folder), described.readout, head=described.head, head_at_test=described.head_at_test
    )
    if encoder.head is not None:
        encoder.head.load_state_dict(load_file(folder / HEAD_FILE))
    if encoder.readout.state_dict():
        encoder.readout.load_state_dict(load_file(folder / READOUT_FILE))
    encoder.eval()
    return encoder, load_tokenizer(folder)
