"""Encoders from an ordered list of sources, as ``sources`` has it for datasets."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from workflow_scripts.data.sources import first_of, folder_of, label_of
from workflow_scripts.errors import DataError, MissingError
from workflow_scripts.provenance.record import Input, sha256_of
from workflow_scripts.settings.encoders import EncoderSource, Fetch, HubEncoder

WEIGHTS = "model.safetensors"
FILES = (
    WEIGHTS,
    "config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "special_tokens_map.json",
    "vocab.txt",
    "vocab.json",
    "merges.txt",
    "sentence_bert_config.json",
)
"""The files that are copied: weights in safetensors, configuration, tokeniser and the longest input that it was
published for, but no pickles and no code."""
_MODULES, _PROMPTS = "modules.json", "config_sentence_transformers.json"
_HONOURED = ("Transformer", "Pooling", "Normalize")
"""Modules of sentence-transformers that a readout here stands in for; vectors are compared by their cosine."""


def locate(name: str, block: Fetch, data_root: Path | None) -> tuple[Path, dict[str, Input]]:
    """Find the encoder in the first available source and check its files.

    Returns:
        Its folder, and the origin of each file that is taken, by its name.

    Raises:
        DataError: if no source is available, or a file is not the pinned one.
    """

    def find(source: EncoderSource) -> tuple[Path, dict[str, Input]]:
        folder, label = folder_of(source, data_root, "model", [*FILES, _MODULES, _PROMPTS]), label_of(source)
        if not isinstance(source, HubEncoder):
            folder, label = folder / source.path, f"{label}{source.path}/"
        hashes = _checked(source, folder)
        return folder, {file: Input(path=f"{label}{file}", sha256=sha) for file, sha in hashes.items()}

    return first_of(f"encoders.{name}", block.sources, find, "Provide one of them.")


def copy_files(origin: Path, folder: Path) -> None:
    """Copy weights, configuration and tokeniser."""
    for file in FILES:
        if (origin / file).exists():
            shutil.copyfile(origin / file, folder / file)


def not_applied(origin: Path) -> Iterator[str]:
    """A label for each thing by which its authors' sentence-transformers folder makes other vectors than its encoder.

    Raises:
        DataError: if it runs code of its own, or another class than Transformers' encoders.
    """
    modules = _json(origin / _MODULES) or []
    for number, module in enumerate(modules):
        package, _, kind = module["type"].rpartition(".")
        if package.partition(".")[0] != "sentence_transformers":
            found = f"{origin / _MODULES}: {module['type']} is code of the folder, which is never run"
            raise DataError(f"{found}. Take an encoder without.")
        if number == 0 and kind != "Transformer":
            raise DataError(f"{origin / _MODULES}: {kind} is not supported. Take an encoder of Transformers.")
        if kind not in _HONOURED:
            yield f"the encoder was published with {kind} ({module['path']}), which is not applied"
    if prompts := [
        name for name, text in (_json(origin / _PROMPTS) or {}).get("prompts", {}).items() if text
    ]:
        yield f"the encoder was published with prompts ({', '.join(sorted(prompts))}), which are not applied"


def _json(file: Path) -> Any:
    return json.loads(file.read_text("utf-8")) if file.exists() else None


def _checked(source: EncoderSource, folder: Path) -> dict[str, str]:
    """Hash of each file that is taken; a tokeniser of other ids spoils an encoder as other weights do."""
    if not folder.is_dir():
        raise MissingError(f"{folder} does not exist")
    found = {file: sha256_of(folder / file) for file in FILES if (folder / file).exists()}
    if WEIGHTS not in found:
        raise DataError(f"{folder}: no {WEIGHTS}. Convert the model to safetensors.")
    pinned = found if source.sha256 is None else source.sha256
    for file in sorted({*found, *pinned}):
        was, now = pinned.get(file, "nothing"), found.get(file, "missing")
        if was != now:
            advice = "Get the model again, or pin this one."
            raise DataError(f"{folder / file}: sha256 {now}; pinned {was}. {advice}")
    return found
