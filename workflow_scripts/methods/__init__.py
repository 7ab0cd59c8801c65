"""Methods, imported by the name in the configuration.

A registry that imports them all would be part of every job's code, and one new method would rerun all others.
``methods.base`` defines the interface of a method.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from workflow_scripts.settings.methods import METHODS
from workflow_scripts.settings.readouts import READOUTS


def load_method(name: str) -> Any:
    """Import ``methods/<name>.py``, which has the interface that ``methods.base`` defines."""
    return importlib.import_module(f"{__name__}.{name}")


def method_modules(block: Mapping[str, Any]) -> list[str]:
    """Modules that a training imports by name: the method of a block of ``methods``, its readout, and its base's."""
    of_base = method_modules(block["base"]) if "base" in block else []
    own = f"settings.methods.{METHODS[block['module']].__name__}"
    return [f"methods.{block['module']}", own, *readout_modules(block), *of_base]


def readout_modules(block: Mapping[str, Any]) -> list[str]:
    """Modules that loading a model imports by name, if the model was made by a block of ``methods``."""
    if "base" in block:
        return readout_modules(block["base"])
    if "readout" not in block:
        return []
    kind = block["readout"]["kind"]
    return [f"models.readouts.{kind}", f"settings.readouts.{READOUTS[kind].__name__}"]
