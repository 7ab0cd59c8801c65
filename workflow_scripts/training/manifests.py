"""The manifest of a checkpoint's files; this module does not import PyTorch."""

import hashlib
from pathlib import Path

from workflow_scripts.config import Settings
from workflow_scripts.provenance.record import sha256_of

MANIFEST = "COMPLETE.json"


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


def read_manifest(folder: Path) -> Manifest | None:
    """The manifest of a checkpoint; None if the folder has no valid one."""
    try:
        manifest = Manifest.model_validate_json((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):  # the writer was killed, or the file was damaged later
        return None
    return manifest if manifest == manifest.checksummed() else None


def damaged_file(folder: Path, manifest: Manifest) -> str | None:
    """The first file of a checkpoint that is missing or differs from its manifest; None if all are intact."""
    for name, recorded in manifest.files.items():
        if not (folder / name).is_file() or sha256_of(folder / name) != recorded:
            return name
    return None
