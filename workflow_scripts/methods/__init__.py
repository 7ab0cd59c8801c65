"""Methods, imported by the name in the configuration.

A registry that imports them all would be part of every job's code, and one new method would rerun
every old one. ``methods.base`` says what a method is.
"""

import importlib
from collections.abc import Mapping
from typing import Any

from workflow_scripts.settings.methods import METHODS
from workflow_scripts.settings.readouts import READOUTS


def load_method(name: str) -> Any:
    """Import ``methods/<name>.py``, a module as ``methods.base`` describes it."""
    return importlib.import_module(f"{__name__}.{name}")


def method_modules(block: Mapping[str, Any]) -> list[str]:
    """Modules that training by a block of ``methods`` imports by name: method and readout, its base's too."""
    below = method_modules(block["base"]) if "base" in block else []
    own = f"settings.methods.{METHODS[block['module']].__name__}"
    return [f"methods.{block['module']}", own, *readout_modules(block), *below]


def readout_modules(block: Mapping[str, Any]) -> list[str]:
    """Modules that whoever loads what a block of ``methods`` made imports by name."""
    if "base" in block:
        return readout_modules(block["base"])
    if "readout" not in block:
        return []
    kind = block["readout"]["kind"]
    return [f"models.readouts.{kind}", f"settings.readouts.{READOUTS[kind].__name__}"]
