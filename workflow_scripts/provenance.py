"""The record that every artefact carries: the rule, settings, code, data and packages that made it.

A record holds nothing that depends on time, host or dictionary order, so that the same inputs,
settings and code give the same bytes. Identity of an input is its seal (``artefacts``) where it
has one, and the sha256 of its bytes where it has none.
"""

import hashlib
import json
import subprocess
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field

from workflow_scripts.closure import ROOT, packages, sources
from workflow_scripts.config import Slice


class Input(Slice):
    """One file that a job read."""

    path: str = Field(
        description="Relative to the working directory, or package:, hub: or local: and a name."
    )
    sha256: str = Field(description="Seal of an artefact, or hash of the bytes of any other file.")


class Record(Slice):
    """What made an artefact."""

    rule: str
    wildcards: dict[str, str]
    settings: dict[str, Any] = Field(description="The slice of the configuration that the rule read.")
    inputs: dict[str, Input]
    outputs: list[str] = Field(description="All artefacts of the job, so that a missing one is noticed.")
    code: dict[str, str] = Field(description="sha256 of each project file that the job imports.")
    packages: dict[str, str] = Field(description="Versions of the packages that this code imports.")
    commit: str | None = Field(description="Git commit; None outside a repository.")
    dirty: bool = Field(description="Whether tracked files differed from the commit.")
    labels: list[str] = Field(description="Substitutions that reach this artefact, its inputs' included.")
    files: dict[str, str] = Field(default={}, description="sha256 of the files of a model folder.")

    def to_json(self) -> str:
        """Write the record as JSON with sorted keys; equal records give equal text."""
        return json.dumps(self.model_dump(), sort_keys=True, ensure_ascii=True)

    def fingerprint(self) -> str:
        """Hash of all that decides the job's result; a new commit alone does not change it."""
        deciding = self.model_copy(update={"commit": None, "dirty": False})
        return hashlib.sha256(deciding.to_json().encode()).hexdigest()


def code_hashes(*modules: str) -> dict[str, str]:
    """Hash every project file that running ``modules`` imports."""
    return {path: sha256_of(ROOT / path) for path in sources(*modules)}


def package_versions(*modules: str) -> dict[str, str]:
    """Versions of the distributions that running ``modules`` imports."""
    return packages(*modules)


def sha256_of(path: Path) -> str:
    """Hash a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@cache
def git_state() -> tuple[str | None, bool]:
    """The commit that is checked out and whether tracked files differ from it; (None, False) without git."""
    commit = _git("rev-parse", "HEAD")
    return commit, bool(commit and _git("status", "--porcelain", "--untracked-files=no"))


def _git(*arguments: str) -> str | None:
    try:
        run = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:  # a machine without git
        return None
    return run.stdout.strip() if run.returncode == 0 else None
