"""Model folders, which ``SentenceTransformer`` and this pipeline load, and, if possible, ``AutoModel``.

Models are saved as modules of sentence-transformers, built-in ones where they exist. Other readouts, prompts and
ensembles are modules of ``models.readouts``, whose files are copied into the folder; ``SentenceTransformer`` loads them
with ``trust_remote_code=True``. This project's own loader finds classes by the names in its settings, and never runs
code from a folder.

The backbone is in the folder's root, where ``AutoModel`` finds it, if only a pooling of its hidden states follows.
Otherwise the backbone would be mistaken for the whole model: it is in the folder of the first module, and the root's
``config.json`` makes ``AutoModel`` stop with an explanation.
"""

import importlib
import json
from pathlib import Path
from typing import Any

from pydantic import Field
from safetensors.torch import load_file, save_file
from torch import nn
from transformers import PreTrainedTokenizerBase

from workflow_scripts.errors import DataError
from workflow_scripts.models import readouts
from workflow_scripts.models.encoder import (
    SentenceEncoder,
    TextEncoder,
    load_backbone,
    load_tokenizer,
    longest_sentence,
)
from workflow_scripts.provenance.artefacts import identity
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.names import Template
from workflow_scripts.settings.readouts import AnyReadout, ReadoutConfig

ENCODER_FILE, HEAD_FILE = "semblance_encoder.json", "head.safetensors"
MODULES_FILE, CONFIG_FILE, SUM_FILE = "modules.json", "config.json", "encoder_sum.json"
READOUT_FOLDER = "1_Readout"
NO_AUTO_MODEL = {
    "model_type": "more than a Transformers model: load it with sentence_transformers.SentenceTransformer"
}
"""The ``config.json`` of a folder that ``AutoModel`` must not load: its error message quotes this."""


class SavedEncoder(Settings):
    """Settings of a saved encoder, in addition to its backbone."""

    readout: AnyReadout
    head_at_test: bool = Field(description="Whether the head is part of the embedding.")
    tanh: bool = Field(default=True, description="False for a head that is a linear map by itself.")
    template: Template | None = Field(description="Prompt around each sentence; null for none.")


def load_encoder(
    folder: Path, readout: ReadoutConfig | None = None
) -> tuple[TextEncoder, PreTrainedTokenizerBase]:
    """Load a run's model folder after verifying every file in it.

    Args:
        folder: The model folder.
        readout: A readout without parameters that replaces the run's own readouts and heads.

    Raises:
        DataError: if the folder was not written by a run, or changed since.
    """
    identity(folder)
    encoder = load_saved(folder)
    encoder = (encoder.read_by(readout) if readout else encoder).eval()
    return encoder, encoder.tokenizer or load_tokenizer(folder)


def load_saved(folder: Path) -> TextEncoder:
    """Load a folder that ``save_encoder`` wrote, without verifying its files."""
    if (folder / SUM_FILE).exists():
        saved = json.loads((folder / SUM_FILE).read_text("utf-8"))
        members = _members(folder, len(saved["weights"]))
        # Imported by name, so that an edit of it changes no run of a single encoder.
        kind = importlib.import_module("workflow_scripts.models.ensemble").Ensemble
        tokenizers = list(map(load_tokenizer, members))
        ensemble: TextEncoder = kind(list(map(load_saved, members)), tokenizers=tokenizers, **saved)
        return ensemble
    if not (folder / ENCODER_FILE).exists():
        raise DataError(
            f"{folder}: no {ENCODER_FILE}, so this is not the model of a run. Name the model folder of a run."
        )
    settings = SavedEncoder.model_validate_json((folder / ENCODER_FILE).read_text("utf-8"))
    if settings.readout.kind == "as_published":
        return readouts.load_published(settings.readout, folder)  # type: ignore[no-any-return]
    encoder = SentenceEncoder(
        load_backbone(folder),
        settings.readout,
        head=(folder / HEAD_FILE).exists(),
        head_at_test=settings.head_at_test,
        template=settings.template,
        tanh=settings.tanh,
    )
    if encoder.head is not None:
        encoder.head.load_state_dict(load_file(folder / HEAD_FILE))
    encoder.readout.load_weights(folder / READOUT_FOLDER)
    return encoder


def _members(folder: Path, count: int) -> list[Path]:
    """Folders of the sub-encoders of an ensemble."""
    return [folder / f"encoder{number}" for number in range(1, count + 1)]


