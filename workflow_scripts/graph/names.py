"""Checks of references in settings to blocks, files, or elements of a grid."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

from workflow_scripts.errors import ErrorDetails, advice, unknown
from workflow_scripts.graph.slices import get_path
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.names import Refers
from workflow_scripts.settings.sources import HubFiles, LocalFiles, PackageFiles
from workflow_scripts.settings.study import Configuration


class Reference(NamedTuple):
    """A reference in some settings."""

    path: str
    """Dotted path of the name."""
    name: str
    refers: Refers
    """Kind of block to which the name refers."""


@cache
def _marks(kind: type[Settings]) -> dict[str, list[Refers]]:
    """Return the marks of references in each setting of a class."""

    def within(part: Any) -> list[Refers]:
        return (
            [part]
            if isinstance(part, Refers)
            else [mark for argument in get_args(part) for mark in within(argument)]
        )

    fields = kind.model_fields.items()
    return {key: within(Annotated[field.annotation, *field.metadata, None]) for key, field in fields}


def references(value: Any, path: str = "", marks: Sequence[Refers] = ()) -> Iterator[Reference]:
    """Yield all marked references in some settings."""
    match value:
        case Settings():
            for key, part in value.parts().items():
                yield from references(part, f"{path}.{key}".lstrip("."), _marks(type(value))[key])
        case str():
            yield from (Reference(path, value, mark) for mark in marks)
        case Mapping():
            for key, part in value.items():
                inside = [replace(mark, section=mark.section.format(key)) for mark in marks]
                yield from references(part, f"{path}.{key}", inside)
        case list() | tuple():
            for number, part in enumerate(value):
                part_path = path if isinstance(part, str) else f"{path}.{number}"
                yield from references(part, part_path, marks)


def repetitions(value: Any, path: str = "") -> Iterator[ErrorDetails]:
    """Yield an error for each list in some settings that contains a name or a whole number twice.

    Readers check their options themselves: a header may repeat the name of a column that is not read.
    """
    match value:
        case LocalFiles() | PackageFiles() | HubFiles():
            return
        case Settings():
            for key, part in value.parts().items():
                yield from repetitions(part, f"{path}.{key}".lstrip("."))
        case Mapping():
            for key, part in value.items():
                yield from repetitions(part, f"{path}.{key}")
        case list() | tuple():
            named = [part for part in value if isinstance(part, str | int)]
            for part in dict.fromkeys(part for part in named if named.count(part) > 1):
                yield ErrorDetails(path, f"{part} is listed twice", "Remove one.")
            for number, part in enumerate(value):
                yield from repetitions(part, f"{path}.{number}")


def misnamed(settings: Configuration, named: Iterable[Reference]) -> Iterator[ErrorDetails]:
    """Yield an error for each reference to no block, or to a block of the wrong form.

    Args:
        settings: The configuration; references to elements of a grid and to files are ignored.
        named: References in it, or in a grid.
    """
    for path, name, refers in named:
        section, _, _ = refers.section.partition(".")
        if section in ("grid", "resources"):
            continue
        if errors := [*unknown(name, get_path(settings, refers.section), path)]:
            yield from errors
        elif refers.forms and (form := _form(settings, section, name)) not in (None, *refers.forms):
            problem = f"{name} has the form {form}; this key needs {' or '.join(refers.forms)}"
            blocks = get_path(settings, refers.section)
            known = [block for block in blocks if _form(settings, section, block) in refers.forms]
            yield ErrorDetails(path, problem, advice(name, known))


def _form(settings: Configuration, section: str, name: str) -> str | None:
    """Return the form of a section's block; None if the block itself is invalid."""
    match section:
        case "corpora":
            return settings.corpus_form(name)
        case "datasets":
            return settings.datasets[name].form
        case "encoders":
            return settings.encoders[name].form
    return settings.methods[name].form


_SUFFIXES = {"prompts": ".txt", "published": ".csv", "tokens": ".json"}
"""Suffix of the files in each folder of ``resources`` to which settings refer."""


def missing_files(root: Path, named: Iterable[Reference]) -> Iterator[ErrorDetails]:
    """Yield an error for each reference to a file that is missing from ``resources``.

    Args:
        root: Folder of the Snakefile.
        named: References in the configuration, or in a grid.
    """
    for path, name, refers in named:
        section, _, folder = refers.section.partition(".")
        if section != "resources":
            continue
        suffix = _SUFFIXES[folder]
        known = sorted(file.stem for file in (root / "resources" / folder).glob(f"*{suffix}"))
        if name not in known:
            yield ErrorDetails(path, f"no file resources/{folder}/{name}{suffix}", advice(name, known))
