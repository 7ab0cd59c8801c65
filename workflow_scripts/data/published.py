"""Encoder folders as published: reasons to refuse one, and settings that only sentence-transformers applies.

Folders are not trusted: no path leads out of them, none of their code is run, no pickle is read. The checks read JSON
files only, so an unsuitable folder is refused before the first job.
"""

import json
import math
import re
import shutil
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

from workflow_scripts.errors import DataError

WEIGHTS, SHARDS = "model.safetensors", "model.safetensors.index.json"
CONFIG, MODULES, PROMPTS = "config.json", "modules.json", "config_sentence_transformers.json"
TOKENISER, ADAPTER = "tokenizer.json", "adapter_config.json"
ALONE = "readout as_published alone"
"""The readout that applies the modules and prompts published with an encoder, for messages."""
_FAMILIES = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
INPUT_FILES = tuple(f"sentence_{family}_config.json" for family in _FAMILIES)
"""Possible names of the file with the encoder's input settings; sentence-transformers reads the first that exists."""
_INPUT_SETTINGS = (
    "do_lower_case",
    *(f"{what}_{suffix}" for what in ("config", "model", "tokenizer") for suffix in ("args", "kwargs")),
    "processor_kwargs",
    "processing_kwargs",
    "query_expansion",
)
"""Input settings that change token ids or states, in addition to the maximum length."""
FILES = ("*.json", "*.txt", "*.model", "*.jinja", "model*.safetensors")
"""Patterns of the files that loaders read: settings, tokeniser, modules and weights, but no pickles and no code."""
ON_HUB = [*FILES, f"*/{WEIGHTS}"]
"""The same patterns for the Hub, whose ``*`` also matches slashes."""


class Module(BaseModel):
    """An entry of ``modules.json``."""

    model_config = ConfigDict(strict=True)

    type: str
    path: str = Field(pattern=r"^(\w[\w.-]*)?$", description="A folder's name; empty for the root.")

    @property
    def kind(self) -> str:
        """Class name of the module."""
        return self.type.rpartition(".")[2]


_Object = dict[str, Any]
_Modules = Annotated[list[Module], Field(min_length=1)]


def _read(file: Path, kind: Any = _Object) -> Any:
    """Contents of a JSON file; an empty object if there is no such file.

    Raises:
        DataError: if it is damaged, or its contents are not of the type ``kind``.
    """
    try:
        return TypeAdapter(kind).validate_json(file.read_bytes()) if file.is_file() else {}
    except ValidationError as error:
        first = error.errors()[0]
        place = "".join(f"{part}: " for part in first["loc"])
        raise DataError(f"{file}: {place}{first['msg']}. Get the model again.") from error


def published_modules(folder: Path) -> list[Module]:
    """Modules of a folder in order; none if sentence-transformers did not save it.

    Raises:
        DataError: if the file is not a list of modules, or a path leads out of the folder.
    """
    return [*_read(folder / MODULES, _Modules)]


def encoder_folder(folder: Path) -> Path:
    """The folder of the first module, which holds the encoder."""
    return folder / next((module.path for module in published_modules(folder)), "")


def files_of(folder: Path) -> list[str]:
    """Names of the files to copy from an encoder's folder and the folders of its modules.

    Raises:
        DataError: if the path of a module leads out of the folder.
    """
    from workflow_scripts.provenance.artefacts import RECORD_FILE  # slow to import

    places = {folder, *(folder / module.path for module in published_modules(folder))}
    files = (file for place in places for file in place.glob("*") if file.is_file())
    return sorted(
        file.relative_to(folder).as_posix()
        for file in files
        if file.name != RECORD_FILE and any(fnmatch(file.name, pattern) for pattern in FILES)
    )


def copy_files(origin: Path, folder: Path, files: Iterable[str]) -> None:
    """Copy files of an encoder's folder into another."""
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(origin / file, folder / file)


def longest_input(folder: Path) -> int | None:
    """Maximum input length of a published encoder in tokens (``max_seq_length``); None if its folder gives none."""
    length: int | None = input_settings(folder)[1].get("max_seq_length")
    return length


