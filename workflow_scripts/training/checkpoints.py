"""Checkpoints that are either complete or absent, and belong to exactly one training.

A checkpoint is a folder ``step00000100`` with safetensors and a manifest, ``COMPLETE.json``, which is written last and
holds the sha256 of every other file, the fingerprint of the training and a checksum of its own. A folder with an
invalid manifest is ignored; so is one with another fingerprint (other settings, data, code or seed).
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
    """Write ``checkpoint`` below ``folder``, then remove all others there."""
    place = folder / f"step{checkpoint.step:08d}"
    shutil.rmtree(place, ignore_errors=True)  # an incomplete one of the same step
    place.mkdir(parents=True)
    for name, tensors in checkpoint.groups.items():
        with atomic(place / f"{name}.safetensors") as temporary:
            save_file(tensors, temporary)
    hashes = {path.name: sha256_of(path) for path in sorted(place.iterdir())}
    manifest = Manifest(fingerprint=fingerprint, files=hashes).checksummed()
    with atomic(place / MANIFEST) as temporary:
        temporary.write_text(manifest.model_dump_json(), "utf-8")
    for other in folder.glob("step*"):
        if other != place:
            shutil.rmtree(other, ignore_errors=True)


def in_host_memory(tensors: Mapping[str, Tensor]) -> Tensors:
    """Copies that later steps leave alone, and that do not share storage, as safetensors requires."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def load_checkpoint(folder: Path, fingerprint: str) -> Checkpoint | None:
    """The newest complete checkpoint of this training; None if there is none."""
    for place in sorted(folder.glob("step*"), reverse=True):
        manifest = read_manifest(place)
        if manifest and manifest.fingerprint == fingerprint and not damaged_file(place, manifest):
            files = [place / name for name in manifest.files]
            step = int(place.name.removeprefix("step"))
            return Checkpoint(step, {path.stem: load_file(path) for path in files})
    return None
