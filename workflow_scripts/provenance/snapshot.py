"""A snapshot of the project's code at the start of this process, since files may be edited before they are loaded.

``workflow_scripts.jobs`` imports this module before anything else. An edit during the import of PyTorch, or while the
job computes, is therefore noticed, and the job's numbers are not attributed to the wrong code.

Garbage collection is off while a job imports its modules (``jobs.__main__`` turns it on): imports create no garbage,
and collecting takes a fifth of the import time of PyTorch and Transformers.
"""

import gc
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from workflow_scripts.errors import DataError
from workflow_scripts.provenance.closure import COLUMNS, PACKAGE, ROOT, SETTINGS, UNKEYED_FILES, meaning_in
from workflow_scripts.provenance.places import strangers

IS_JOB = sys.argv[0] == "-m"
"""Whether this process is a job: `python -m` sets this argument while it looks for its module."""
if IS_JOB:
    gc.disable()

_STARTER = PACKAGE / "jobs/__main__.py"
"""The module that starts every job; no other module imports it."""
_meaning = cache(meaning_in)
_AT_START = {path: path.read_bytes() for path in PACKAGE.rglob("*.py")}


def check_code(meaning: Mapping[str, str]) -> None:
    """Check that the project's files had the planned syntax trees when this process started, and have them now.

    Args:
        meaning: File, relative to the repository's root, or a definition of one, to the hash of its syntax tree.

    Raises:
        DataError: naming the first file that was edited, added or removed; edited comments do not count.
    """
    for file, planned in meaning.items():
        path = ROOT / file.partition(":")[0]
        now = path.read_bytes() if path.exists() else None
        if any(source is None or _meaning(source, file) != planned for source in (_AT_START.get(path), now)):
            raise DataError(
                f"{path}: edited while this job was running, or since it was planned. Run snakemake again."
            )


def check_packages(versions: Mapping[str, str]) -> None:
    """Check that the packages of a job's key are installed here in the same versions.

    Raises:
        DataError: naming the first package whose version differs.
    """
    for name, planned in versions.items():
        if (here := installed(name)) != planned:
            raise DataError(
                f"{name}: {here} where this job runs, {planned} where it was planned. Install the same version."
            )


def installed(name: str) -> str:
    """The version of a package on this machine."""
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def check_loaded(files: Iterable[str]) -> None:
    """Check that all loaded modules are installed ones, ``files`` of the project, or project files that decide nothing.

    An unlisted project file is a bug: the graph has forgotten a module that is imported by name.

    Raises:
        DataError: naming a module that was loaded from elsewhere.
    """
    for name, foreign in strangers():
        raise DataError(
            f"{foreign}: loaded as {name} by a job. Jobs may load modules of Python, installed packages and their "
            "clone only. Rename or remove this file, or take its folder out of PYTHONPATH."
        )
    settings = (ROOT / SETTINGS).rglob("*.py")
    known = {_STARTER, ROOT / COLUMNS, *settings, *(ROOT / file for file in (*files, *UNKEYED_FILES))}
    modules = (module for module in list(sys.modules.values()) if module is not None)
    loaded = {Path(file) for module in modules if (file := getattr(module, "__file__", None))}
    unplanned = sorted(str(path) for path in loaded & (_AT_START.keys() - known))
    assert not unplanned, f"{unplanned[0]}: loaded, but not among the code that the job was planned with"
