"""Names in settings that refer to blocks, files, or things of a grid: found by their marks, and looked up."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Annotated, Any, NamedTuple, get_args

from workflow_scripts.errors import Finding, advice, unknown
from workflow_scripts.graph.slices import get_path
from workflow_scripts.settings.base import Settings
from workflow_scripts.settings.names import Refers
from workflow_scripts.settings.study import Configuration


class Reference(NamedTuple):
    """A name in some settings."""

    path: str
    """Where it is."""
    name: str
    refers: Refers
    """What it refers to."""


@cache
def _marks(kind: type[Settings]) -> dict[str, list[Refers]]:
    """The marks of the names in each setting of a class."""

    def within(part: Any) -> list[Refers]:
        return (
            [part] if isinstance(part, Refers) else [mark for one in get_args(part) for mark in within(one)]
        )

    fields = kind.model_fields.items()
    return {key: within(Annotated[field.annotation, *field.metadata, None]) for key, field in fields}


def references(value: Any, path: str = "", marks: Sequence[Refers] = ()) -> Iterator[Reference]:
    """Yield every name in some settings that its class marks."""
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
                place = path if isinstance(part, str) else f"{path}.{number}"
                yield from references(part, place, marks)


def repetitions(value: Any, path: str = "") -> Iterator[Finding]:
    """Yield a finding for each list in some settings that has a name or a whole number twice."""
    match value:
        case Settings():
            for key, part in value.parts().items():
                yield from repetitions(part, f"{path}.{key}".lstrip("."))
        case Mapping():
            for key, part in value.items():
                yield from repetitions(part, f"{path}.{key}")
        case list() | tuple():
            named = [part for part in value if isinstance(part, str | int)]
            for part in dict.fromkeys(one for one in named if named.count(one) > 1):
                yield Finding(path, f"{part} is listed twice", "Leave one.")
            for number, part in enumerate(value):
                yield from repetitions(part, f"{path}.{number}")


def misnamed(settings: Configuration, named: Iterable[Reference]) -> Iterator[Finding]:
    """Yield names that no block has, and those of blocks of another form than is read there.

    Args:
        settings: The configuration; names of a grid's own, and of files, are not looked up.
        named: References in it, or in a grid.
    """
    for path, name, refers in named:
        section, _, _ = refers.section.partition(".")
        if section in ("grid", "resources"):
            continue
        if found := [*unknown(name, get_path(settings, refers.section), path)]:
            yield from found
        elif refers.forms and (form := _form(settings, section, name)) not in (None, *refers.forms):
            wanted = " or ".join(refers.forms)
            yield Finding(path, f"{name} has the form {form}; this key needs {wanted}", "Name another.")


def _form(settings: Configuration, section: str, name: str) -> str | None:
    """Return the form of a section's block; None if the block itself is wrong."""
    match section:
        case "corpora":
            return settings.corpus_form(name)
        case "datasets":
            return settings.datasets[name].form
        case "encoders":
            return settings.encoders[name].form
    return settings.methods[name].form


def missing_files(root: Path, named: Iterable[Reference]) -> Iterator[Finding]:
    """Yield names of files below ``resources`` that do not exist.

    Args:
        root: Folder of the Snakefile.
        named: References in the configuration, or in a grid.
    """
    for path, name, refers in named:
        section, _, folder = refers.section.partition(".")
        if section != "resources":
            continue
        files = (root / "resources" / folder).iterdir()
        known = {file.stem: file.suffix for file in sorted(files) if file.suffix != ".md"}
        if name not in known:
            (ending,) = {*known.values()}
            yield Finding(path, f"no file resources/{folder}/{name}{ending}", advice(name, known))
