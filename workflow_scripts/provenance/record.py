"""The record inside each artefact: the rule, settings, code, data and packages that made it.

A record does not depend on time or the order of dictionaries, so the same inputs, settings and code give the same bytes
at the same commit on the same machine. Inputs are identified by their contents (``artefacts.identity``), because a job
that reads the same contents has the same result, no matter how they were made.
"""

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeVar

from pydantic import Field, field_validator, model_validator
from threadpoolctl import threadpool_info

from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.key import job_key
from workflow_scripts.settings.base import Settings

_OUTSIDE = ("package:", "hub:", "local:", "translator:", "llm:")


def is_outside(path: str) -> bool:
    """Return whether a path in a record is that of an external source, and not of a file below the root."""
    return path.startswith(_OUTSIDE)


class Input(Settings):
    """A file that a job read."""

    path: str = Field(
        description="Path relative to the working directory, or package:, hub: or local: with a name."
    )
    sha256: str = Field(
        description="Hash of an artefact's contents and labels, or of the bytes of any other file."
    )


_GAP = "gap: "  # prefix of gaps in labels that are texts


class Label(Settings):
    """A caveat of a number: something replaces what a paper used, or is missing."""

    kind: Literal["substitution", "gap"]
    text: str

    @model_validator(mode="before")
    @classmethod
    def _read_text(cls, given: Any) -> Any:
        """Return a label read from a text, the form in tables and older records."""
        if not isinstance(given, str):
            return given
        text = given.removeprefix(_GAP)
        return {"kind": "substitution" if text == given else "gap", "text": text}

    def __str__(self) -> str:
        """Return the label as a text, by which labels are sorted."""
        return f"{_GAP}{self.text}" if self.kind == "gap" else self.text


def gap_label(reason: str) -> Label:
    """Return the label of something that is missing."""
    return Label(kind="gap", text=reason)


def merged_labels(*labels: Iterable[Label | str | None]) -> list[Label]:
    """Return distinct labels in order; a text is a substitution, and None and empty texts are skipped."""
    distinct = {
        label if isinstance(label, Label) else Label(kind="substitution", text=label)
        for some in labels
        for label in some
        if label
    }
    return sorted(distinct, key=str)


T = TypeVar("T", Path, Input)


def as_list(given: T | list[T]) -> list[T]:
    """Return the files of a role as a list; a role with at most one has no list."""
    return given if isinstance(given, list) else [given]


class CodeOrigin(Settings):
    """The machine and commit at which an artefact was made.

    They do not affect the result, so they are not part of a file's identity or of a job's key: a job at another commit,
    or on another machine, writes files of the same identity, and the jobs that read them do not rerun.
    """

    commit: str | None = Field(description="Git commit; None outside a repository.")
    dirty: bool = Field(description="Whether files of code differed from the commit or were not in it.")
    python: str
    processor: str
    capability: str = Field(description="Instruction set that PyTorch uses; empty if PyTorch was not loaded.")
    threads: int = Field(description="Threads of PyTorch, or of linear algebra if PyTorch was not loaded.")
    blas: str = Field(description="Libraries of linear algebra, their versions and kernels.")
    gpu: str = Field(default="", description="Name of the GPU; empty if the job used none.")


