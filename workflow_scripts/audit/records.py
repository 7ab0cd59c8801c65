"""List what cannot say where it comes from, or says it badly.

  no record       a file that no record lists, or an artefact whose record cannot be read
  wrong columns   a table that has no schema of this pipeline (schemas.py)
  damaged         a record of Snakemake's own that is no JSON

Artefacts of uncommitted code, or of code outside a repository, are listed as notes, since the record has the
hash of every file; --strict makes them failures. So is whether Snakemake's own records are there: the audit
needs none of them. Exit code 1 where there is any failure.
"""

import argparse
import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Literal, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

from workflow_scripts import schemas
from workflow_scripts.artefacts import RECORD_FILE, SEALED_SUFFIXES
from workflow_scripts.audit.reading import console, print_json, table
from workflow_scripts.audit.verify import Judge, studies_of, unchecked

_SCHEMAS = [value for value in vars(schemas).values() if isinstance(value, pa.Schema)]
_SNAKEMAKES = Path(".snakemake/metadata")


class Fault(NamedTuple):
    """A file that cannot say where it comes from."""

    path: str
    kind: Literal["no record", "wrong columns", "damaged"]
    found: str


@dataclass
class Records:
    """What there is to say about all records."""

    artefacts: int
    faults: list[Fault] = field(default_factory=list)
    dirty: list[str] = field(default_factory=list)
    """Artefacts made by code with changes that were not committed."""
    without_commit: list[str] = field(default_factory=list)
    """Artefacts made outside a Git repository."""
    snakemakes: int = 0
    """Records of Snakemake's own."""


def records(root: Path, studies: list[Path]) -> Records:
    """Look at every record below ``studies``."""
    judge = unchecked(root, studies)
    found = Records(artefacts=len(judge.records))
    found.faults = [*_without_record(judge), *_wrong_columns(judge)]
    found.dirty = [name for name, record in judge.records.items() if record.dirty]
    found.without_commit = [name for name, record in judge.records.items() if record.commit is None]
    for path in sorted((root / _SNAKEMAKES).rglob("*")):
        if path.is_file():
            found.snakemakes += 1
            if not _is_json(path):
                fault = "no JSON; Snakemake would take its output for up to date"
                found.faults.append(Fault(path.relative_to(root).as_posix(), "damaged", fault))
    return found


def _without_record(judge: Judge) -> Iterator[Fault]:
    for name in sorted({*judge.tree.leftovers, *judge.tree.oddities}):
        yield Fault(name, "no record", "left behind by a job that was killed, or being written")
    for name, look in sorted(judge.looks.items()):
        model = judge.tree.model_of(name)
        needs_one = Path(name).suffix in SEALED_SUFFIXES or name not in judge.listed
        if look.record is None and model is None and needs_one:
            yield Fault(name, "no record", "its record cannot be read" if look.seal else "carries none")
        if look.record is None and model is not None and Path(name).name == RECORD_FILE:
            yield Fault(name, "no record", "its record cannot be read")


def _wrong_columns(judge: Judge) -> Iterator[Fault]:
    for name in judge.records:
        if name.endswith(".parquet"):
            columns = pq.read_schema(judge.tree.root / name).remove_metadata()
            if not any(columns.equals(schema) for schema in _SCHEMAS):
                yield Fault(name, "wrong columns", ", ".join(columns.names))


def _is_json(path: Path) -> bool:
    try:
        json.loads(path.read_text("utf-8"))
    except ValueError:
        return False
    return True


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit records`` takes."""
    parser.add_argument("--strict", action="store_true", help="uncommitted code is a failure, too")


def run(args: argparse.Namespace) -> int:
    """Look at every record and print; exit code 1 on any failure."""
    found = records(args.root, studies_of(args.root, []))
    red = bool(found.faults or (args.strict and (found.dirty or found.without_commit)))
    if args.json:
        faults = [fault._asdict() for fault in found.faults]
        print_json({"green": not red, **asdict(found), "faults": faults})
    else:
        show(found, console(), red=red)
    return 1 if red else 0


def show(found: Records, out: Console, *, red: bool) -> None:
    """Print what there is to say for people."""
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
            "Snakemake's own records are gone: its next run goes by dates; audit stale does not",
            style="yellow",
        )
    out.print(
        f"{found.artefacts} artefacts with records, {found.snakemakes} records of Snakemake's own, "
        f"{len(found.faults)} faults",
        style="red" if red else "green",
    )
