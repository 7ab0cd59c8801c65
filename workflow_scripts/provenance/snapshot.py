"""The project's code as it was when this process started: what is loaded later may have been edited by then.

``workflow_scripts.jobs`` imports this before anything else, so that an edit that arrives while PyTorch is being loaded,
or while a job computes, cannot pass for the code that made its numbers.

It also stops Python from looking for garbage among what a job loads, until all is loaded (``jobs.__main__``). There is
none, and looking for it takes a fifth of the time that PyTorch and Transformers load.
"""

import gc
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from workflow_scripts.errors import DataError
from workflow_scripts.provenance.closure import PACKAGE, ROOT, SETTINGS, UNKEYED_FILES, meaning_in
from workflow_scripts.provenance.places import strangers

IS_JOB = sys.argv[0] == "-m"
"""Whether this process is a job: what `python -m` has there while it looks for its module."""
if IS_JOB:
    gc.disable()

_STARTER = PACKAGE / "jobs/__main__.py"
"""What starts every job, and is imported by none."""
_AT_START = {path: path.read_bytes() for path in PACKAGE.rglob("*.py")}


def check_code(meaning: Mapping[str, str]) -> None:
    """Check that files of the project mean what a job's key says: when this process started, and now.

    Args:
        meaning: File, relative to the repository's root, or a definition of one, to the hash of its meaning.

    Raises:
        DataError: naming the first that was edited, added or removed; an edited comment is no edit.
    """
    for file, planned in meaning.items():
        path = ROOT / file.partition(":")[0]
        now = path.read_bytes() if path.exists() else None
        if any(source is None or _meaning(source, file) != planned for source in (_AT_START.get(path), now)):
            raise DataError(
                f"{path}: edited while this job was running, or since it was planned. Run snakemake again."
            )


def check_packages(versions: Mapping[str, str]) -> None:
    """Check that the packages of a job's key are those that are installed where it runs.

    Raises:
        DataError: naming the first that is another one here.
    """
    for name, planned in versions.items():
        try:
            here = version(name)
        except PackageNotFoundError:
            here = "not installed"
        if here != planned:
            raise DataError(
                f"{name}: {here} where this job runs, {planned} where it was planned. Install the same version."
            )


def check_loaded(files: Iterable[str]) -> None:
    """Check that this process has loaded installed modules, of the project ``files`` and those that decide nothing.

    Only a lookup of the graph that forgets a module which is imported by name can break the latter.

    Raises:
        DataError: naming a module that was loaded from anywhere else.
    """
    for name, place in strangers():
        raise DataError(
            f"{place}: loaded as {name} by a job, which takes modules from Python, installed packages and its clone "
            "alone. Rename or remove it, or take its folder out of PYTHONPATH."
        )
    settings = (ROOT / SETTINGS).rglob("*.py")
    known = {_STARTER, *settings, *(ROOT / file for file in (*files, *UNKEYED_FILES))}
    modules = (module for module in list(sys.modules.values()) if module is not None)
    loaded = {Path(file) for module in modules if (file := getattr(module, "__file__", None))}
    unplanned = sorted(str(path) for path in loaded & (_AT_START.keys() - known))
    assert not unplanned, f"{unplanned[0]}: loaded, but not among the code that the job was planned with"


@cache
def _meaning(source: bytes, file: str) -> str | None:
    return meaning_in(source, file)