class Record(Settings):
    """The record of an artefact: everything from which it was made."""

    rule: str
    key: str = Field(description="Hash of everything that determines the job's result (provenance.key).")
    wildcards: dict[str, str]
    settings: dict[str, Any] = Field(description="The slice of the configuration that the rule read.")
    inputs: dict[str, Input | list[Input]] = Field(
        description="Input by role, or a list for a role that may have several, in the order of the job's call."
    )
    outputs: list[str] = Field(description="All artefacts of the job, by which a missing one is noticed.")
    meaning: dict[str, str] = Field(
        description="Hash of the syntax tree of each imported project file that can affect a result."
    )
    packages: dict[str, str] = Field(
        description="Versions of the imported packages that can change a number."
    )
    labels: list[Label] = Field(description="Substitutions and gaps of the job and of its inputs.")
    files: dict[str, str] = Field(default={}, description="sha256 of the other files of a folder.")
    origin: CodeOrigin = Field(description="Machine and commit of the job, which do not affect its result.")

    @field_validator("inputs", mode="before")
    @classmethod
    def _collect(cls, inputs: Any) -> Any:
        """Return inputs by role; older records have each of several inputs under its role, a slash and its path."""
        by_role: dict[str, Any] = {}
        for name, given in inputs.items():
            path = given.get("path") if isinstance(given, dict) else None
            if path and name.endswith(f"/{path}"):
                by_role.setdefault(name.removesuffix(f"/{path}"), []).append(given)
            else:
                by_role[name] = given
        return by_role

    @property
    def internal(self) -> dict[str, Input | list[Input]]:
        """Return the inputs that are files of the pipeline, by role."""
        return {
            role: given
            for role, given in self.inputs.items()
            if not any(is_outside(file.path) for file in as_list(given))
        }

    @property
    def inner_files(self) -> list[Input]:
        """Return the inputs that are files of the pipeline."""
        return [file for given in self.internal.values() for file in as_list(given)]

    @property
    def sources(self) -> list[Input]:
        """Return the external inputs."""
        return [file for _, file in self.listed_inputs() if is_outside(file.path)]

    @property
    def identities(self) -> dict[str, str | dict[str, str]]:
        """Return the hash of each role's input, or hashes by path for a role that may have several."""
        return {
            role: {file.path: file.sha256 for file in given} if isinstance(given, list) else given.sha256
            for role, given in self.internal.items()
        }

    def input(self, role: str) -> Input:
        """Return the input of a role that has exactly one."""
        (file,) = as_list(self.inputs[role])
        return file

    def listed_inputs(self) -> Iterator[tuple[str, Input]]:
        """Yield each input with its role, in order."""
        for role, given in self.inputs.items():
            yield from ((role, file) for file in as_list(given))

    def recomputed_key(self) -> str:
        """Return the recomputed key of the record's job, which differs from the key in an altered record."""
        return self.key_with(self.identities)

    def key_with(self, inputs: Mapping[str, str | Mapping[str, str]]) -> str:
        """Return the key of the record's job, recomputed with other identities of inputs, by role."""
        return job_key(
            self.rule,
            wildcards=self.wildcards,
            settings=self.settings,
            inputs=inputs,
            code_hashes=self.meaning,
            packages=self.packages,
        )

    def to_json(self) -> str:
        """Return the record as JSON; equal records give equal text."""
        content = self.model_dump()
        inputs = content.pop("inputs")  # their order counts, so it is kept
        return json.dumps(json.loads(json.dumps(content, sort_keys=True)) | {"inputs": inputs})


def sha256_of(path: Path) -> str:
    """Return the sha256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def current_origin() -> CodeOrigin:
    """Return the origin of this process's artefacts."""
    commit, dirty = git_state()
    torch = sys.modules.get("torch")  # not imported here: a job that has not loaded it has not used it
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    kernels = {
        f"{blas['internal_api']} {blas['version']} {blas.get('architecture', '')}" for blas in libraries
    }
    threads = max((blas["num_threads"] for blas in libraries), default=1)
    return CodeOrigin(
        commit=commit,
        dirty=dirty,
        python=platform.python_version(),
        processor=processor(),
        capability=torch.backends.cpu.get_cpu_capability() if torch else "",
        threads=torch.get_num_threads() if torch else threads,
        blas=", ".join(sorted(kernels)),
        gpu=torch.cuda.get_device_name() if torch and torch.cuda.is_initialized() else "",
    )


@cache
def processor() -> str:
    """Return the processor's name from /proc/cpuinfo or, failing that, its architecture."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text("utf-8").splitlines() if information.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


_CODE = ("Snakefile", "rules", "workflow_scripts")
"""Paths of code, without configuration, because each record contains its settings."""


@cache
def git_state() -> tuple[str | None, bool]:
    """Return the current commit, and whether code differs from it or is not in it; (None, False) without git."""
    commit = _git("rev-parse", "HEAD")
    return commit, bool(commit and _git("status", "--porcelain", "--", *_CODE))


def _git(*arguments: str) -> str | None:
    try:
        run = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:  # git is not installed
        return None
    return run.stdout.strip() if run.returncode == 0 else None
