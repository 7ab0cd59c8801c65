"""Encoder folders as published: their files and modules, and settings that only sentence-transformers applies.

Folders are not trusted: paths must stay inside, their code is never run, and pickles are never read.
"""

import json
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
ONLY_AS_PUBLISHED = "only_as_published.json"
"""File of a fetched encoder with the reason why its vectors are correct only with the published modules."""
ALONE = "readout as_published only"
"""The only readout that applies the modules and prompts published with an encoder, for messages."""
_FAMILIES = ("bert", "roberta", "distilbert", "camembert", "albert", "xlm-roberta", "xlnet")
INPUT_FILES = tuple(f"sentence_{family}_config.json" for family in _FAMILIES)
"""Possible names of the file of input settings; sentence-transformers reads the first that exists."""
_INPUT_SETTINGS = (
    "do_lower_case",
    *(f"{what}_{suffix}" for what in ("config", "model", "tokenizer") for suffix in ("args", "kwargs")),
    "processor_kwargs",
    "processing_kwargs",
    "query_expansion",
)
"""Input settings that change token ids or states, in addition to the maximum length."""
FILES = (
    "*.json",
    "*.txt",
    "*.model",
    "*.codes",
    "*.tokenizer",
    "*.spm",
    "*.tiktoken",
    "*.jinja",
    "model*.safetensors",
)
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
        """Return the class name of the module."""
        return self.type.rpartition(".")[2]


_Modules = Annotated[list[Module], Field(min_length=1)]


def read_json(file: Path, kind: Any = dict[str, Any]) -> Any:
    """Return the contents of a JSON file; an empty object if the file does not exist.

    Raises:
        DataError: if the file is damaged, or its contents are not of the type ``kind``.
    """
    try:
        return TypeAdapter(kind).validate_json(file.read_bytes()) if file.is_file() else {}
    except ValidationError as error:
        first = error.errors()[0]
        key = "".join(f"{part}: " for part in first["loc"])
        raise DataError(f"{file}: {key}{first['msg']}. Obtain the model again.") from error


def published_modules(folder: Path) -> list[Module]:
    """Return the modules of a folder in order; empty if sentence-transformers did not save it.

    Raises:
        DataError: if the file is not a list of modules, or a path leads out of the folder.
    """
    return [*read_json(folder / MODULES, _Modules)]


def encoder_folder(folder: Path) -> Path:
    """Return the folder of the first module, which contains the encoder."""
    return folder / next((module.path for module in published_modules(folder)), "")


def files_of(folder: Path) -> list[str]:
    """Return the names of the files to copy from an encoder's folder and the folders of its modules.

    Raises:
        DataError: if the path of a module, or a link, leads out of the folder.
    """
    from workflow_scripts.provenance.artefacts import RECORD_FILE  # slow to import

    folders = {folder, *(folder / module.path for module in published_modules(folder))}
    files = (file for path in folders for file in path.glob("*") if file.is_file())
    names = sorted(
        file.relative_to(folder).as_posix()
        for file in files
        if file.name != RECORD_FILE and any(fnmatch(file.name, pattern) for pattern in FILES)
    )
    check_inside(folder, names)
    return names


def check_inside(folder: Path, files: Iterable[str]) -> None:
    """Raise DataError if a file of an encoder's folder is a link that leads out of it.

    In the cache of the Hub's client, the files of a commit are links to its folder ``blobs``, which are accepted.

    Raises:
        DataError: with the first such file and its target.
    """
    homes = [home := folder.resolve()]
    if home.parent.name == "snapshots":
        homes.append(home.parents[1] / "blobs")
    for file in files:
        target = (folder / file).resolve()
        if not any(target.is_relative_to(home) for home in homes):
            problem = f"a link to {target}, out of the encoder's folder"
            raise DataError(f"{folder / file}: {problem}. Put the file itself there.")


def copy_files(origin: Path, folder: Path, files: Iterable[str]) -> None:
    """Copy files of an encoder's folder into another."""
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(origin / file, folder / file)


def longest_input(folder: Path) -> int | None:
    """Return the maximum input length of a published encoder in tokens (``max_seq_length``); None if unspecified."""
    length: int | None = input_settings(folder)[1].get("max_seq_length")
    return length


def input_settings(folder: Path) -> tuple[Path, Mapping[str, Any]]:
    """Return the file of the encoder's input settings and its content, which is empty if the file does not exist."""
    files = [encoder_folder(folder) / name for name in INPUT_FILES]
    file = next((file for file in files if file.is_file()), files[0])
    return file, read_json(file)


def unreadable(folder: Path, what: str, error: Exception) -> DataError:
    """Return a one-line error for a library's exception while it reads a model folder."""
    return DataError(f"{folder}: no {what} can be loaded: {reason_of(error)}. Obtain the model again.")


def reason_of(error: Exception) -> str:
    """Return the first line of a library's error, or the content of the report to which it refers."""
    if "ignore_mismatched_sizes" in str(error):
        return "shapes of weights differ from the configuration, as with pruned heads"
    return (str(error).splitlines() or [type(error).__name__])[0].rstrip(".")


def applied_as_published(folder: Path) -> Iterator[str]:
    """Yield a line for each setting that changes token ids or states and that only sentence-transformers applies."""
    file, settings = input_settings(folder)
    for name in _INPUT_SETTINGS:
        if value := settings.get(name):
            yield f"{file}: {name}: {json.dumps(value)}"
    if "message" in settings.get("modality_config", {}):
        yield f"{file}: modality_config: a chat template around texts"
    config, config_file = read_json(encoder_folder(folder) / CONFIG), encoder_folder(folder) / CONFIG
    if config.get("is_encoder_decoder") or "t5" in (config.get("model_type") or ""):
        yield f"{config_file}: {config['model_type']}, an encoder with a decoder"


def published_labels(folder: Path) -> Iterator[str]:
    """Yield a label for each published module or prompt that changes the encoder's vectors."""
    for module in published_modules(folder)[1:]:
        if module.kind not in ("Pooling", "Normalize"):  # Normalize does not change cosines
            yield f"the encoder was published with {module.kind} ({module.path}), applied by {ALONE}"
    if prompts := [name for name, text in (read_json(folder / PROMPTS).get("prompts") or {}).items() if text]:
        yield f"the encoder was published with prompts ({', '.join(sorted(prompts))}), applied by {ALONE}"
