"""Names of the files of a model folder."""

from pathlib import Path

ENCODER_FILE = "semblance_encoder.json"
ENSEMBLE_FILE = "semblance_ensemble.json"
HEAD_FILE = "head.safetensors"
READOUT_FILE = "readout.safetensors"
LENGTH_FILE = "sentence_bert_config.json"
TOKENISER_FILES = ("tokenizer.json", "vocab.txt", "vocab.json")


def sub_encoder_folder(folder: Path, number: int) -> Path:
    """The folder of an ensemble's sub-encoder, from 1."""
    return folder / f"encoder{number}"


def backbone_folder(folder: Path) -> Path:
    """The folder of the backbone: the model folder itself, or that of its first module.

    It is the latter where the backbone alone does not give the model's vectors (``models.saving``).
    """
    return next((file.parent for file in folder.glob("0_*/config.json")), folder)
