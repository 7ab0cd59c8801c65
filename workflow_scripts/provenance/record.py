"""The record that every artefact carries: the rule, settings, code, data and packages that made it.

A record holds nothing that depends on time or dictionary order, so that the same inputs, settings and code give the
same bytes at the same commit on the same machine. An input is named by what it holds (``artefacts.identity``): whatever
made it, a reader of the same contents makes the same.
"""

import hashlib
import json
from pathlib import Path
from typing import Any

from pydantic import Field

from workflow_scripts.config import Settings
from workflow_scripts.provenance.origin import Origin


class Input(Settings):
    """One file that a job read."""

    path: str = Field(
        description="Relative to the working directory, or package:, hub: or local: and a name."
    )
    sha256: str = Field(
        description="Hash of an artefact's contents and labels, or of the bytes of any other file."
    )


class Record(Settings):
    """What made an artefact."""

    rule: str
    key: str = Field(description="Hash of all that decides the job's result (provenance.key).")
    wildcards: dict[str, str]
    settings: dict[str, Any] = Field(description="The slice of the configuration that the rule read.")
    inputs: dict[str, Input] = Field(description="In the order in which the job was given them.")
    outputs: list[str] = Field(description="All artefacts of the job, so that a missing one is noticed.")
    meaning: dict[str, str] = Field(
        description="Hash of what Python runs of each project file that the job imports and that can decide a result."
    )
    packages: dict[str, str] = Field(
        description="Versions of the packages behind it that can change a number."
    )
    labels: list[str] = Field(description="Substitutions that reach this artefact, its inputs' included.")
    files: dict[str, str] = Field(default={}, description="sha256 of the files of a model folder.")
    origin: Origin = Field(description="Where it was made, which decides nothing.")

    def to_json(self) -> str:
        """Write the record as JSON; equal records give equal text."""
        content = self.model_dump()
        inputs = content.pop("inputs")  # whose order counts
        ordered = json.loads(json.dumps(content, sort_keys=True))
        return json.dumps({**ordered, "inputs": inputs})


def sha256_of(path: Path) -> str:
    """Hash a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