def save_encoder(folder: Path, encoder: TextEncoder, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write ``encoder`` into ``folder``; all loaders give the same embeddings."""
    if encoder.tokenizer is not None:
        published: Any = encoder
        published.save(folder)
        _write_settings(
            folder, SavedEncoder(readout=published.readout_settings, head_at_test=False, template=None)
        )
        return
    _write(folder, encoder, tokenizer).save_pretrained(str(folder), create_model_card=False)
    for file in folder.rglob(MODULES_FILE):  # refers to a class by its file in the folder
        file.write_text(file.read_text("utf-8").replace(f'"{readouts.__name__}.', '"'), "utf-8")
    for file in folder.rglob(CONFIG_FILE):
        # Loaders follow the file's precision, and in half precision a sentence's vector depends on its batch.
        config = json.loads(file.read_text("utf-8"))
        if config.get("dtype", "float32") != "float32":
            text = json.dumps(config | {"dtype": "float32"}, indent=2, sort_keys=True)
            file.write_text(f"{text}\n", "utf-8")


def _write(folder: Path, encoder: TextEncoder, tokenizer: PreTrainedTokenizerBase) -> Any:
    """Write the files of this pipeline's loader; returns the ``SentenceTransformer``, which writes the others."""
    from sentence_transformers import SentenceTransformer

    folder.mkdir(exist_ok=True)
    tokenizer.save_pretrained(folder)
    if isinstance(encoder, SentenceEncoder):
        modules = _sentence_modules(folder, encoder, tokenizer)
    else:
        ensemble: Any = encoder
        tokenizers = ensemble.tokenizers or [tokenizer] * len(ensemble.members)
        parts = map(_write, _members(folder, len(tokenizers)), ensemble.members, tokenizers)
        modules = [ensemble.sentence_module(list(parts))]
    if not (folder / CONFIG_FILE).exists():
        (folder / CONFIG_FILE).write_text(json.dumps(NO_AUTO_MODEL) + "\n", "utf-8")
    return SentenceTransformer(modules=modules, device="cpu")


def _write_settings(folder: Path, settings: SavedEncoder) -> None:
    usual = {"tanh"} if settings.tanh else set()  # so that the files of other models stay as they were
    (folder / ENCODER_FILE).write_text(settings.model_dump_json(indent=1, exclude=usual) + "\n", "utf-8")


def _sentence_modules(
    folder: Path, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase
) -> list[nn.Module]:
    from sentence_transformers.base.modules import Dense

    saved = SavedEncoder(
        readout=encoder.readout_settings,
        head_at_test=encoder.head_at_test,
        template=encoder.template,
        tanh=encoder.head is None or isinstance(encoder.head.activation, nn.Tanh),
    )
    _write_settings(folder, saved)
    following = [*encoder.readout.sentence_modules(encoder.backbone.config.num_hidden_layers)]
    if encoder.head is not None:
        save_file(encoder.head.state_dict(), folder / HEAD_FILE)
        if encoder.head_at_test:
            dense = Dense(encoder.readout.width, encoder.width, activation_function=encoder.head.activation)
            dense.linear.load_state_dict(encoder.head.dense.state_dict())
            following.append(dense)
    return [_transformer(folder, encoder, tokenizer, following), *following]


def _transformer(
    folder: Path, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, following: list[nn.Module]
) -> nn.Module:
    """The backbone as a module, with its prompt, and with all hidden states if the readout needs them."""
    from sentence_transformers.base.modules import Transformer

    from workflow_scripts.models.readouts.prompted_transformer import PromptedTransformer

    options: dict[str, Any] = {"max_seq_length": longest_sentence(encoder.backbone, tokenizer)}
    if encoder.readout.reads in ("all", "padded"):
        options["config_kwargs"] = {"output_hidden_states": True}
    kind: Any = Transformer
    if encoder.template is not None:
        kind = PromptedTransformer
        before, after = encoder.template.sides(tokenizer.mask_token)
        options |= {"before": before, "after": after, "add_period": encoder.template.add_period}
    poolings = ("Pooling", "WeightedLayerPooling")
    in_root = encoder.template is None and all(type(module).__name__ in poolings for module in following)
    subfolder = folder if in_root else folder / f"0_{kind.__name__}"
    encoder.backbone.save_pretrained(subfolder)
    tokenizer.save_pretrained(subfolder)
    transformer: nn.Module = kind(str(subfolder), **options)
    transformer.save_in_root = in_root  # type: ignore[assignment]
    return transformer
