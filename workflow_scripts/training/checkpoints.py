"""Checkpoints that are either complete or absent, and belong to exactly one training.

A checkpoint is a folder ``step00000100`` with safetensors and a manifest, ``COMPLETE.json``. The manifest is written
last; it contains the sha256 of every other file, the fingerprint of the training and its own checksum. Folders with an
invalid manifest, or with another fingerprint (other settings, data, code or seed), are ignored.
"""

import hashlib
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import load_file, save_file
from torch import Tensor

from workflow_scripts.config import Settings
from workflow_scripts.provenance.artefacts import atomic
from workflow_scripts.provenance.record import sha256_of

MANIFEST = "COMPLETE.json"
Tensors = dict[str, Tensor]


class Manifest(Settings):
    """The files of a complete checkpoint."""

    fingerprint: str
    """Hash of everything that the training depends on."""
    files: dict[str, str]
    """Name of each other file to its sha256."""
    checksum: str = ""

    def checksummed(self) -> "Manifest":
        """The manifest with the hash of its other entries as its checksum."""
        content = self.model_copy(update={"checksum": ""}).model_dump_json()
        return self.model_copy(update={"checksum": hashlib.sha256(content.encode()).hexdigest()})


class Checkpoint(NamedTuple):
    """The state after ``step``: named groups of tensors in host memory (``in_host_memory``), one file each."""

    step: int
    groups: dict[str, Tensors]


def save_checkpoint(folder: Path, fingerprint: str, checkpoint: Checkpoint) -> None:
    """Write a checkpoint below ``folder``, then remove all others there."""
    own = folder / f"step{checkpoint.step:08d}"
    shutil.rmtree(own, ignore_errors=True)  # an incomplete checkpoint of the same step
    own.mkdir(parents=True)
    for name, tensors in checkpoint.groups.items():
        with atomic(own / f"{name}.safetensors") as temporary:
            save_file(tensors, temporary)
    hashes = {path.name: sha256_of(path) for path in sorted(own.iterdir())}
    manifest = Manifest(fingerprint=fingerprint, files=hashes).checksummed()
    with atomic(own / MANIFEST) as temporary:
        temporary.write_text(manifest.model_dump_json(), "utf-8")
    for other in folder.glob("step*"):
        if other != own:
            shutil.rmtree(other, ignore_errors=True)


def in_host_memory(tensors: Mapping[str, Tensor]) -> Tensors:
    """Copies on the host that later steps do not change, and that share no storage, as safetensors requires."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def load_checkpoint(folder: Path, fingerprint: str) -> Checkpoint | None:
    """The newest complete checkpoint of this training; None if there is none."""
    for own in sorted(folder.glob("step*"), reverse=True):
        manifest = _intact_manifest(own)
        if manifest and manifest.fingerprint == fingerprint:
            groups = {Path(name).stem: load_file(own / name) for name in manifest.files}
            return Checkpoint(int(own.name.removeprefix("step")), groups)
    return None


def _intact_manifest(folder: Path) -> Manifest | None:
    """The manifest of a checkpoint; None unless it is valid, and every file is as it says."""
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_text("utf-8"))
        files = {name: sha256_of(folder / name) for name in manifest.files}
    except (OSError, ValueError):  # the writer was killed, or the file was damaged later
        return None
    return manifest if manifest == manifest.checksummed() and manifest.files == files else None
