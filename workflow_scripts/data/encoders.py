"""Encoders from an ordered list of sources, as ``sources`` has it for datasets."""

import shutil
from collections.abc import Collection, Iterable, Iterator
from pathlib import Path
from typing import cast

from workflow_scripts.data import published
from workflow_scripts.data.parts import folder_in
from workflow_scripts.data.published import WEIGHTS
from workflow_scripts.data.sources import first_of, folder_of, label_of
from workflow_scripts.errors import DataError, MissingError
from workflow_scripts.provenance.record import Input, sha256_of
from workflow_scripts.settings.encoders import EncoderSource, Fetch, HubEncoder, SplitEncoder

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
published for, but no pickles and no code. Shards, and modules with their prompts, come on top (``files_of``)."""


def locate(name: str, block: Fetch, data_root: Path | None) -> tuple[Path, dict[str, Input]]:
    """Find the encoder in the first available source and check its files.

    Returns:
        Its folder, which may lie in an archive, and the origin of each file that is taken, by its name.

    Raises:
        DataError: if no source is available, or a file is not the pinned one.
    """

    def find(source: EncoderSource) -> tuple[Path, dict[str, Input]]:
        label = label_of(source)
        if isinstance(source, SplitEncoder):
            # It has all of a Path's methods that are called here and in ``published``.
            folder = cast(Path, folder_in(_parts_of(source, data_root), source.archive, source.path))
        else:
            folder = folder_of(source, data_root, "model", [*FILES, *published.ON_HUB])
            folder = folder if isinstance(source, HubEncoder) else folder / source.path
        label += "" if isinstance(source, HubEncoder) else f"{source.path}/"
        hashes = _checked(source, folder)
        return folder, {file: Input(path=f"{label}{file}", sha256=sha) for file, sha in hashes.items()}

    return first_of(f"encoders.{name}", block.sources, find, "Provide one of them.")


def files_of(folder: Path, pins: Collection[str] | None = None) -> list[str]:
    """The files to take of an encoder's folder; modules and prompts only where they are pinned, or nothing is.

    Raises:
        DataError: if a name in one of them leads out of the folder.
    """
    more = published.more_files(folder)
    if pins is not None and published.MODULES not in pins:
        more = [file for file in more if file in pins or file.startswith("model")]
    return [file for file in (*FILES, *more) if (folder / file).exists()]


def copy_files(origin: Path, folder: Path, files: Iterable[str]) -> None:
    """Copy weights, configuration, tokeniser, and what was published behind them."""
    for file in files:
        (folder / file).parent.mkdir(exist_ok=True)
        with (origin / file).open("rb") as read, (folder / file).open("wb") as written:
            shutil.copyfileobj(read, written, 1 << 20)


def _parts_of(source: SplitEncoder, data_root: Path | None) -> list[Path]:
    """Files that are there.

    Raises:
        MissingError: if one is not.
    """
    parts = [folder_of(part, data_root, "model", []) / part.path for part in source.parts]
    if missing := next((part for part in parts if not part.is_file()), None):
        raise MissingError(f"{missing} does not exist")
    return parts


def not_applied(origin: Path) -> Iterator[str]:
    """A label for each module or prompt with which a published folder makes other vectors than its encoder alone.

    Raises:
        DataError: if it runs code of its own, or another class than Transformers' encoders.
    """
    if found := next(published.refusals(origin), None):
        raise DataError(found)
    for module in published.modules_of(origin)[1:]:
        if module.kind not in ("Pooling", "Normalize"):  # vectors are compared by their cosine
            yield f"the encoder was published with {module.kind} ({module.path}), applied by {published.ALONE}"
    if prompts := [name for name, text in published.read_published(origin).prompts if text]:
        yield f"the encoder was published with prompts ({', '.join(sorted(prompts))}), applied by {published.ALONE}"


def _checked(source: EncoderSource, folder: Path) -> dict[str, str]:
    """Hash of each file that is taken; a tokeniser of other ids spoils an encoder as other weights do."""
    if not folder.is_dir():
        raise MissingError(f"{folder} does not exist")
    found = {file: sha256_of(folder / file) for file in files_of(folder, source.sha256)}
    if WEIGHTS not in found and published.SHARDS not in found:
        raise DataError(f"{folder}: no {WEIGHTS}. Convert the model to safetensors.")
    pinned = found if source.sha256 is None else source.sha256
    for file in sorted({*found, *pinned}):
        was, now = pinned.get(file, "nothing"), found.get(file, "missing")
        if was != now:
            advice = "Get the model again, or pin this one."
            raise DataError(f"{folder / file}: sha256 {now}; pinned {was}. {advice}")
    return found
