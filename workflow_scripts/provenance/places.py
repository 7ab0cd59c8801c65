"""Permitted origins of a job's modules: the standard library, installed packages and this package.

Otherwise a ``statistics.py`` in the working folder, in the clone's root or on PYTHONPATH would replace Python's own,
and change numbers without a trace in keys and records. Python loads the modules that this one imports when it starts,
so no such file can replace them.
"""

import os
import sys
from collections.abc import Iterator

_STANDARD = os.path.dirname(os.__file__)
_INSTALLED = ("site-packages", "dist-packages")
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def installed_first(places: list[str]) -> None:
    """Sort Python's search path: folders of installed modules first, otherwise in their order."""
    places.sort(key=lambda place: not (_is_below(place, _STANDARD) or os.path.basename(place) in _INSTALLED))


def strangers() -> Iterator[tuple[str, str]]:
    """Name and file of each loaded module of another origin."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if (
            file and os.path.isfile(file) and not _may_be_loaded(file)
        ):  # PyTorch has modules without such a file
            yield name, file


def _may_be_loaded(file: str) -> bool:
    own = _is_below(file, _STANDARD) or _is_below(file, _OWN)
    return own or not set(_INSTALLED).isdisjoint(file.split(os.sep))


def _is_below(place: str, folder: str) -> bool:
    return f"{place}{os.sep}".startswith(f"{folder}{os.sep}")
