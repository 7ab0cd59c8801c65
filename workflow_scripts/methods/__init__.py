"""Methods, imported by the name in the configuration.

A registry that imports them all would be part of every job's code, and one new method would rerun all others.
``methods.base`` defines the interface of a method.
"""

import importlib
from typing import Any

from workflow_scripts.settings.methods import MethodConfig


def load_method(name: str) -> Any:
    """Import ``methods/<name>.py``, which has the interface that ``methods.base`` defines."""
    return importlib.import_module(f"{__name__}.{name}")


def method_modules(config: MethodConfig) -> list[str]:
    """Modules that a training imports by name: the method of some settings, its readout, and its base's."""
    base = getattr(config, "base", None)
    own = f"settings.methods.{type(config).__name__}"
    return [
        f"methods.{config.module}",
        own,
        *readout_modules(config),
        *(method_modules(base) if base else []),
    ]


def readout_modules(config: MethodConfig) -> list[str]:
    """Modules that loading a model imports by name, if the model was made by these settings."""
    if base := getattr(config, "base", None):
        return readout_modules(base)
    if (readout := getattr(config, "readout", None)) is None:
        return []
    return [f"models.readouts.{readout.kind}", f"settings.readouts.{type(readout).__name__}"]
