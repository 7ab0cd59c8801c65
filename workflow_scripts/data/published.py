"""What sentence-transformers would make of an encoder's folder: its modules, its prompts, and what is not done here.

``modules.json`` names modules in order, each with a folder of its own; ``config_sentence_transformers.json`` holds
prompts by name. A folder is somebody else's: no name in it leads out of it, no code of it is run, no pickle read.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from workflow_scripts.errors import DataError
from workflow_scripts.settings.readouts import ReadoutConfig
from workflow_scripts.settings.start import Published

MODULES, PROMPTS, LENGTH = "modules.json", "config_sentence_transformers.json", "sentence_bert_config.json"
WEIGHTS, SHARDS = "model.safetensors", "model.safetensors.index.json"
ON_HUB = (SHARDS, "model-*.safetensors", MODULES, PROMPTS, f"*_*/{WEIGHTS}", "*_*/config.json")
"""Patterns of what ``more_files`` may name."""
HONOURED = ("Pooling", "Dense", "LayerNorm", "Normalize")
"""Modules that may follow the encoder."""
ALONE = "readout as_published alone"
"""Who applies what is published behind an encoder."""
_FLAGS = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}
"""What Pooling's settings were called before its modes had names."""
_WEIGHTED = ("Dense", "LayerNorm")
_CHANGES = ("do_lower_case", "query_length", "document_length")
"""Settings of sentence-transformers' encoder that change what it reads."""
_NAME = re.compile(r"\w[\w.-]*")


def json_of(file: Path) -> Any:
    """What a file holds; None where there is none."""
    return json.loads(file.read_text("utf-8")) if file.exists() else None


def modules_of(folder: Path) -> list[Mapping[str, str]]:
    """The modules of a folder; none where it is not of sentence-transformers.

    Raises:
        DataError: if one lies elsewhere.
    """
    modules = json_of(folder / MODULES) or []
    for module in modules:
        if module["path"] and not _NAME.fullmatch(module["path"]):
            raise DataError(f"{folder / MODULES}: {module['path']} is no folder's name. Get the model again.")
    return modules


def more_files(folder: Path) -> list[str]:
    """Files beside the usual ones: shards of the weights, and the modules that follow the encoder.

    Raises:
        DataError: if a name leads out of the folder.
    """
    shards = sorted({*(json_of(folder / SHARDS) or {}).get("weight_map", {}).values()})
    if outside := next((name for name in shards if not _NAME.fullmatch(name)), None):
        raise DataError(f"{folder / SHARDS}: {outside} is no file's name. Get the model again.")
    parts = [
        f"{module['path']}/{file}" for module in modules_of(folder)[1:] for file in ("config.json", WEIGHTS)
    ]
    return [SHARDS, *shards, MODULES, PROMPTS, *parts]


def refusals(folder: Path) -> Iterator[str]:
    """Why nothing can be made of a folder, a line each: it runs code of its own, or has no encoder of Transformers."""
    for number, module in enumerate(modules_of(folder)):
        package, _, kind = module["type"].rpartition(".")
        if package.partition(".")[0] != "sentence_transformers":
            found = f"{module['type']} is code of the folder, which is never run. Take an encoder without."
            yield f"{folder / MODULES}: {found}"
        elif number == 0 and kind != "Transformer":
            yield f"{folder / MODULES}: {kind} is not supported. Take an encoder of Transformers."
    config = json_of(folder / "config.json") or {}
    if config.get("auto_map"):
        from transformers import CONFIG_MAPPING  # slow to import

        if (name := config.get("model_type", "an unnamed model")) not in CONFIG_MAPPING:
            found = f"{name} is code of the folder (trust_remote_code), which is never run"
            yield f"{folder / 'config.json'}: {found}, and Transformers has none of that name. Take another encoder."


def read_published(folder: Path) -> Published:
    """What a folder adds to its encoder.

    Raises:
        DataError: if a name leads out of the folder.
    """
    texts = json_of(folder / PROMPTS) or {}
    prompts = tuple((texts.get("prompts") or {}).items())
    return Published(prompts, texts.get("default_prompt_name"), tuple(_unmet(folder, texts)))


def other_pooling(folder: Path, readout: ReadoutConfig) -> Iterator[str]:
    """A label where a readout pools other tokens than the folder's authors do."""
    for module in modules_of(folder):
        if module["type"].endswith(".Pooling") and not readout.needs_frozen:
            settings = json_of(folder / module["path"] / "config.json") or {}
            named = settings.get("pooling_mode") or [name for name in _FLAGS if settings.get(name)]
            modes = [_FLAGS.get(mode, mode) for mode in ([named] if isinstance(named, str) else named)]
            if modes != [getattr(readout, "mode", None)]:
                yield f"the encoder was published with {' and '.join(modes)} pooling, applied by {ALONE}"


def _unmet(folder: Path, texts: Mapping[str, Any]) -> Iterator[str]:
    """What is not done here of what sentence-transformers would do."""
    modules = modules_of(folder)
    if not modules:
        yield f"{folder} has no {MODULES} (of a pinned source, only files that it pins are taken)"
        return
    if refused := [*refusals(folder)]:
        yield from refused
        return
    if (kind := texts.get("model_type", "SentenceTransformer")) != "SentenceTransformer":
        yield f"{folder / PROMPTS}: {kind} makes no vector of a sentence"
    kinds = [module["type"].rpartition(".")[2] for module in modules]
    for module, kind in zip(modules[1:], kinds[1:], strict=True):
        if kind not in HONOURED:
            yield f"{folder / MODULES}: {kind} ({module['path']}) is not done here"
        if kind in _WEIGHTED and not (folder / module["path"] / WEIGHTS).exists():
            yield f"{folder / module['path']} has no {WEIGHTS}, and pickles are not read"
        settings = json_of(folder / module["path"] / "config.json") or {}
        if not settings.get("activation_function", "torch.").startswith("torch."):
            yield f"{folder / module['path']}: {settings['activation_function']} is code of its own"
        if settings.get("include_prompt") is False and any((texts.get("prompts") or {}).values()):
            yield f"{folder / module['path']}: tokens of the prompt are left out of the pooling"
    if "Pooling" not in kinds:
        yield f"{folder / MODULES}: no Pooling, and so no vector of a sentence"
    if changed := [key for key in _CHANGES if (json_of(folder / LENGTH) or {}).get(key)]:
        yield f"{folder / LENGTH}: {changed[0]} changes what is read"
