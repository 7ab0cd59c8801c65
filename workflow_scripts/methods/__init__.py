"""Methods, imported by their names in the configuration.

A registry that imports all methods would be part of every job's code: a new method would rerun all others.

The settings of a method are the class in ``settings.methods`` whose ``module`` is its name. Its module here has

* ``build(config, tokenizer, *backbones)``, which makes the ``TextEncoder`` that is trained, evaluated and saved. It
  gets one backbone for each run that it starts from, and raises ``ConfigError`` if they do not fit the settings.
* ``Objective``, a subclass of ``training.objective.Objective``, made from the settings, the result of ``build``, and
  the corpus (``training.data.TrainingData``). It raises ``ConfigError`` if the corpus lacks a column that it reads.

Rule train_encoder imports both by the name in ``module`` of a block in config/methods.yaml. The smallest method is
``simcse``; ``contrastive`` is shared by methods that contrast views of sentences. Two kinds of modules train nothing
and have only ``build``: ``frozen``, an encoder as it is, and methods that join finished runs, whose
``build(config, encoders)`` gets the runs' encoders in order (rule build_ensemble).
"""

import importlib
from typing import Any

from workflow_scripts.settings.methods import MethodConfig


def load_method(name: str) -> Any:
    """Return the module ``methods/<name>.py``, which has the interface above."""
    return importlib.import_module(f"{__name__}.{name}")


def method_modules(config: MethodConfig) -> list[str]:
    """Return the modules that a training imports by name: those of its method and readout, and of its base's."""
    base = getattr(config, "base", None)
    settings_class = f"settings.methods.{type(config).__name__}"
    return [
        f"methods.{config.module}",
        settings_class,
        *readout_modules(config),
        *(method_modules(base) if base else []),
    ]


def readout_modules(config: MethodConfig) -> list[str]:
    """Return the modules that loading a model made by these settings imports by name."""
    if base := getattr(config, "base", None):
        return readout_modules(base)
    if (readout := getattr(config, "readout", None)) is None:
        return []
    return [f"models.readouts.{readout.kind}", f"settings.readouts.{type(readout).__name__}"]
