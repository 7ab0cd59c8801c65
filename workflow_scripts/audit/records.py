"""List files whose provenance is missing or faulty.

  no record       a file that no record lists, or an artefact whose record cannot be read
  wrong columns   a table whose schema is none of this pipeline's (workflow_scripts/columns)
  damaged         one of Snakemake's own records, if it is not JSON

Artefacts made by uncommitted code, or by code outside a repository, are only noted, since a record has the hash of
every file of code; --strict makes them failures. It is also noted if Snakemake's own records are gone, which the audit
does not need. Exit code 1 if there is any failure.
"""

import argparse
import importlib
import json
import pkgutil
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from functools import cache
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from workflow_scripts.audit.printing import console, print_json, table
from workflow_scripts.audit.verify import Verifier, studies_of, unchecked
from workflow_scripts.provenance.artefacts import CHECKSUMMED_SUFFIXES, RECORD_FILE

_SNAKEMAKES = Path(".snakemake/metadata")


class Fault(NamedTuple):
    """A file without proper provenance."""

    path: str
    kind: Literal["no record", "wrong columns", "damaged"]
    found: str


@dataclass
class Records:
    """What was found about all records."""

    artefacts: int
    faults: list[Fault] = field(default_factory=list)
    dirty: list[str] = field(default_factory=list)
    """Artefacts made by code with uncommitted changes."""
    without_commit: list[str] = field(default_factory=list)
    """Artefacts made outside a Git repository."""
    snakemakes: int = 0
    """Number of Snakemake's own records."""


def records(root: Path, studies: list[Path]) -> Records:
    """Check every record below ``studies``."""
    verifier = unchecked(root, studies)
    found = Records(artefacts=len(verifier.records))
    found.faults = [*_without_record(verifier), *_wrong_columns(verifier)]
    found.dirty = [name for name, record in verifier.records.items() if record.origin.dirty]
    found.without_commit = [name for name, record in verifier.records.items() if record.origin.commit is None]
    for path in sorted((root / _SNAKEMAKES).rglob("*")):
        if path.is_file():
            found.snakemakes += 1
            if not _is_json(path):
                fault = "not JSON; Snakemake would treat the output as up to date"
                found.faults.append(Fault(path.relative_to(root).as_posix(), "damaged", fault))
    return found


def _without_record(verifier: Verifier) -> Iterator[Fault]:
    for name in sorted({*verifier.inventory.leftovers, *verifier.inventory.anomalies}):
        yield Fault(name, "no record", "left behind by a job that was killed, or being written")
    for name, inspection in sorted(verifier.inspections.items()):
        model = verifier.inventory.model_of(name)
        needs_one = Path(name).suffix in CHECKSUMMED_SUFFIXES or name not in verifier.listed
        if inspection.record is None and model is None and needs_one:
            yield Fault(name, "no record", "its record cannot be read" if inspection.checksum else "has none")
        if inspection.record is None and model is not None and Path(name).name == RECORD_FILE:
            yield Fault(name, "no record", "its record cannot be read")


def _wrong_columns(verifier: Verifier) -> Iterator[Fault]:
    for name in verifier.records:
        if name.endswith(".parquet"):
            columns = pq.read_schema(verifier.inventory.root / name).remove_metadata()
            if not any(columns.equals(schema) for schema in _schemas()):
                yield Fault(name, "wrong columns", ", ".join(columns.names))


@cache
def _schemas() -> list[pa.Schema]:
    """Every schema of this pipeline; figures that compute points import PyTorch, which no other question needs."""
    from workflow_scripts import columns, figures

    return [
        value
        for package in (columns, figures)
        for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")
        for value in vars(importlib.import_module(module.name)).values()
        if isinstance(value, pa.Schema)
    ]


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text("utf-8"))
    except ValueError:
        return False
    return True


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit records`` takes."""
    parser.add_argument("--strict", action="store_true", help="treat uncommitted code as a failure")


def run(args: argparse.Namespace) -> int:
    """Check every record and print; exit code 1 if there is any failure."""
    found = records(args.root, studies_of(args.root, []))
    red = bool(found.faults or (args.strict and (found.dirty or found.without_commit)))
    if args.json:
        faults = [fault._asdict() for fault in found.faults]
        print_json({"green": not red, **asdict(found), "faults": faults})
    else:
        show(found, console(), red=red)
    return 1 if red else 0


def show(found: Records, out: Console, *, red: bool) -> None:
    """Print what was found as text."""
    if found.faults:
        shown = table("path", "kind", "found")
        for fault in found.faults:
            shown.add_row(*fault)
        out.print(shown)
    for what, names in (
        ("uncommitted code", found.dirty),
        ("code outside a repository", found.without_commit),
    ):
        if names:
            out.print(f"made by {what}: {len(names)} of {found.artefacts} artefacts", style="yellow")
    if not found.snakemakes:
        out.print(
            "Snakemake's own records are gone: its next run will compare dates; audit stale does not need them",
            style="yellow",
        )
    out.print(
        f"{found.artefacts} artefacts with records, {found.snakemakes} of Snakemake's own records, "
        f"{len(found.faults)} faults",
        style="red" if red else "green",
    )
