"""Encoders from an ordered list of sources, as ``sources`` has it for datasets."""

import shutil
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path

from workflow_scripts.data.published import SHARDS, WEIGHTS, modules_of
from workflow_scripts.data.sources import first_of, folder_of, label_of
from workflow_scripts.errors import DataError, MissingError
from workflow_scripts.provenance.artefacts import RECORD_FILE
from workflow_scripts.provenance.record import Input, sha256_of
from workflow_scripts.settings.encoders import EncoderSource, Fetch, HubEncoder

FILES = ("*.json", "*.txt", "*.model", "*.jinja", "model*.safetensors")
"""Patterns of the files that loaders read: settings, tokeniser, modules and weights, but no pickles and no code."""
ON_HUB = [*FILES, f"*/{WEIGHTS}"]
"""The same for the Hub, whose stars match a folder's name too."""


def locate(name: str, block: Fetch, data_root: Path | None) -> tuple[Path, dict[str, Input]]:
    """Find the encoder in the first available source and check its files.

    Returns:
        Its folder, and the origin of each file that is taken, by its name.

    Raises:
        DataError: if no source is available, or a file is not the pinned one.
    """

    def find(source: EncoderSource) -> tuple[Path, dict[str, Input]]:
        label, folder = label_of(source), folder_of(source, data_root, "model", ON_HUB)
        if not isinstance(source, HubEncoder):
            label, folder = f"{label}{source.path}/", folder / source.path
        hashes = _checked(source, folder)
        return folder, {file: Input(path=f"{label}{file}", sha256=sha) for file, sha in hashes.items()}

    return first_of(f"encoders.{name}", block.sources, find, "Provide one of them.")


def files_of(folder: Path) -> list[str]:
    """Names of the files to take of an encoder's folder and of the folders of its modules.

    Raises:
        DataError: if the path of a module leads out of the folder.
    """
    places = {folder, *(folder / module.path for module in modules_of(folder))}
    files = (file for place in places for file in place.glob("*") if file.is_file())
    return sorted(
        file.relative_to(folder).as_posix()
        for file in files
        if file.name != RECORD_FILE and any(fnmatch(file.name, pattern) for pattern in FILES)
    )


def copy_files(origin: Path, folder: Path, files: Iterable[str]) -> None:
    """Copy files of an encoder's folder."""
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        shutil.copyfile(origin / file, folder / file)


def _checked(source: EncoderSource, folder: Path) -> dict[str, str]:
    """Hash of each file that is taken: of a pinned source those that it pins."""
    if not folder.is_dir():
        raise MissingError(f"{folder} does not exist")
    files = (folder / file for file in source.sha256 or files_of(folder))
    found = {file.relative_to(folder).as_posix(): sha256_of(file) for file in files if file.is_file()}
    if not any(file.endswith((WEIGHTS, SHARDS)) for file in found):
        raise DataError(f"{folder}: no {WEIGHTS}. Convert the model to safetensors.")
    for file, pinned in (source.sha256 or {}).items():
        if (now := found.get(file, "missing")) != pinned:
            advice = "Get the model again, or pin this one."
            raise DataError(f"{folder / file}: sha256 {now}; pinned {pinned}. {advice}")
    return found
