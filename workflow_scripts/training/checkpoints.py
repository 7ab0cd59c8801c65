"""Checkpoints that are either complete or absent, and belong to exactly one training.

A checkpoint is a folder ``step00000100`` with safetensors and ``COMPLETE.json``, which is written last: the fingerprint
of the training, and the sha256 of every other file. A folder with different files, or with another fingerprint (other
settings, data, code or seed), is ignored. So a change of any bit of a checkpoint is noticed.
"""

import json
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from safetensors.torch import load_file, save_file
from torch import Tensor

from workflow_scripts.provenance.artefacts import atomic
from workflow_scripts.provenance.record import sha256_of

MANIFEST = "COMPLETE.json"
Tensors = dict[str, Tensor]


class Checkpoint(NamedTuple):
    """State after ``step``: named groups of tensors in host memory (``in_host_memory``), one file each."""

    step: int
    groups: dict[str, Tensors]


def save_checkpoint(folder: Path, fingerprint: str, checkpoint: Checkpoint) -> None:
    """Write a checkpoint below ``folder``, then remove all others there."""
    step_folder = folder / f"step{checkpoint.step:08d}"
    shutil.rmtree(step_folder, ignore_errors=True)  # an incomplete checkpoint of the same step
    step_folder.mkdir(parents=True)
    for name, tensors in checkpoint.groups.items():
        with atomic(step_folder / f"{name}.safetensors") as temporary:
            save_file(tensors, temporary)
    with atomic(step_folder / MANIFEST) as temporary:
        temporary.write_text(json.dumps(_contents(step_folder, fingerprint)), "utf-8")
    for other in folder.glob("step*"):
        if other != step_folder:
            shutil.rmtree(other, ignore_errors=True)


def in_host_memory(tensors: Mapping[str, Tensor]) -> Tensors:
    """Return copies on the host, which later steps do not change, without shared storage, as safetensors requires."""
    return {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}


def load_checkpoint(folder: Path, fingerprint: str) -> Checkpoint | None:
    """Return the newest complete checkpoint of this training; None without one."""
    for step_folder in sorted(folder.glob("step*"), reverse=True):
        with suppress(OSError, ValueError):  # the writer was killed, or the file was damaged later
            if json.loads((step_folder / MANIFEST).read_text("utf-8")) == _contents(step_folder, fingerprint):
                groups = {file.stem: load_file(file) for file in step_folder.glob("*.safetensors")}
                return Checkpoint(int(step_folder.name.removeprefix("step")), groups)
    return None


def _contents(folder: Path, fingerprint: str) -> dict[str, Any]:
    """Return the contents of a folder's ``COMPLETE.json``: the training's fingerprint, and the hash of each file."""
    files = {file.name: sha256_of(file) for file in sorted(folder.glob("*.safetensors"))}
    return {"fingerprint": fingerprint, "files": files}
