"""What sentence-transformers would make of an encoder's folder: its modules, its prompts, and what is not done here.

``modules.json`` names modules in order, each with a folder of its own; ``config_sentence_transformers.json`` holds
prompts by name. A folder is somebody else's: no name in it leads out of it, no code of it is run, no pickle read.
"""

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, Field, TypeAdapter, ValidationError

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


class _Module(BaseModel):
    """What is read of an entry of ``modules.json``."""

    type: str
    path: str


_LIST = TypeAdapter(Annotated[list[_Module], Field(min_length=1)])


def json_of(file: Path) -> Any:
    """What a file holds; None where there is none.

    Raises:
        DataError: if it holds no JSON.
    """
    try:
        return json.loads(file.read_text("utf-8")) if file.exists() else None
    except ValueError as error:
        raise DataError(f"{file}: {error}. Get the model again.") from error


def modules_of(folder: Path) -> list[Mapping[str, str]]:
    """The modules of a folder; none where it is not of sentence-transformers.

    Raises:
        DataError: if the file holds no list of modules, or one lies elsewhere.
    """
    if (modules := json_of(folder / MODULES)) is None:
        return []
    try:
        _LIST.validate_python(modules)
    except ValidationError as error:
        place, found = ".".join(map(str, error.errors()[0]["loc"])), error.errors()[0]["msg"]
        raise DataError(f"{folder / MODULES}: {place or 'all'}: {found}. Get the model again.") from error
    for number, path in enumerate(module["path"] for module in modules):
        if not _NAME.fullmatch(path) and (number or path):  # the encoder may lie in the folder itself
            raise DataError(f"{folder / MODULES}: '{path}' is no folder's name. Get the model again.")
    return [*modules]


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
    """Why nothing can be made of a folder, a line each: damage, code of its own, or no encoder of Transformers."""
    try:
        modules, config = modules_of(folder), json_of(folder / "config.json") or {}
        for file in (LENGTH, *(file for file in more_files(folder) if file.endswith(".json"))):
            json_of(folder / file)
    except DataError as error:
        yield str(error)
        return
    for number, module in enumerate(modules):
        package, _, kind = module["type"].rpartition(".")
        if package.partition(".")[0] != "sentence_transformers":
            found = f"{module['type']} is code of the folder, which is never run. Take an encoder without."
            yield f"{folder / MODULES}: {found}"
        elif number == 0 and kind != "Transformer":
            yield f"{folder / MODULES}: {kind} is not supported. Take an encoder of Transformers."
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
            modes = _modes(json_of(folder / module["path"] / "config.json") or {})
            if modes != [getattr(readout, "mode", None)]:
                yield f"the encoder was published with {' and '.join(modes)} pooling, applied by {ALONE}"


def _modes(pooling: Mapping[str, Any]) -> list[str]:
    """What a Pooling puts side by side."""
    named = pooling.get("pooling_mode") or [name for name in _FLAGS if pooling.get(name)]
    return [_FLAGS.get(mode, mode) for mode in ([named] if isinstance(named, str) else named)]


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
    width = 0
    for module in modules[1:]:
        place, kind = folder / module["path"], module["type"].rpartition(".")[2]
        if kind not in HONOURED:
            yield f"{folder / MODULES}: {kind} ({module['path']}) is not done here"
            continue
        settings = json_of(place / "config.json") or {}
        yield from _unmet_by(place, kind, settings, width)
        width = _width(settings, width)
        if settings.get("include_prompt") is False and any((texts.get("prompts") or {}).values()):
            yield f"{place}: tokens of the prompt are left out of the pooling"
    if not any(module["type"].endswith(".Pooling") for module in modules):
        yield f"{folder / MODULES}: no Pooling, and so no vector of a sentence"
    if changed := [key for key in _CHANGES if (json_of(folder / LENGTH) or {}).get(key)]:
        yield f"{folder / LENGTH}: {changed[0]} changes what is read"


def _unmet_by(place: Path, kind: str, settings: Mapping[str, Any], width: int) -> Iterator[str]:
    """What of one module; it is given vectors of ``width``, 0 where nobody knows."""
    if kind in _WEIGHTED and not place.is_dir():
        yield f"{place} is not there"
    elif kind in _WEIGHTED and not (place / WEIGHTS).exists():
        yield f"{place} has no {WEIGHTS}, and pickles are not read"
    elif width and settings.get("in_features", width) != width:
        yield f"{place}: in_features {settings['in_features']}, and what comes before it has {width}"
    if not settings.get("activation_function", "torch.").startswith("torch."):
        yield f"{place}: {settings['activation_function']} is code of its own"


def _width(settings: Mapping[str, Any], before: int) -> int:
    """Of a module's vectors: a Pooling puts one for each mode side by side, a Dense says its own."""
    single = settings.get("embedding_dimension") or settings.get("word_embedding_dimension") or 0
    return int(settings.get("out_features") or single * len(_modes(settings)) or before)
