"""Model folders: what the pipeline and ``SentenceTransformer`` load, and ``AutoModel`` where it can.

Each kind of model is written as modules of sentence-transformers, built-in ones wherever they do. Other readouts,
prompts and ensembles need modules of their own, whose files are copied from ``models.portable`` into the folder;
``SentenceTransformer`` runs them if its caller passes ``trust_remote_code=True``. This project's own loader never
runs code of a folder.

The backbone is in the folder's root, where ``AutoModel`` finds it, if a pooling of its hidden states is all that
follows. Elsewhere the backbone alone would be taken for the model: it is in the folder of the first module, and the
root's ``config.json`` makes ``AutoModel`` say so.
"""

import json
from pathlib import Path
from typing import Any

import sentence_transformers as st
from safetensors.torch import save_file
from sentence_transformers.base.modules import Dense, Transformer
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.models import portable
from workflow_scripts.models.encoder import SentenceEncoder, TextEncoder, max_position_embeddings
from workflow_scripts.models.folders import ENCODER_FILE, HEAD_FILE, READOUT_FILE
from workflow_scripts.models.loading import SavedEncoder
from workflow_scripts.models.portable.project_readout_module import ProjectReadout
from workflow_scripts.models.portable.prompted_transformer import PromptedTransformer
from workflow_scripts.models.templates import PLAIN
from workflow_scripts.settings.templates import Template

CONFIG_FILE = "config.json"
NO_AUTO_MODEL = {
    "model_type": "more than a Transformers model: load it with sentence_transformers.SentenceTransformer"
}
"""The ``config.json`` of a folder that ``AutoModel`` must not load: its error message quotes this."""


def save_encoder(folder: Path, encoder: TextEncoder, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write ``encoder`` into ``folder``; its embeddings are the same through every loader."""
    model = _write(folder, encoder, tokenizer)
    model.save_pretrained(str(folder), create_model_card=False)
    for file in folder.rglob("modules.json"):  # a class is named by its file in the folder
        file.write_text(file.read_text("utf-8").replace(f'"{portable.__name__}.', '"'), "utf-8")
    for file in folder.rglob(CONFIG_FILE):
        _compute_in_float32(file)


def _compute_in_float32(file: Path) -> None:
    """Have weights that are saved in half precision computed with in float32, as the pipeline does.

    Loaders follow the file's ``dtype``. In half precision the same sentence has other vectors in another batch.
    """
    described = json.loads(file.read_text("utf-8"))
    if described.get("dtype", "float32") != "float32":
        file.write_text(
            json.dumps(described | {"dtype": "float32"}, indent=2, sort_keys=True) + "\n", "utf-8"
        )


def _write(folder: Path, encoder: TextEncoder, tokenizer: PreTrainedTokenizerBase) -> st.SentenceTransformer:
    """Write what the pipeline loads; returns the model of sentence-transformers, which writes the rest."""
    tokenizer.save_pretrained(folder)
    if isinstance(encoder, SentenceEncoder):
        modules = _write_single(folder, encoder, tokenizer)
    else:
        several: Any = encoder
        modules = [several.write(folder, lambda place, part, own: _write(place, part, own or tokenizer))]
    if not (folder / CONFIG_FILE).exists():
        (folder / CONFIG_FILE).write_text(json.dumps(NO_AUTO_MODEL) + "\n", "utf-8")
    return st.SentenceTransformer(modules=modules, device="cpu")


def _write_single(
    folder: Path, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase
) -> list[nn.Module]:
    described = SavedEncoder(
        readout=encoder.described,
        head=encoder.head is not None,
        head_at_test=encoder.head_at_test,
        template=encoder.template,
    )
    (folder / ENCODER_FILE).write_text(described.model_dump_json(indent=1) + "\n", "utf-8")
    if encoder.head is not None:
        save_file(encoder.head.state_dict(), folder / HEAD_FILE)
    if weights := encoder.readout.state_dict():
        save_file(weights, folder / READOUT_FILE)
    following = _readout_and_head(encoder)
    return [_transformer(folder, encoder, tokenizer, following), *following]


def _readout_and_head(encoder: SentenceEncoder) -> list[nn.Module]:
    modules = [*encoder.readout.sentence_modules()]
    if not modules:
        own = ProjectReadout(
            {"readout": encoder.described.model_dump(), "backbone": encoder.backbone.config.to_dict()}
        )
        own.core.readout.load_state_dict(encoder.readout.state_dict())
        modules = [own.eval()]
    if encoder.head is not None and encoder.head_at_test:
        dense = Dense(encoder.readout.width, encoder.width, activation_function=nn.Tanh())
        dense.linear.load_state_dict(encoder.head.dense.state_dict())
        modules.append(dense)
    return modules


def _transformer(
    folder: Path, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, following: list[nn.Module]
) -> Transformer:
    """The backbone, told which hidden states to keep and what prompt to fill in."""
    template = None if encoder.template == PLAIN else encoder.template
    poolings = ("Pooling", "WeightedLayerPooling")
    in_root = template is None and all(type(module).__name__ in poolings for module in following)
    kind = Transformer if template is None else PromptedTransformer
    place = folder if in_root else folder / f"0_{kind.__name__}"
    encoder.backbone.save_pretrained(place)
    tokenizer.save_pretrained(place)
    options: dict[str, Any] = _sides(template, tokenizer)
    if encoder.readout.reads in ("all", "padded"):
        options["config_kwargs"] = {"output_hidden_states": True}
    transformer = kind(str(place), max_seq_length=longest_input(encoder.backbone, tokenizer), **options)
    transformer.save_in_root = in_root
    return transformer


def _sides(template: Template | None, tokenizer: PreTrainedTokenizerBase) -> dict[str, Any]:
    if template is None:
        return {}
    before, after = template.sides(tokenizer.mask_token)
    return {"before": before, "after": after, "add_period": template.add_period}


def longest_input(backbone: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> int:
    """Tokens of the longest input: as many as the encoder has positions for and the tokeniser allows."""
    positions = max_position_embeddings(backbone) or backbone.config.max_position_embeddings
    return int(min(positions, tokenizer.model_max_length))
