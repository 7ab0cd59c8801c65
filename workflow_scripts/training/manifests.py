"""What makes a folder a checkpoint: a manifest of its files, read without PyTorch."""

import hashlib
from pathlib import Path

from workflow_scripts.config import Settings
from workflow_scripts.provenance.record import sha256_of

MANIFEST = "COMPLETE.json"


class Manifest(Settings):
    """What makes a folder a checkpoint."""

    fingerprint: str
    files: dict[str, str]
    """Name of each other file to its sha256."""
    checksum: str = ""

    def checksummed(self) -> "Manifest":
        """The manifest with the hash of its other entries as its checksum."""
        content = self.model_copy(update={"checksum": ""}).model_dump_json()
        return self.model_copy(update={"checksum": hashlib.sha256(content.encode()).hexdigest()})


def read_manifest(place: Path) -> Manifest | None:
    """The manifest of a checkpoint; None where the folder has no valid one."""
    try:
        found = Manifest.model_validate_json((place / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):  # killed before or while it was written, or damaged since
        return None
    return found if found == found.checksummed() else None


def damaged_file(place: Path, manifest: Manifest) -> str | None:
    """The first file of a checkpoint that is missing or not as its manifest says; None where all are."""
    for name, recorded in manifest.files.items():
        if not (place / name).is_file() or sha256_of(place / name) != recorded:
            return name
    return None
