"""Checkpoints that are either complete or absent, and belong to exactly one training.

A checkpoint is a folder ``step00000100`` with safetensors and a manifest, ``COMPLETE.json``. The manifest is written
last; it contains the sha256 of every other file, the fingerprint of the training and its own checksum. Folders with an
invalid manifest, or with another fingerprint (other settings, data, code or seed), are ignored.
"""

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import load_file, save_file
from torch import Tensor

from workflow_scripts.provenance.artefacts import atomic
from workflow_scripts.provenance.record import sha256_of
from workflow_scripts.training.manifests import MANIFEST, Manifest, damaged_file, read_manifest

Tensors = dict[str, Tensor]


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
        manifest = read_manifest(own)
        if manifest and manifest.fingerprint == fingerprint and not damaged_file(own, manifest):
            groups = {Path(name).stem: load_file(own / name) for name in manifest.files}
            return Checkpoint(int(own.name.removeprefix("step")), groups)
    return None
