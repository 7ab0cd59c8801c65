"""Where an artefact was made: commit, bytes of the code, machine, packages that change no number.

None of this decides what is made, so none of it is part of a file's identity: a job gives files of the same checksums
at another commit or on another machine, and their readers stay as they are. It stands beside the record, in a field of
fixed width that the checksum leaves out (``artefacts``).
"""

import hashlib
import platform
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlencode

from pydantic import Field
from threadpoolctl import threadpool_info

from workflow_scripts.config import Settings
from workflow_scripts.provenance.closure import ROOT, UNKEYED_FILES, loaded_unkeyed
from workflow_scripts.provenance.snapshot import source_at_start

WIDTH = 2048
"""Characters of the field; a shorter text is filled up with spaces."""
_LONGEST = 100  # characters of one name, each of which may take three: so the field suffices
_PACKAGE = "package:"


class Origin(Settings):
    """What is noted of a job's circumstances; an artefact made again may have another."""

    commit: str | None = Field(description="Git commit; None outside a repository.")
    dirty: bool = Field(description="Whether files differed from the commit, or were not in it.")
    code: str = Field(description="One hash over the bytes of all project files that the job imports.")
    python: str
    processor: str
    capability: str = Field(description="Instructions that PyTorch uses; empty where it is not loaded.")
    threads: int = Field(description="That PyTorch computes with, or else the libraries of linear algebra.")
    blas: str = Field(description="Libraries of linear algebra, their versions and kernels.")
    gpu: str = Field(default="", description="The GPU that was computed on; empty for the processor alone.")
    packages: dict[str, str] = Field(
        description="Versions of packages that were loaded and change no number."
    )

    def to_text(self) -> str:
        """One line of ``WIDTH`` printable ASCII characters; no quotation marks, no two hyphens in a row."""
        fields = self.model_dump(exclude={"packages"}) | {
            f"{_PACKAGE}{name}": version for name, version in self.packages.items()
        }
        shown = {
            name: "" if value is None else _ascii(str(value))[:_LONGEST] for name, value in fields.items()
        }
        text = urlencode(shown, safe=":").replace("--", "-%2D")
        assert len(text) <= WIDTH, text
        return text.ljust(WIDTH)

    @classmethod
    def from_text(cls, text: str) -> "Origin":
        """Read what ``to_text`` wrote."""
        fields: dict[str, Any] = dict(parse_qsl(text.rstrip(), keep_blank_values=True))
        packages = {name: fields.pop(name) for name in list(fields) if name.startswith(_PACKAGE)}
        named = {name.removeprefix(_PACKAGE): version for name, version in packages.items()}
        return cls.model_validate(fields | {"commit": fields.get("commit") or None, "packages": named})


def origin_of(files: Iterable[str]) -> Origin:
    """Describe the running process.

    Args:
        files: Project files that decide the job's result, relative to the repository's root.
    """
    commit, dirty = git_state()
    torch = sys.modules.get("torch")  # what a job has not loaded has computed nothing
    libraries = [library for library in threadpool_info() if library["user_api"] == "blas"]
    kernels = {f"{one['internal_api']} {one['version']} {one.get('architecture', '')}" for one in libraries}
    return Origin(
        commit=commit,
        dirty=dirty,
        code=_hash_of({*files, *UNKEYED_FILES}),
        python=platform.python_version(),
        processor=processor(),
        capability=torch.backends.cpu.get_cpu_capability() if torch else "",
        threads=torch.get_num_threads()
        if torch
        else max((one["num_threads"] for one in libraries), default=1),
        blas=", ".join(sorted(kernels)),
        gpu=torch.cuda.get_device_name() if torch and torch.cuda.is_initialized() else "",
        packages=loaded_unkeyed(),
    )


def _ascii(name: str) -> str:
    return name.encode("ascii", "replace").decode()


def _hash_of(files: Iterable[str]) -> str:
    sha = hashlib.sha256()
    for file in sorted(files):
        sha.update(f"{file}\n".encode())
        sha.update(source_at_start(file) or b"")
    return sha.hexdigest()


@cache
def processor() -> str:
    """The processor's name as Linux knows it; elsewhere its kind."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text("utf-8").splitlines() if information.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.machine())


@cache
def git_state() -> tuple[str | None, bool]:
    """The commit that is checked out and whether files differ from it or are not in it; (None, False) without git."""
    commit = _git("rev-parse", "HEAD")
    return commit, bool(commit and _git("status", "--porcelain"))


def _git(*arguments: str) -> str | None:
    try:
        run = subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:  # a machine without git
        return None
    return run.stdout.strip() if run.returncode == 0 else None
