"""Encoders from an ordered list of sources, as ``sources`` has it for datasets."""

from pathlib import Path

from workflow_scripts.data.published import ON_HUB, SHARDS, WEIGHTS, encoder_folder, files_of
from workflow_scripts.data.sources import first_of, folder_of, label_of
from workflow_scripts.errors import DataError, MissingError
from workflow_scripts.provenance.record import Input, sha256_of
from workflow_scripts.settings.encoders import EncoderSource, Fetch, HubEncoder


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


def _checked(source: EncoderSource, folder: Path) -> dict[str, str]:
    """Hash of each file that is taken: of a pinned source those that it pins."""
    if not folder.is_dir():
        raise MissingError(f"{folder} does not exist")
    files = (folder / file for file in source.sha256 or files_of(folder))
    found = {file.relative_to(folder).as_posix(): sha256_of(file) for file in files if file.is_file()}
    if not any(encoder_folder(folder) / name in map(folder.joinpath, found) for name in (WEIGHTS, SHARDS)):
        raise DataError(f"{folder}: no {WEIGHTS}. Convert the model to safetensors.")
    for file, pinned in (source.sha256 or {}).items():
        if (now := found.get(file, "missing")) != pinned:
            advice = "Get the model again, or pin this one."
            raise DataError(f"{folder / file}: sha256 {now}; pinned {pinned}. {advice}")
    return found
