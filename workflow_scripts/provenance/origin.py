"""Where an artefact was made: commit and machine.

None of this decides what is made, so none of it is part of a file's identity or of a job's key: a job gives files of
the same identity at another commit or on another machine, and their readers stay as they are.
"""

import platform
import subprocess
import sys
from functools import cache
from pathlib import Path

from pydantic import Field
from threadpoolctl import threadpool_info

from workflow_scripts.config import Settings
from workflow_scripts.provenance.closure import ROOT


class Origin(Settings):
    """What is noted of a job's circumstances; an artefact made again may have another."""

    commit: str | None = Field(description="Git commit; None outside a repository.")
    dirty: bool = Field(description="Whether files differed from the commit, or were not in it.")
    python: str
    processor: str
    capability: str = Field(description="Instructions that PyTorch uses; empty where it is not loaded.")
    threads: int = Field(description="That PyTorch computes with, or else the libraries of linear algebra.")
    blas: str = Field(description="Libraries of linear algebra, their versions and kernels.")
    gpu: str = Field(default="", description="The GPU that was computed on; empty for the processor alone.")


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
