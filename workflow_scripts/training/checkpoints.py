"""Checkpoints that are whole or not there, and belong to exactly one training.

A checkpoint is a folder ``step00000100`` with safetensors and one ``COMPLETE.json``, written last, that
holds the sha256 of every other file and the fingerprint of the training. A folder whose manifest does
not hold is passed over; so is one with another fingerprint (other settings, data, code or seed).
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from safetensors.torch import load_file, save_file
from torch import Tensor

from workflow_scripts.artefacts import atomic
from workflow_scripts.provenance import sha256_of

MANIFEST = "COMPLETE.json"
Tensors = dict[str, Tensor]


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
    manifest = {"fingerprint": fingerprint, "step": checkpoint.step, "files": hashes}
    with atomic(place / MANIFEST) as temporary:
        temporary.write_text(json.dumps(manifest, sort_keys=True), "utf-8")
    for other in folder.iterdir():
        if other != place:
            shutil.rmtree(other)


def _independent(tensors: Mapping[str, Tensor]) -> Tensors:
    """Copies in host memory that share no storage, as safetensors wants them."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def load_checkpoint(folder: Path, fingerprint: str) -> Checkpoint | None:
    """The newest whole checkpoint of this very training; None where there is none."""
    return next(_whole(folder, fingerprint), None)


def _whole(folder: Path, fingerprint: str) -> Iterator[Checkpoint]:
    for place in sorted(folder.glob("step*"), reverse=True):
        manifest = _manifest(place)
        if manifest.get("fingerprint") != fingerprint:
            continue
        hashes: dict[str, str] = manifest["files"]
        files = {name: place / name for name in hashes}
        if all(path.is_file() and sha256_of(path) == hashes[name] for name, path in files.items()):
            groups = {path.stem: load_file(path) for path in files.values()}
            yield Checkpoint(int(manifest["step"]), groups)


def _manifest(place: Path) -> dict[str, object] | dict[str, dict[str, str]]:
    try:
        found = json.loads((place / MANIFEST).read_text("utf-8"))
    except (FileNotFoundError, ValueError):  # killed before or while it was written
        return {}
    return found if isinstance(found, dict) else {}
