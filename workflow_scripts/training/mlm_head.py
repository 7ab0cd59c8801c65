"""The masked-language-model head of a published or adapted encoder, if its folder has one.

The heads of BERT and RoBERTa are the same computation under different names: dense, GELU, LayerNorm, and a decoder
that is tied to the word embeddings and has its own bias. ``continue_mlm`` saves the head in the encoder's folder.
"""

from pathlib import Path

from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import AutoModelForMaskedLM

from workflow_scripts.errors import DataError
from workflow_scripts.models.encoder import load_backbone
from workflow_scripts.training.mlm import MaskedLanguageModel

HEAD_FILE = "mlm_head.safetensors"


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
    """The head of a published encoder, under our names; empty if there is none."""
    whole, loading = AutoModelForMaskedLM.from_pretrained(
        folder, use_safetensors=True, local_files_only=True, output_loading_info=True
    )
    head = whole.cls.predictions if hasattr(whole, "cls") else getattr(whole, "lm_head", None)
    if head is None or any(name.startswith(("cls.", "lm_head.")) for name in loading["missing_keys"]):
        return {}
    transform = getattr(head, "transform", head)
    norm = transform.LayerNorm if hasattr(transform, "LayerNorm") else transform.layer_norm
    parts = {"dense": transform.dense, "norm": norm}
    named = {
        f"{name}.{key}": value for name, part in parts.items() for key, value in part.state_dict().items()
    }
    return named | {"bias": head.bias}
