"""The clone, the working directory and the command line of one call of snakemake.

Clone and working directory may be two folders: ``--directory``, a call from another folder and a workflow that uses
this one as a module put results into another working directory. Jobs find the clone's code by PYTHONPATH. They do not
import from the working directory (PYTHONSAFEPATH), where a file may have the name of a Python module. The clone's
resources are linked into the working directory: names of files and contents of records are the same in every working
directory.
"""

import os
import sys
from pathlib import Path
from typing import Any

from workflow_scripts.provenance.closure import ROOT

RESOURCES = "resources"


def clone_folder(workflow: Any) -> str:
    """Return the folder of the Snakefile that is being read, relative to the working directory.

    Ends the process with a line unless it is a folder on this machine: jobs import the Python package in it.
    """
    folder: str = workflow.current_basedir.get_path_or_uri(secret_free=True)
    if not Path(folder).is_dir():
        sys.exit(
            f"ConfigError: {folder}: jobs import the Python package next to the Snakefile. "
            "Clone the repository and point `snakefile:` at the clone."
        )
    return os.path.relpath(folder)


def open_clone(clone: Path) -> None:
    """Make code and resources of the clone available in the working directory."""
    paths = [str(ROOT), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ |= {"PYTHONPATH": os.pathsep.join(dict.fromkeys(paths)), "PYTHONSAFEPATH": "1"}
    here = Path(RESOURCES)
    if (clone / RESOURCES).resolve() == here.resolve():
        return
    here.mkdir(exist_ok=True)
    for folder in (clone / RESOURCES).iterdir():
        link = here / folder.name
        if folder.is_dir() and (not link.exists() or _leads_to_another_clone(link, folder)):
            link.unlink(missing_ok=True)
            link.symlink_to(folder.resolve())


def _leads_to_another_clone(link: Path, folder: Path) -> bool:
    """Return whether a link was made for another clone, and not by the user."""
    clone = link.resolve().parent.parent
    is_clone = (clone / "Snakefile").is_file() and (clone / RESOURCES / folder.name).is_dir()
    return link.is_symlink() and not link.samefile(folder) and is_clone


def is_in_job() -> bool:
    """Return whether another Snakemake started this one to run a job."""
    return "--mode" in sys.argv


def call_words() -> list[str]:
    """Return the arguments of the user's snakemake command; empty if another program loaded the Snakefile."""
    program = Path(sys.argv[0])
    by_name = "snakemake" in (program.name, program.parent.name)
    return sys.argv[1:] if by_name and not is_in_job() else []


def from_here(file: str | Path) -> str:
    """Return a path relative to the working directory, which stays valid if the directory is moved."""
    path, here = Path(file).absolute(), Path.cwd()
    return str(path.relative_to(here) if path.is_relative_to(here) else path)
