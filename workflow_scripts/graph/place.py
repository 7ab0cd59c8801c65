"""Where the pipeline lies and where it works, which may be two folders.

``--directory``, a call from elsewhere and a workflow that uses this one as a module all leave the clone where it is and
put results into another working directory. Jobs find the clone's code by PYTHONPATH, and look for no module in the
working directory (PYTHONSAFEPATH), where a file may have the name of one of Python's. The clone's resources are linked
into the working directory, so that a file has one name, and a record one content, wherever a study is made.
"""

import os
import sys
from pathlib import Path
from typing import Any

from workflow_scripts.provenance.closure import ROOT

RESOURCES = "resources"


def clone_of(workflow: Any) -> str:
    """The folder of the Snakefile that is being read, seen from the working directory.

    Ends the process with a line where it is no folder of this machine, whose Python package jobs could import.
    """
    folder: str = workflow.current_basedir.get_path_or_uri(secret_free=True)
    if not Path(folder).is_dir():
        sys.exit(
            f"ConfigError: {folder}: jobs import the package beside the Snakefile. Clone it, name the clone's."
        )
    return os.path.relpath(folder)


def open_place(clone: Path) -> None:
    """Make code and resources of the clone reachable from the working directory."""
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
    """Whether a link was made for another clone; a link of the user's own leads elsewhere."""
    if not link.is_symlink() or link.samefile(folder):
        return False
    resources = link.resolve().parent
    return resources.name == RESOURCES and (resources.parent / "Snakefile").is_file()


def is_in_job() -> bool:
    """Whether Snakemake was started by Snakemake, to run a job on its own or on another machine."""
    return "--mode" in sys.argv
