"""The record that every artefact carries: the rule, settings, code, data and packages that made it.

A record holds nothing that depends on time or dictionary order, so that the same inputs, settings and code give the
same bytes at the same commit on the same machine. An input is named by what it holds (``artefacts.identity``): whatever
made it, a reader of the same contents makes the same.
"""

import hashlib
import json
import platform
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import Field
from threadpoolctl import threadpool_info

from workflow_scripts.config import Settings
from workflow_scripts.provenance.closure import ROOT
from workflow_scripts.provenance.key import job_key


class Input(Settings):
    """One file that a job read."""

    path: str = Field(
        description="Relative to the working directory, or package:, hub: or local: and a name."
    )
    sha256: str = Field(
        description="Hash of an artefact's contents and labels, or of the bytes of any other file."
    )


class Origin(Settings):
    """Where an artefact was made.

    None of this decides what is made, so it is no part of a file's identity or of a job's key: a job gives files of the
    same identity at another commit or on another machine, and their readers stay as they are.
    """

    commit: str | None = Field(description="Git commit; None outside a repository.")
    dirty: bool = Field(description="Whether files of code differed from the commit, or were not in it.")
    python: str
    processor: str
    capability: str = Field(description="Instructions that PyTorch uses; empty where it is not loaded.")
    threads: int = Field(description="That PyTorch computes with, or else the libraries of linear algebra.")
    blas: str = Field(description="Libraries of linear algebra, their versions and kernels.")
    gpu: str = Field(default="", description="The GPU that was computed on; empty for the processor alone.")


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
    files: dict[str, str] = Field(default={}, description="sha256 of the files beside a folder's record.")
    origin: Origin = Field(description="Where it was made, which decides nothing.")

    def key_with(self, inputs: Mapping[str, str]) -> str:
        """The key of the job that the record tells of, computed again with the identities of some inputs by role."""
        return job_key(
            self.rule,
            wildcards=self.wildcards,
            settings=self.settings,
            inputs=inputs,
            meaning=self.meaning,
            packages=self.packages,
        )

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


def origin_of_this_process() -> Origin:
    """Describe the running process."""
    commit, dirty = git_state()
    torch = sys.modules.get("torch")  # what a job has not loaded has computed nothing
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    kernels = {f"{one['internal_api']} {one['version']} {one.get('architecture', '')}" for one in libraries}
    return Origin(
        commit=commit,
        dirty=dirty,
        python=platform.python_version(),
        processor=processor(),
        capability=torch.backends.cpu.get_cpu_capability() if torch else "",
        threads=torch.get_num_threads()
        if torch
        else max((one["num_threads"] for one in libraries), default=1),
        blas=", ".join(sorted(kernels)),
        gpu=torch.cuda.get_device_name() if torch and torch.cuda.is_initialized() else "",
    )


@cache
def processor() -> str:
    """The processor's name as Linux knows it; elsewhere its kind."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text("utf-8").splitlines() if information.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


_CODE = ("Snakefile", "rules", "workflow_scripts")
"""What makes artefacts; settings are in each record, wherever they come from."""


@cache
def git_state() -> tuple[str | None, bool]:
    """The commit that is checked out, and whether code differs from it or is not in it; (None, False) without git."""
    commit = _git("rev-parse", "HEAD")
    return commit, bool(commit and _git("status", "--porcelain", "--", *_CODE))


def _git(*arguments: str) -> str | None:
    try:
        run = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:  # a machine without git
        return None
    return run.stdout.strip() if run.returncode == 0 else None
