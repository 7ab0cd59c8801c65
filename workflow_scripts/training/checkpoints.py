"""Checkpoints that are whole or not there, and belong to exactly one training.

A checkpoint is a folder ``step00000100`` with safetensors and one ``COMPLETE.json``, written last, that
holds the sha256 of every other file, the fingerprint of the training and a seal of its own. A folder
whose manifest does not hold is passed over; so is one with another fingerprint (other settings, data,
code or seed).
"""

import hashlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import load_file, save_file
from torch import Tensor

from workflow_scripts.artefacts import atomic
from workflow_scripts.config import Slice
from workflow_scripts.provenance import sha256_of

MANIFEST = "COMPLETE.json"
Tensors = dict[str, Tensor]


class Manifest(Slice):
    """What makes a folder a checkpoint."""

    fingerprint: str
    step: int
    files: dict[str, str]
    seal: str = ""

    def sealed(self) -> "Manifest":
        """The manifest with the hash of all else in it as its seal."""
        content = self.model_copy(update={"seal": ""}).model_dump_json()
        return self.model_copy(update={"seal": hashlib.sha256(content.encode()).hexdigest()})


class Checkpoint(NamedTuple):
    """State after ``step``: named groups of tensors, each a file."""

    step: int
    groups: dict[str, Tensors]


def save_checkpoint(folder: Path, fingerprint: str, checkpoint: Checkpoint) -> None:
    """Write ``checkpoint`` below ``folder``, then remove every other one there."""
    place = folder / f"step{checkpoint.step:08d}"
    shutil.rmtree(place, ignore_errors=True)  # a torn one of the same step
    place.mkdir(parents=True)
    for name, tensors in checkpoint.groups.items():
        with atomic(place / f"{name}.safetensors") as temporary:
            save_file(_independent(tensors), temporary)
    hashes = {path.name: sha256_of(path) for path in sorted(place.iterdir())}
    manifest = Manifest(fingerprint=fingerprint, step=checkpoint.step, files=hashes).sealed()
    with atomic(place / MANIFEST) as temporary:
        temporary.write_text(manifest.model_dump_json(), "utf-8")
    for other in folder.glob("step*"):
        if other != place:
            shutil.rmtree(other, ignore_errors=True)


def _independent(tensors: Mapping[str, Tensor]) -> Tensors:
    """Copies in host memory that share no storage, as safetensors wants them."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def load_checkpoint(folder: Path, fingerprint: str) -> Checkpoint | None:
    """The newest whole checkpoint of this very training; None where there is none."""
    return next(_whole(folder, fingerprint), None)


def _whole(folder: Path, fingerprint: str) -> Iterator[Checkpoint]:
    for place in sorted(folder.glob("step*"), reverse=True):
        manifest = _manifest(place)
        if manifest is None or manifest.fingerprint != fingerprint:
            continue
        files = {name: place / name for name in manifest.files}
        if all(path.is_file() and sha256_of(path) == manifest.files[name] for name, path in files.items()):
            yield Checkpoint(manifest.step, {path.stem: load_file(path) for path in files.values()})


def _manifest(place: Path) -> Manifest | None:
    try:
        found = Manifest.model_validate_json((place / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):  # killed before or while it was written, or damaged since
        return None
    return found if found == found.sealed() else None
