"""What a lock is about: the artefacts of a tree, their contents without records, and the machine they are on."""

import hashlib
import json
import platform
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from workflow_scripts.audit.disk import Inspection, collect, inspect_all
from workflow_scripts.audit.lookup import made_on, name_of
from workflow_scripts.audit.varying import lasting
from workflow_scripts.audit.verify import Verifier
from workflow_scripts.provenance.artefacts import RECORD_FILE, contents_of, identity_of
from workflow_scripts.provenance.origin import processor
from workflow_scripts.provenance.record import Record


class Tree(NamedTuple):
    """The artefacts of some studies."""

    checksums: dict[str, str]
    contents: dict[str, str]
    """Artefact to the hash of what it holds besides its record, and besides what differs from run to run."""
    records: dict[str, Record]
    damaged: list[str]
    missing: list[str]
    """Artefacts that are gone, though others of the same jobs are there."""

    def holds(self, path: str) -> bool:
        """Whether an input is an artefact of this tree; else it is a source, from outside or from ``resources``."""
        return not self.checksums.keys().isdisjoint({path, f"{path}/{RECORD_FILE}"})

    def as_lock(self) -> dict[str, Any]:
        """What a lock file holds."""
        records = list(self.records.values())
        given = [given for record in records for given in record.inputs.values()]
        return {
            "artefacts": self.checksums,
            "contents": self.contents,
            "settings": {name: settings_hash(record.settings) for name, record in self.records.items()},
            "code": {path: sha for record in records for path, sha in record.meaning.items()},
            "commits": sorted(
                {f"{record.origin.commit}{' (dirty)' * record.origin.dirty}" for record in records}
            ),
            "machine": machine(),
            "made_on": {name: made_on(record.origin) for name, record in self.records.items()},
            "packages": {name: version for record in records for name, version in record.packages.items()},
            "sources": {used.path: used.sha256 for used in given if not self.holds(used.path)},
        }


def read_tree(root: Path, studies: Iterable[Path]) -> Tree:
    """Read every artefact of ``studies`` once."""
    studies = list(studies)
    inventory = collect(root, studies)
    inspections = inspect_all(inventory, advance=lambda _bytes: None)
    verifier = Verifier(inventory, inspections, [name_of(study, root) for study in studies])
    found = {
        name: inspection
        for name, inspection in sorted(inspections.items())
        if _stands_alone(name, inspection)
    }
    return Tree(
        checksums={name: str(inspection.checksum) for name, inspection in found.items()},
        contents={name: _contents(root / name, inspection) for name, inspection in found.items()},
        records={name: inspection.record for name, inspection in found.items() if inspection.record},
        damaged=verifier.not_as_written(),
        missing=verifier.missing_outputs(),
    )


def machine() -> dict[str, str]:
    """What of this machine may move the last digits of a number: processor, Python, operating system."""
    return {
        "processor": processor(),
        "python": platform.python_version(),
        "system": platform.system(),
    }


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Hash of the slice of the configuration that a job read."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def _stands_alone(name: str, inspection: Inspection) -> bool:
    return (
        inspection.checksum is not None
        and not inspection.damage
        and (inspection.record is not None or Path(name).name == RECORD_FILE)
    )


def _contents(path: Path, inspection: Inspection) -> str:
    """Hash of what an artefact holds, computed again: what was sealed anew may claim another."""
    if inspection.record is None:  # of another version of this pipeline
        return inspection.identity
    return identity_of(lasting(path, contents_of(path, inspection.record)), ())
