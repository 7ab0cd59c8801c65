"""Find the files behind sources from outside the pipeline on this machine, and hash them again.

A record names such a source without a place: ``local:`` below the data root, ``package:`` in an installed package,
``hub:`` in the local cache of the Hugging Face Hub. Answers of translators and language models are no files, and what
is not on this machine cannot be looked at; nothing is downloaded.
"""

import re
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import get_args

from workflow_scripts.data.hub import Kind, snapshot
from workflow_scripts.provenance.record import sha256_of

_PACKAGE = re.compile(r"(?!__main__)(\w+)(?:==[^/]+)?/(.+)")  # no dot: looking for a.b would import a
_HUB = re.compile(r"([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})/(.+)")


def hashes_of(sources: Iterable[str], data_root: Path | None) -> dict[str, str]:
    """The present sha256 of those of ``sources`` that are files on this machine.

    Args:
        sources: As records name them.
        data_root: Where ``local:`` files are; None where it is not known.
    """
    places = {source: place_of(source, data_root) for source in sources}
    return {source: sha256_of(place) for source, place in places.items() if place}


def place_of(source: str, data_root: Path | None) -> Path | None:
    """Where a source lies on this machine; None where it does not, or is no file."""
    kind, _, name = source.partition(":")
    for folder, path in _candidates(kind, name, data_root):
        inside = not Path(path).is_absolute() and ".." not in Path(path).parts  # a record may be a stranger's
        if inside and (folder / path).is_file():
            return folder / path
    return None


def _candidates(kind: str, name: str, data_root: Path | None) -> Iterator[tuple[Path, str]]:
    """Folders that may hold a source, and its path below each."""
    if kind == "local" and data_root is not None:
        yield data_root, name
    elif kind == "package" and (found := _PACKAGE.fullmatch(name)):
        spec = find_spec(found[1])
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent, found[2]
    elif kind == "hub" and (found := _HUB.fullmatch(name)):
        for held in get_args(Kind):  # the Hub's client keeps models and datasets apart
            yield snapshot(found[1], found[2], held), found[3]
