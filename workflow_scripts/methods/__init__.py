"""Methods, imported by the name in the configuration.

A registry that imports them all would be part of every job's code, and one new method would rerun
every old one. ``methods.base`` says what a method is.
"""

import importlib
from collections.abc import Mapping
from typing import Any


def load_method(name: str) -> Any:
    """Import ``methods/<name>.py``, a module as ``methods.base`` describes it."""
    return importlib.import_module(f"{__name__}.{name}")


def method_modules(block: Mapping[str, Any]) -> list[str]:
    """Modules that training by a block of ``methods`` imports by name: method and readout, its base's too."""
    below = method_modules(block["base"]) if "base" in block else []
    name = f"methods.{block['module']}"
    return [name, f"settings.{name}", *readout_modules(block), *below]


def readout_modules(block: Mapping[str, Any]) -> list[str]:
    """Modules that whoever loads what a block of ``methods`` made imports by name."""
    if "base" in block:
        return readout_modules(block["base"])
    rooms = ("models", "settings") if "readout" in block else ()
    return [f"{room}.readouts.{block['readout']['kind']}" for room in rooms]
