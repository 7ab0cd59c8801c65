"""Model folders for ``SentenceTransformer``, this pipeline and, if possible, ``AutoModel``.

Models are saved as modules of sentence-transformers, built-in ones if they exist. Other readouts, prompts and ensembles
are modules of ``models.readouts``, whose files are copied into the folder; ``SentenceTransformer`` loads them with
``trust_remote_code=True``. This project's own loader finds classes by the names in its settings, and never runs code
from a folder.

The backbone is in the folder's root, where ``AutoModel`` finds it, if only a pooling of its hidden states follows.
Otherwise ``AutoModel`` would load the backbone as if it were the complete model. The backbone is then in the folder of
the first module, and the root's ``config.json`` makes ``AutoModel`` stop with an explanation.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import Field
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.errors import DataError
from workflow_scripts.models import readouts
from workflow_scripts.models.backbone import longest_sentence
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.names import Template
from workflow_scripts.settings.readouts import AnyReadout

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer  # slow to import

ENCODER_FILE, HEAD_FILE = "semblance_encoder.json", "head.safetensors"
MODULES_FILE, CONFIG_FILE, SUM_FILE = "modules.json", "config.json", "encoder_sum.json"
READOUT_FOLDER = "1_Readout"
NO_AUTO_MODEL = {
    "model_type": "more than a Transformers model: load it with sentence_transformers.SentenceTransformer"
}
"""The ``config.json`` of a folder that ``AutoModel`` must not load, whose error message quotes it."""
_OLD_KEYS = {"first_state": "first_layer", "form": "fusion"}
"""Settings of readouts under the names that older versions saved."""


class SavedEncoder(Settings):
    """Settings of a saved encoder, in addition to its backbone."""

    readout: AnyReadout
    head_at_test: bool = Field(description="Whether the head is part of the embedding.")
    tanh: bool = Field(default=True, description="False for a head that is a linear map by itself.")
    template: Template | None = Field(description="Prompt around each sentence; null for none.")


def read_settings(folder: Path) -> SavedEncoder:
    """Return the settings of a saved encoder.

    Raises:
        DataError: if the folder is not the model of a run.
    """
    if not (folder / ENCODER_FILE).exists():
        raise DataError(
            f"{folder}: no {ENCODER_FILE}, so this is not the model of a run. Choose a folder "
            "results/<study>/runs/<run>/seed<seed>/model."
        )
    saved = json.loads((folder / ENCODER_FILE).read_text("utf-8"))
    saved["readout"] = {_OLD_KEYS.get(key, key): value for key, value in saved["readout"].items()}
    return SavedEncoder.model_validate(saved)


def write_settings(folder: Path, settings: SavedEncoder) -> None:
    """Write the settings of a saved encoder."""
    usual = {"tanh"} if settings.tanh else set()  # keeps the files of other models unchanged
    (folder / ENCODER_FILE).write_text(settings.model_dump_json(indent=1, exclude=usual) + "\n", "utf-8")


def write_with_sentence_transformers(folder: Path, model: "SentenceTransformer") -> None:
    """Write a model's modules into a folder, in a form from which all loaders give the same embeddings."""
    model.save_pretrained(str(folder), create_model_card=False)
    for file in folder.rglob(MODULES_FILE):  # it refers to a class by its file in the folder
        file.write_text(file.read_text("utf-8").replace(f'"{readouts.__name__}.', '"'), "utf-8")
    for file in folder.rglob(CONFIG_FILE):
        # Loaders use the file's precision; in half precision, a sentence's vector depends on its batch.
        config = json.loads(file.read_text("utf-8"))
        if config.get("dtype", "float32") != "float32":
            text = json.dumps(config | {"dtype": "float32"}, indent=2, sort_keys=True)
            file.write_text(f"{text}\n", "utf-8")


def forbid_auto_model(folder: Path) -> None:
    """Write a ``config.json`` that stops ``AutoModel`` with an explanation, unless the folder has its own."""
    if not (folder / CONFIG_FILE).exists():
        (folder / CONFIG_FILE).write_text(json.dumps(NO_AUTO_MODEL) + "\n", "utf-8")


def transformer_module(
    folder: Path,
    backbone: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    template: Template | None,
    following: Sequence[nn.Module],
    all_states: bool,
) -> nn.Module:
    """Write a backbone and return it as a module of sentence-transformers, with its prompt.

    Args:
        folder: The model folder; the backbone is in its root if only a pooling of the states follows.
        backbone: The encoder of Transformers.
        tokenizer: Its tokeniser.
        template: The prompt around each sentence.
        following: The modules after the backbone.
        all_states: Whether these modules read the hidden states of all layers.
    """
    from sentence_transformers.base.modules import Transformer

    from workflow_scripts.models.readouts.prompted_transformer import PromptedTransformer

    options: dict[str, Any] = {"max_seq_length": longest_sentence(backbone, tokenizer)}
    if all_states:
        options["config_kwargs"] = {"output_hidden_states": True}
    kind: type[Transformer] = Transformer
    if template is not None:
        kind = PromptedTransformer
        before, after = template.sides(tokenizer.mask_token)
        options |= {"before": before, "after": after, "add_period": template.add_period}
    poolings = ("Pooling", "WeightedLayerPooling")
    in_root = template is None and all(type(module).__name__ in poolings for module in following)
    subfolder = folder if in_root else folder / f"0_{kind.__name__}"
    backbone.save_pretrained(subfolder)
    tokenizer.save_pretrained(subfolder)
    if not in_root:
        forbid_auto_model(folder)
    transformer: nn.Module = kind(str(subfolder), **options)
    transformer.save_in_root = in_root  # type: ignore[assignment]
    return transformer
