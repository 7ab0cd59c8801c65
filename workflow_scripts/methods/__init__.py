"""Methods, imported by the name in the configuration.

A registry that imports them all would be part of every job's code, and one new method would rerun
every old one. A method module has ``Config`` and ``build(config, backbone)``; one that trains has
``overrides(config)`` and ``Objective`` too.
"""

import importlib
from collections.abc import Mapping
from types import ModuleType
from typing import Any

from workflow_scripts.errors import ConfigError


def load_method(name: str) -> ModuleType:
    """Import ``methods/<name>.py``.

    Raises:
        ConfigError: if there is no such module.
    """
    try:
        return importlib.import_module(f"workflow_scripts.methods.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"workflow_scripts.methods.{name}":  # something that the method imports
            raise
        raise ConfigError(
            f"methods: no file workflow_scripts/methods/{name}.py. Correct `module`."
        ) from error


def method_modules(block: Mapping[str, Any]) -> list[str]:
    """Modules that training by a block of ``methods`` imports by name: method and readout, its base's too."""
    below = method_modules(block["base"]) if "base" in block else []
    return [f"methods.{block['module']}", *readout_modules(block), *below]


def readout_modules(block: Mapping[str, Any]) -> list[str]:
    """Modules that whoever loads what a block of ``methods`` made imports by name."""
    if "base" in block:
        return readout_modules(block["base"])
    return [f"models.readouts.{block['readout']['kind']}"] if "readout" in block else []


def labels_of(config: Any) -> list[str]:
    """Substitutions and warnings that a method's settings and its base's declare; most declare none."""
    below = labels_of(config.base) if hasattr(config, "base") else []
    return [*getattr(config, "labels", ()), *below]