def input_settings(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """The file with the encoder's input settings and its content, which is empty if the file does not exist."""
    files = [encoder_folder(folder) / name for name in INPUT_FILES]
    file = next((file for file in files if file.is_file()), files[0])
    return file, _read(file)


def unreadable(folder: Path, what: str, error: Exception) -> DataError:
    """A one-line error for a library's exception while it reads a model folder."""
    reason = (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")
    return DataError(f"{folder}: no {what} can be loaded: {reason}. Get the model again.")


def refusals(folder: Path) -> Iterator[str]:
    """Reasons why a folder cannot be used, a line each."""
    try:
        yield from _foreign_modules(folder)
        yield from _unusable_weights(encoder_folder(folder))
        yield from _unusable_tokens(folder)
        _read(folder / PROMPTS)
    except DataError as error:
        yield str(error)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        yield f"{folder}: a JSON file has another form than loaders expect ({error}). Get the model again."


def _foreign_modules(folder: Path) -> Iterator[str]:
    for number, module in enumerate(published_modules(folder)):
        if module.type.partition(".")[0] != "sentence_transformers":
            problem = (
                f"'{module.type}' is code of the folder, which is never run. Choose an encoder without it."
            )
            yield f"{folder / MODULES}: {problem}"
        elif number == 0 and module.kind != "Transformer":
            problem = f"'{module.kind}' is the first module, which is not supported. Choose an encoder of Transformers."
            yield f"{folder / MODULES}: {problem}"


def _unusable_weights(place: Path) -> Iterator[str]:
    config, shards = _read(place / CONFIG), _read(place / SHARDS).get("weight_map", {})
    if (place / CONFIG).exists() and not {"model_type", "auto_map"} & {*config}:
        yield f"{place / CONFIG}: no model_type. Get the model again."
    if config.get("auto_map"):
        from transformers import CONFIG_MAPPING  # slow to import

        if (name := config.get("model_type", "an unnamed model")) not in CONFIG_MAPPING:
            problem = f"'{name}' is code of the folder (trust_remote_code), which is never run"
            yield f"{place / CONFIG}: {problem}, and Transformers has no such model. Choose another encoder."
    if quantised := config.get("quantization_config"):
        problem = f"weights are quantised ({quantised.get('quant_method', 'method not named')})"
        yield f"{place / CONFIG}: quantization_config: {problem}. Choose the encoder in float32 or half precision."
    if (place / ADAPTER).exists():
        base = _read(place / ADAPTER).get("base_model_name_or_path")
        problem = f"an adapter of '{base}', which is not applied"
        advice = "Merge it into the weights (merge_and_unload of peft) and remove its files."
        yield f"{place / ADAPTER}: {problem}. {advice}"
    for name in sorted({*shards.values()}):
        if not re.fullmatch(r"model[\w.-]*\.safetensors", name):
            yield f"{place / SHARDS}: '{name}' is not a name of a shard (model-*.safetensors). Get the model again."
        elif not (place / name).is_file() and not (place / WEIGHTS).is_file():
            yield f"{place / SHARDS}: it names '{name}', which does not exist. Get the model again."


def _unusable_tokens(folder: Path) -> Iterator[str]:
    """Findings about tokenisers outside the folder, and tokens without a row in the embedding matrix."""
    (file, settings), place = input_settings(folder), encoder_folder(folder)
    if not isinstance(longest := settings.get("max_seq_length"), int | None):
        yield f"{file}: max_seq_length: '{longest}' is not a number of tokens. Get the model again."
    if elsewhere := settings.get("tokenizer_name_or_path"):
        problem = f"tokenizer_name_or_path: '{elsewhere}', which is outside the folder"
        yield f"{file}: {problem}. Put the tokeniser's files into the folder."
    ids, rows = _vocabulary(place), _read(place / CONFIG).get("vocab_size", math.inf)
    token = max(ids, key=lambda token: ids[token], default="")
    if ids and ids[token] >= rows:
        problem = f"the tokeniser's token '{token}' has id {ids[token]}"
        more = f"the embedding matrix has {rows} rows (vocab_size of {CONFIG})"
        yield f"{place}: {problem}, and {more}. Enlarge the matrix (resize_token_embeddings), or remove the token."


def _vocabulary(place: Path) -> dict[str, int]:
    """Tokens and their ids, from the tokeniser's files."""
    tokeniser, words = _read(place / TOKENISER), place / "vocab.txt"
    ids: dict[str, int] = _read(place / "vocab.json") | _read(place / "added_tokens.json")
    if tokeniser:
        vocab = tokeniser.get("model", {}).get("vocab", {})
        named = vocab if isinstance(vocab, dict) else {word: number for number, (word, _) in enumerate(vocab)}
        ids |= named | {added["content"]: added["id"] for added in tokeniser.get("added_tokens", ())}
    elif words.is_file():
        ids |= {word: number for number, word in enumerate(words.read_text("utf-8").splitlines())}
    added = _read(place / "tokenizer_config.json").get("added_tokens_decoder", {})
    return ids | {token["content"]: int(number) for number, token in added.items()}


def applied_as_published(folder: Path) -> Iterator[str]:
    """Settings that change token ids or states and that only sentence-transformers applies, a line each."""
    file, settings = input_settings(folder)
    for name in _INPUT_SETTINGS:
        if value := settings.get(name):
            yield f"{file}: {name}: {json.dumps(value)}"
    if "message" in settings.get("modality_config", {}):
        yield f"{file}: modality_config: a chat template around texts"
    config, place = _read(encoder_folder(folder) / CONFIG), encoder_folder(folder) / CONFIG
    if config.get("is_encoder_decoder") or "t5" in (config.get("model_type") or ""):
        yield f"{place}: {config['model_type']}, an encoder with a decoder"


def published_labels(folder: Path) -> Iterator[str]:
    """A label for each published module or prompt that changes the encoder's vectors."""
    for module in published_modules(folder)[1:]:
        if module.kind not in ("Pooling", "Normalize"):  # Normalize does not change cosines
            yield f"the encoder was published with {module.kind} ({module.path}), applied by {ALONE}"
    if prompts := [name for name, text in (_read(folder / PROMPTS).get("prompts") or {}).items() if text]:
        yield f"the encoder was published with prompts ({', '.join(sorted(prompts))}), applied by {ALONE}"
