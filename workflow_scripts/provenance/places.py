"""Where a job's modules may come from: the standard library, installed packages and this package, and nowhere else.

A ``statistics.py`` in the working folder, in the clone's root or on PYTHONPATH would else take the place of Python's
own, and change numbers of which no key, record or audit knows. What is imported here is loaded when Python starts, so
that no such file can take its place.
"""

import os
import sys
from collections.abc import Iterator

_STANDARD = os.path.dirname(os.__file__)
_INSTALLED = ("site-packages", "dist-packages")
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def installed_first(places: list[str]) -> None:
    """Sort the places in which Python looks for modules: those of installed ones first, else in their order."""
    places.sort(key=lambda place: not (_is_below(place, _STANDARD) or os.path.basename(place) in _INSTALLED))


def strangers() -> Iterator[tuple[str, str]]:
    """Name and file of each module that this process has loaded from anywhere else."""
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if file and os.path.isfile(file) and not _may_be_loaded(file):  # PyTorch names some that are no files
            yield name, file


def _may_be_loaded(file: str) -> bool:
    own = _is_below(file, _STANDARD) or _is_below(file, _OWN)
    return own or not set(_INSTALLED).isdisjoint(file.split(os.sep))


def _is_below(place: str, folder: str) -> bool:
    return f"{place}{os.sep}".startswith(f"{folder}{os.sep}")
