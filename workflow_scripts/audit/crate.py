"""Compare the metadata of an RO-Crate, written by export or by anyone else, with the files in its folder.

Checks what validators of RO-Crates leave out: that every file has the sha256 given in the metadata, and every file that
was left out the one in its name; that every file is described, that dates are valid and no job ends before it begins,
that every reference can be resolved, and that no path leads out of the folder. Exit code 1 if anything is wrong.
"""

import argparse
import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, NamedTuple

from rich.console import Console

from workflow_scripts.audit.export import METADATA, NAMED_BY_HASH, named_by_hash
from workflow_scripts.audit.printing import console, print_json, table
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.record import sha256_of

_DATES = ("startTime", "endTime", "datePublished", "dateCreated", "dateModified")
Entity = Mapping[str, Any]


class Problem(NamedTuple):
    """A disagreement between the metadata and the folder."""

    entity: str
    found: str


def check(folder: Path) -> tuple[int, list[Problem]]:
    """The number of entities, and what is wrong with them.

    Raises:
        DataError: if the folder holds no crate.
    """
    place = folder / METADATA
    try:
        graph = json.loads(place.read_text("utf-8"))["@graph"]
        entities = {entity["@id"]: entity for entity in graph}
    except FileNotFoundError as error:
        raise DataError(
            f"{place}: no such file. Export a crate: python -m workflow_scripts.audit export."
        ) from error
    except NotADirectoryError as error:
        raise DataError(f"{folder}: a file. Name the folder of a crate, such as crates/<study>.") from error
    except (ValueError, KeyError, TypeError) as error:
        raise DataError(
            f"{place}: not the metadata of an RO-Crate ({error}). Export the study again."
        ) from error
    problems = [
        Problem(entity["@id"], found) for entity in graph for found in _wrong(entity, entities, folder)
    ]
    repeated = len(graph) - len(entities)
    problems += [Problem(METADATA, f"{repeated} identifiers occur more than once")] if repeated else []
    return len(entities), [*problems, *_undescribed(folder, entities)]


def _wrong(entity: Entity, entities: Mapping[str, Entity], folder: Path) -> Iterator[str]:
    if "File" in _listed(entity.get("@type")) and "://" not in entity["@id"]:
        yield from _wrong_file(entity, folder)
    if entity["@id"].startswith(NAMED_BY_HASH) and entity["@id"] != named_by_hash(str(entity.get("sha256"))):
        yield f"its name is not that of sha256 {str(entity.get('sha256'))[:12]}"
    yield from _wrong_dates(entity)
    for key, value in entity.items():
        for one in _listed(value):
            target = one.get("@id") if isinstance(one, Mapping) else None
            if (
                target is not None
                and target not in entities
                and not str(target).startswith(("http://", "https://"))
            ):
                yield f"{key} refers to {target}, which does not exist"


def _wrong_file(entity: Entity, folder: Path) -> Iterator[str]:
    place = folder / entity["@id"]
    if not place.resolve().is_relative_to(folder.resolve()):
        yield "leads out of the crate"
    elif not place.is_file():
        yield "missing"
    elif "sha256" not in entity:
        yield "has no sha256"
    elif (found := sha256_of(place)) != entity["sha256"]:
        yield f"sha256 is {found[:12]}; the metadata say {str(entity['sha256'])[:12]}"


def _wrong_dates(entity: Entity) -> Iterator[str]:
    dates = {}
    for key in _DATES:
        if key in entity:
            try:
                dates[key] = datetime.fromisoformat(entity[key])
            except (TypeError, ValueError):
                yield f"{key} {entity[key]!r} is not a date"
    try:
        if "endTime" in dates and dates.get("startTime", dates["endTime"]) > dates["endTime"]:
            yield "ends before it begins"
    except TypeError:
        yield "one of its dates has no time zone"


def _undescribed(folder: Path, entities: Mapping[str, Entity]) -> Iterator[Problem]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and name != METADATA and name not in entities:
            yield Problem(name, "in the folder, but not in the metadata")


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit crate`` takes."""
    parser.add_argument("folder", type=Path, help="folder of a crate, such as crates/<study>")


def run(args: argparse.Namespace) -> int:
    """Check and print; exit code 1 if anything is wrong."""
    entities, problems = check(args.folder)
    if args.json:
        found = [problem._asdict() for problem in problems]
        print_json({"green": not problems, "entities": entities, "problems": found})
    else:
        show(args.folder, entities, problems, console())
    return 1 if problems else 0


def show(folder: Path, entities: int, problems: list[Problem], out: Console) -> None:
    """Print what is wrong as a table."""
    if problems:
        shown = table("entity", "found")
        for problem in problems:
            shown.add_row(*problem)
        out.print(shown)
    verdict = f"{folder}: {entities} entities, {len(problems)} problems"
    out.print(verdict, style="red" if problems else "green", soft_wrap=True)
