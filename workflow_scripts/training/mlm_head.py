"""The masked-language-model head of a published or adapted encoder, if its folder has one.

The heads of BERT and RoBERTa are the same computation under different names: dense, GELU, LayerNorm, and a decoder
that is tied to the word embeddings and has its own bias. ``continue_mlm`` saves the head in the encoder's folder.
"""

from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor

from workflow_scripts.errors import DataError
from workflow_scripts.models.encoder import load_backbone
from workflow_scripts.training.mlm import MaskedLanguageModel

HEAD_FILE = "mlm_head.safetensors"
_PUBLISHED = {
    "cls.predictions.transform.dense.": "dense.",  # BERT
    "cls.predictions.transform.LayerNorm.": "norm.",
    "lm_head.dense.": "dense.",  # RoBERTa
    "lm_head.layer_norm.": "norm.",
}
_BIASES = ("cls.predictions.bias", "lm_head.bias")
_OLD_NAMES = {"gamma": "weight", "beta": "bias"}  # parameters of a LayerNorm in checkpoints of 2018


def save_head(folder: Path, model: MaskedLanguageModel) -> None:
    """Write the head of ``model`` into its encoder's folder."""
    save_file(_head_of(model), folder / HEAD_FILE)


def load_masked_language_model(folder: Path) -> MaskedLanguageModel:
    """An encoder with its own head, in evaluation mode.

    Raises:
        DataError: if the folder has no head.
    """
    backbone = load_backbone(folder)
    if (folder / HEAD_FILE).exists():
        model, found = MaskedLanguageModel(backbone), load_file(folder / HEAD_FILE)
    else:
        model = MaskedLanguageModel(backbone, backbone.config.layer_norm_eps)
        found = _published(folder)
    wanted = _head_of(model)
    if missing := sorted(wanted.keys() - found.keys()):
        raise DataError(
            f"{folder}: no masked-language-model head ({missing[0]} is not there). "
            "Start from an encoder that has one, or adapt this one (continue_mlm)."
        )
    model.load_state_dict(found, strict=False)
    return model.eval()


def _head_of(model: MaskedLanguageModel) -> dict[str, Tensor]:
    return {name: value for name, value in model.state_dict().items() if not name.startswith("backbone.")}


def _published(folder: Path) -> dict[str, Tensor]:
    """The head in the weights of a published encoder, under our names; empty if there is none."""
    found = {}
    for name, value in load_file(folder / "model.safetensors").items():
        if name in _BIASES:
            found["bias"] = value
        for theirs, ours in _PUBLISHED.items():
            if name.startswith(theirs):
                last = name.removeprefix(theirs)
                found[ours + _OLD_NAMES.get(last, last)] = value
    return found
