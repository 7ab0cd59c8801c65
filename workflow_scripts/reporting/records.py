"""What records tell reporting: which run a file is of, and what made it."""

from pathlib import Path

from workflow_scripts.artefacts import read_record
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import Record


def record_of(path: Path) -> Record:
    """The record that the artefact at ``path`` carries.

    Raises:
        DataError: if it carries none.
    """
    record = read_record(path)
    if record is None:
        raise DataError(f"{path}: no record, so not made by this pipeline. Delete it and rerun.")
    return record


def wildcard(path: Path, name: str) -> str:
    """The value of one wildcard of the job that made ``path``.

    Raises:
        DataError: if that job had no such wildcard.
    """
    record = record_of(path)
    if name not in record.wildcards:
        raise DataError(f"{path}: made by {record.rule}, which has no {name}. Correct the rule's input.")
    return record.wildcards[name]
