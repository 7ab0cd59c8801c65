"""A run's model folder back into an encoder."""

import importlib
from collections.abc import Sequence
from pathlib import Path

from pydantic import Field
from safetensors.torch import load_file
from transformers import PreTrainedTokenizerBase

from workflow_scripts.config import Settings
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder, load_backbone, load_tokenizer
from workflow_scripts.models.folders import ENCODER_FILE, ENSEMBLE_FILE, HEAD_FILE, READOUT_FILE
from workflow_scripts.provenance.artefacts import check_model_folder
from workflow_scripts.settings.readouts import AnyReadout, ReadoutConfig
from workflow_scripts.settings.templates import Template


class SavedEncoder(Settings):
    """What a model folder adds to its backbone."""

    readout: AnyReadout
    head: bool = Field(description="Whether a trained MLP head lies in the folder.")
    head_at_test: bool = Field(description="Whether the head is part of the embedding.")
    template: Template | None = Field(description="Prompt that sentences are put into; null for none.")


def load_encoder(
    folder: Path, readout: ReadoutConfig | None = None
) -> tuple[TextEncoder, PreTrainedTokenizerBase]:
    """Load a run's model folder after checking every file in it.

    Args:
        folder: Of the model.
        readout: Read the plain backbone by this, which has no parameters, in place of the run's own readout and head.

    Raises:
        DataError: if the folder is not what a run wrote.
        ConfigError: if several encoders are to be read by another readout.
    """
    check_model_folder(folder)
    return _load(folder, readout).eval(), load_tokenizer(folder)


def shared_tokenizer(folders: Sequence[Path]) -> PreTrainedTokenizerBase:
    """The one tokeniser of several model folders.

    Raises:
        ConfigError: if they have different vocabularies.
    """
    tokenizers = [load_tokenizer(folder) for folder in folders]
    if not all_the_same(tokenizers):
        raise ConfigError(
            f"encoders: {folders[0]} and {folders[-1]} have different vocabularies. Join runs of one tokeniser."
        )
    return tokenizers[0]


def all_the_same(tokenizers: Sequence[PreTrainedTokenizerBase]) -> bool:
    """Whether tokenisers have one vocabulary."""
    return all(other.get_vocab() == tokenizers[0].get_vocab() for other in tokenizers[1:])


def _load(folder: Path, readout: ReadoutConfig | None = None) -> TextEncoder:
    if (folder / ENSEMBLE_FILE).exists():
        if readout is not None:
            raise ConfigError(
                f"suites: readout: {folder} holds several encoders. Leave it out, or name one run."
            )
        ensembles = importlib.import_module("workflow_scripts.models.ensemble")
        ensemble: TextEncoder = ensembles.load_ensemble(folder, _load)
        return ensemble
    if not (folder / ENCODER_FILE).exists():
        raise DataError(
            f"{folder}: no {ENCODER_FILE}; an encoder, not a run's model. Name the model of a run."
        )
    described = SavedEncoder.model_validate_json((folder / ENCODER_FILE).read_text("utf-8"))
    if readout is not None:
        plain = {"head": False, "head_at_test": False}
        return SentenceEncoder(load_backbone(folder), readout, **plain, template=described.template)
    encoder = SentenceEncoder(
        load_backbone(folder),
        described.readout,
        head=described.head,
        head_at_test=described.head_at_test,
        template=described.template,
    )
    if encoder.head is not None:
        encoder.head.load_state_dict(load_file(folder / HEAD_FILE))
    if encoder.readout.state_dict():
        encoder.readout.load_state_dict(load_file(folder / READOUT_FILE))
    return encoder
