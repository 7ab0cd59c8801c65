"""A module's own files, for the folder that it is saved in."""

import shutil
import sys
from pathlib import Path

from transformers.dynamic_module_utils import get_relative_import_files


def write_own_code(module: object, folder: str | Path) -> None:
    """Copy the file of the class of ``module``, and those that it imports, into ``folder``."""
    file = sys.modules[type(module).__module__].__file__
    assert file is not None
    for source in (file, *get_relative_import_files(file)):
        target = Path(folder, Path(source).name)
        if target.resolve() != Path(source).resolve():
            shutil.copyfile(source, target)
