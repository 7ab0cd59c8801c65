"""Model folders: what the pipeline, ``AutoModel`` and ``SentenceTransformer`` all load.

The backbone lies in the folder's root as ``save_pretrained`` writes it; pooling and head are written as
modules of sentence-transformers, built-in ones wherever they do, so that nobody needs to trust foreign code.
Other readouts, prompts and ensembles come as one file each in the folder, which ``SentenceTransformer`` runs after
``trust_remote_code=True`` alone; this project's own loader never runs code of a folder.
"""

import importlib
import inspect
from pathlib import Path
from types import ModuleType
from typing import Any

import sentence_transformers as st
import torch
from safetensors.torch import save_file
from sentence_transformers.base.modules import Dense, Transformer
from sentence_transformers.sentence_transformer.modules import Pooling as StPooling
from sentence_transformers.sentence_transformer.modules import WeightedLayerPooling
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from workflow_scripts.models.encoder import SentenceEncoder
from workflow_scripts.models.ensemble import Ensemble
from workflow_scripts.models.loading import (
    ENCODER_FILE,
    ENSEMBLE_FILE,
    HEAD_FILE,
    READOUT_FILE,
    SavedEncoder,
    SavedEnsemble,
    tower_folder,
)
from workflow_scripts.models.portable import prompt, prompt_module, readout_module, tower_sum
from workflow_scripts.models.readouts import PortableReadout
from workflow_scripts.models.readouts.pooled import Config as Pooling
from workflow_scripts.models.templates import PLAIN, most_tokens

_MARK = "# The file of a model folder goes on from here.\n"


def save_encoder(
    folder: Path, encoder: SentenceEncoder | Ensemble, tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> None:
    """Write ``encoder`` into ``folder``; its embeddings are the same through every loader."""
    if isinstance(encoder, Ensemble):
        _save_ensemble(folder, encoder, tokenizer, max_tokens)
    else:
        _save_single(folder, encoder, tokenizer, max_tokens)


def _save_ensemble(
    folder: Path, ensemble: Ensemble, tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> None:
    """Each tower in a folder of its own, and beside them a module that adds them up."""
    places = [tower_folder(folder, number) for number in range(1, len(ensemble.members) + 1)]
    for place, tower in zip(places, ensemble.members, strict=True):
        place.mkdir()
        save_encoder(place, tower, tokenizer, max_tokens)
    tokenizer.save_pretrained(folder)
    saved = SavedEnsemble(
        weights=ensemble.weights, bypassed_layernorms=ensemble.bypassed_layernorms, max_tokens=max_tokens
    )
    (folder / ENSEMBLE_FILE).write_text(saved.model_dump_json(indent=1) + "\n", "utf-8")
    save_file({"weights": torch.tensor(ensemble.weights)}, folder / "model.safetensors")
    module = _written(folder, "semblance_tower_sum", inspect.getsource(tower_sum))
    towers = [st.SentenceTransformer(str(place), device="cpu", trust_remote_code=True) for place in places]
    whole = module.TowerSum(list(ensemble.weights), ensemble.bypassed_layernorms, towers)
    st.SentenceTransformer(modules=[whole], device="cpu").save_pretrained(
        str(folder), create_model_card=False
    )


def _written(folder: Path, name: str, source: str) -> ModuleType:
    """Write a portable module's file, and import it as sentence-transformers will, leaving no bytecode."""
    (folder / f"{name}.py").write_text(source, "utf-8")
    module = ModuleType(name)
    exec(compile(source, name, "exec"), module.__dict__)
    return module


def _save_single(
    folder: Path, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> None:
    encoder.backbone.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    described = SavedEncoder(
        readout=encoder.described,
        head=encoder.head is not None,
        head_at_test=encoder.head_at_test,
        max_tokens=max_tokens,
        template=encoder.template,
    )
    (folder / ENCODER_FILE).write_text(described.model_dump_json(indent=1) + "\n", "utf-8")
    if encoder.head is not None:
        save_file(encoder.head.state_dict(), folder / HEAD_FILE)
    if weights := encoder.readout.state_dict():
        save_file(weights, folder / READOUT_FILE)
    modules = _modules(folder, encoder, tokenizer, max_tokens)
    st.SentenceTransformer(modules=modules, device="cpu").save_pretrained(
        str(folder), create_model_card=False
    )


def _modules(
    folder: Path, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> list[nn.Module]:
    modules = [_transformer(folder, encoder, tokenizer, max_tokens), *_readout(folder, encoder)]
    if encoder.head is not None and encoder.head_at_test:
        dense = Dense(encoder.readout.width, encoder.width, activation_function=nn.Tanh())
        dense.linear.load_state_dict(encoder.head.dense.state_dict())
        modules.append(dense)
    return modules


def _transformer(
    folder: Path, encoder: SentenceEncoder, tokenizer: PreTrainedTokenizerBase, max_tokens: int
) -> Transformer:
    """The backbone, told which hidden states to keep and what prompt to fill in."""
    options: dict[str, Any] = {}
    if not encoder.readout.last_only:
        options["config_kwargs"] = {"output_hidden_states": True}
    template = encoder.template
    if template is None or template == PLAIN:
        plain: Transformer = Transformer(str(folder), max_seq_length=max_tokens, **options)
        return plain
    before, after = template.sides(tokenizer.mask_token)
    module = _written(folder, "semblance_prompt", _with_plumbing(prompt, prompt_module))
    made: Transformer = module.PromptedTransformer(
        str(folder),
        max_seq_length=most_tokens(template, tokenizer, max_tokens),
        before=before,
        after=after,
        dot=template.dot,
        sentence_tokens=max_tokens,
        **options,
    )
    return made


def _readout(folder: Path, encoder: SentenceEncoder) -> list[nn.Module]:
    """Built-in poolings where they do, else the readout's own module in a file of the folder."""
    readout = encoder.readout
    if isinstance(readout, PortableReadout):
        core = importlib.import_module(type(readout.core).__module__)
        module = _written(folder, "semblance_readout", _with_plumbing(core, readout_module))
        own = module.SentenceReadout(readout.settings)
        own.core.load_state_dict(readout.core.state_dict())
        return [own.eval()]
    pooling, width = encoder.described, readout.width
    assert isinstance(pooling, Pooling)
    modules: list[nn.Module] = [StPooling(width, pooling_mode="cls" if pooling.takes_cls else "mean")]
    if not readout.last_only:
        modules.insert(0, _layer_average(width, encoder.backbone.config.num_hidden_layers, pooling))
    return modules


def _with_plumbing(core: ModuleType, plumbing: ModuleType) -> str:
    """One file of two: what is computed, and how sentence-transformers calls it."""
    return f"{inspect.getsource(core)}\n\n{inspect.getsource(plumbing).split(_MARK)[1]}"


def _layer_average(width: int, depth: int, pooling: Pooling) -> WeightedLayerPooling:
    """The chosen hidden states, equally weighted; a layer named twice weighs twice."""
    weights = torch.zeros(depth + 1)
    for index in pooling.indices:
        weights[index] += 1
    return WeightedLayerPooling(
        width, num_hidden_layers=depth, layer_start=0, layer_weights=nn.Parameter(weights)
    )


def save_backbone(folder: Path, backbone: PreTrainedModel, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write an encoder that no run has given a pooler yet."""
    backbone.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
