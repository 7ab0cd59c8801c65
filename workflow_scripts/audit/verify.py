"""Re-hash every artefact and trace every record back to its inputs.

For each file that does not match its record, prints the path, what was found and what to do:

  changed     its bytes are not the ones that were written
  missing     a record names it, but it does not exist
  foreign     the pipeline did not write it, or not in this place
  stale       an input has been rebuilt since, so a rerun might give another file
  unlabelled  it lacks the label of a substitution that one of its inputs has

Sources from outside the pipeline are hashed again where this machine has them: files below the data root, in installed
packages, in the Hub's local cache. Checkpoints of unfinished training are held against their own manifests, finished
tasks of evaluations against their checksums; a job of that place would pass over a damaged one.

Exit code 1 if there is such a file. That artefacts were made by a version of the code other than the present one, or by
one that no commit holds, is said, and is no failure.

  python -m workflow_scripts verify results/demo
"""

import argparse
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from rich.filesize import decimal

from workflow_scripts.audit.disk import Inspection, Inventory, collect, inspect, inspect_all, is_sealed
from workflow_scripts.audit.lookup import (
    artefact_of,
    is_outside,
    key_of,
    name_of,
    read_inside,
    record_at,
)
from workflow_scripts.audit.printing import Answer, Rows, rows_of
from workflow_scripts.audit.sources import hashes_of
from workflow_scripts.data.sources import data_root
from workflow_scripts.errors import DataError
from workflow_scripts.graph.notes import asked_last
from workflow_scripts.provenance.artefacts import RECORD_FILE, identity
from workflow_scripts.provenance.closure import meaning_now
from workflow_scripts.provenance.record import Input, Record
from workflow_scripts.training.manifests import MANIFEST, damaged_file, read_manifest

Kind = Literal["changed", "missing", "foreign", "stale", "unlabelled"]
Todo = Literal["delete", "rerun", "restore"]

REPORT = "report.html"
_RESULTS = Path("results")
_MADE_BY_RULES = (_RESULTS.name, "benchmarks")


class Finding(NamedTuple):
    """One file that is not as recorded."""

    path: str
    kind: Kind
    found: str
    todo: Todo
    """Delete the file, rerun the job that makes it, or restore what no job makes."""
    target: str
    """The file to delete, make or restore; for a part of a model folder, the folder's record."""
    affects: int = 0
    """Number of artefacts made from it, directly or indirectly."""


@dataclass
class Outcome:
    """What ``verify`` found; paths are relative to the working directory."""

    studies: list[str]
    artefacts: int
    bytes: int
    outside: int
    """Number of sources outside the pipeline that records name."""
    not_at_hand: list[str]
    """Those of them that are no files on this machine, so that they could not be hashed again."""
    findings: list[Finding]
    notes: list[str]
    """What is no fault."""


def studies_of(named: Iterable[Path]) -> list[Path]:
    """The folders to audit: those that are named, or each below ``results``.

    Raises:
        DataError: if there is none, since nothing to check does not mean that nothing is wrong.
    """
    studies = list(named) or sorted(_RESULTS.glob("*/"))
    for folder in studies or [_RESULTS]:
        if not folder.is_dir() or not studies:
            raise DataError(f"{folder}: no such study. Run the pipeline first: snakemake.")
    return studies


class Verifier:
    """Compares records with the files that were found.

    An artefact goes by the name of the file that holds its record.
    """

    def __init__(
        self, inventory: Inventory, inspections: Mapping[str, Inspection], studies: Iterable[Path]
    ) -> None:
        self.inventory = inventory
        self.inspections = inspections
        self.studies = [name_of(study) for study in studies]

    def artefact_of(self, path: str) -> str:
        """The artefact that ``path`` is or is part of, whether or not its record is there."""
        return artefact_of(path, self._models.__contains__)

    @cached_property
    def records(self) -> dict[str, Record]:
        """Artefact to record, for records in intact files."""
        return {name: one.record for name, one in sorted(self.inspections.items()) if one.record}

    @cached_property
    def listed(self) -> dict[str, list[str]]:
        """Artefact or other file, existing or missing, to the artefacts whose records list it."""
        found = defaultdict(list)
        for name, record in self.records.items():
            for path in {*(given.path for given in read_inside(record)), *record.outputs}:
                found[path].append(name)
        return dict(found)

    @cached_property
    def _models(self) -> set[str]:
        listed = {path.removesuffix(f"/{RECORD_FILE}") for path in self.listed if path.endswith(RECORD_FILE)}
        return self.inventory.models | listed

    @cached_property
    def damage(self) -> set[str]:
        """Files that are not as they were written, by their checksums."""
        expected = {*self.listed, *(f"{study}/{REPORT}" for study in self.studies)}
        return {
            name
            for name, one in self.inspections.items()
            if one.damaged or (name in expected and is_sealed(Path(name)) and one.checksum is None)
        }

    def not_as_written(self) -> list[str]:
        """Files for which nobody may vouch: by their checksums, or by the record of the model folder they are in."""
        return sorted({*self.damage, *(finding.path for finding in self._parts_of_models())})

    def missing_outputs(self) -> list[str]:
        """Artefacts that were made together with others which are there."""
        every = {path for record in self.records.values() for path in record.outputs}
        return sorted(path for path in every if not Path(path).exists())

    def findings(self) -> list[Finding]:
        """Everything that is wrong, sorted by path; one finding for each path and reason."""
        found = {*self._files(), *self._parts_of_models(), *self._missing()}
        for name, record in self.records.items():
            found.update(self._of_record(name, record))
            for given in read_inside(record):
                found.update(self._of_input(name, record, given))
        return [finding._replace(affects=len(self.made_from(finding.path))) for finding in sorted(found)]

    # Each file on its own

    def _files(self) -> Iterator[Finding]:
        for name, what in self.inventory.strays.items():
            yield _foreign(name, what)
        for name, one in self.inspections.items():
            if name in self.damage:
                checksum = f"checksum {one.checksum[:12]} does not match" if one.checksum else None
                yield self._to_remake(name, "changed", checksum or "its checksum is gone")
            elif self.artefact_of(name) != name:
                continue  # a part of a model
            elif one.checksum is None and name not in self.listed:
                yield _foreign(name, "no checksum, and no record lists it")
            elif one.checksum and one.record is None:
                yield _foreign(name, "has a checksum, but no record that can be read")

    def _parts_of_models(self) -> Iterator[Finding]:
        parts: dict[str, dict[str, str]] = defaultdict(dict)
        for name, one in self.inspections.items():
            if (artefact := self.artefact_of(name)) != name:
                parts[artefact][name] = one.identity
        for artefact, record in self.records.items():
            folder = artefact.removesuffix(RECORD_FILE)
            recorded = {f"{folder}{part}": sha256 for part, sha256 in record.files.items()}
            for path in recorded.keys() | parts[artefact].keys():
                was, now = recorded.get(path), parts[artefact].get(path)
                if was is None:
                    yield _foreign(path, f"{RECORD_FILE} does not list it")
                elif now is None and self.inventory.dropped.get(path) != was:
                    yield self._to_remake(path, "missing", f"{RECORD_FILE} lists it")
                elif now and now != was:
                    hashes = f"sha256 {now[:12]}; {RECORD_FILE} says {was[:12]}"
                    yield self._to_remake(path, "changed", hashes)

    def _to_remake(self, path: str, kind: Kind, found: str) -> Finding:
        """A finding about a file that its job should make again; below results/ and benchmarks/, every file has one."""
        is_made = Path(path).parts[0] in _MADE_BY_RULES
        return Finding(path, kind, found, "rerun" if is_made else "restore", self.artefact_of(path))

    # Files that should exist

    def _missing(self) -> Iterator[Finding]:
        whole = [study for study in self.studies if Path(study).parent == _RESULTS]
        for report in (f"{study}/{REPORT}" for study in whole):
            if report not in self.inspections:
                yield self._to_remake(report, "missing", "the study is unfinished: this is its last artefact")
        for path, names in self.listed.items():
            if not Path(path).exists():
                rest = f" and {len(names) - 1} more" if len(names) > 1 else ""
                yield self._to_remake(path, "missing", f"listed by {min(names)}{rest}")

    # Comparisons between records

    def _of_record(self, name: str, record: Record) -> Iterator[Finding]:
        if name not in record.outputs:
            where = ", ".join(record.outputs) or "no file"
            yield _foreign(name, f"copied or moved: its record belongs to {where}")
        if key_of(record) != record.key:
            altered = "its record was altered and sealed anew: its key is not that of what the record says"
            yield self._to_remake(name, "changed", altered)
        for sibling in record.outputs:
            other = self.records.get(sibling)
            if other and name < sibling and (other.key, other.inputs) != (record.key, record.inputs):
                yield self._to_remake(name, "stale", f"{sibling} is of another run of {record.rule}")

    def _of_input(self, name: str, record: Record, given: Input) -> Iterator[Finding]:
        path = given.path
        if path in self.damage or not Path(path).exists():
            return  # which is a finding of its own
        try:
            if path in self.inspections:
                now, source = self.inspections[path].identity, self.records.get(path)
            else:  # outside the studies
                now, source = identity(Path(path)), record_at(Path(path))
        except DataError as error:
            yield self._to_remake(path, "changed", str(error))
            return
        if now != given.sha256:
            found = f"made from another version of {path}: its hash was {given.sha256[:12]}, now {now[:12]}"
            yield self._to_remake(name, "stale", found)
        if hidden := sorted(set(source.labels if source else ()) - set(record.labels)):
            lacks = f"lacks {', '.join(map(repr, hidden))} of its input {path}"
            yield self._to_remake(name, "unlabelled", lacks)

    # What was made from what

    def behind(self, path: str) -> set[str]:
        """The artefact that ``path`` belongs to, and all that it was made from, directly or indirectly."""
        start = self.artefact_of(path)
        return {start} | _reached(
            start, lambda name: {one.path for one in read_inside(self.records[name])} & self.records.keys()
        )

    def made_from(self, path: str) -> set[str]:
        """Every artefact made from ``path``, a file or a source as records name it, directly or indirectly."""
        return _reached(self.artefact_of(path), lambda name: self.readers.get(name, set()))

    @cached_property
    def readers(self) -> dict[str, set[str]]:
        """File or source to the artefacts that were made from it directly."""
        readers = defaultdict(set)
        for name, record in self.records.items():
            for given in record.inputs.values():
                readers[given.path].add(name)
        return dict(readers)


def _reached(start: str, step: Callable[[str], set[str]]) -> set[str]:
    """All that is reached from ``start`` by any number of steps."""
    found: set[str] = set()
    pending = {start}
    while pending:
        pending = set().union(*map(step, pending)) - found
        found |= pending
    return found


def _foreign(path: str, found: str) -> Finding:
    return Finding(path, "foreign", found, "delete", path)


def damaged_work(inventory: Inventory) -> Iterator[Finding]:
    """Checkpoints and finished tasks that are not as they were written."""
    for name in inventory.checkpoints:
        manifest = read_manifest(Path(name))
        damaged = damaged_file(Path(name), manifest) if manifest else MANIFEST
        if damaged is not None:
            kind: Kind = "changed" if Path(name, damaged).exists() else "missing"
            found = (
                "not as this checkpoint was written: training would go on from the one before, or begin anew"
            )
            yield Finding(f"{name}/{damaged}", kind, found, "delete", name)
    for name in inventory.tasks:
        task = inspect(Path(name))
        if task.damaged or task.checksum is None:
            found = "not as this task was written: its evaluation would take it again"
            yield Finding(name, "changed", found, "delete", name)


def changed_sources(verifier: Verifier, present: Mapping[str, str]) -> Iterator[Finding]:
    """Sources from outside the pipeline that are not the ones artefacts were made from.

    Args:
        verifier: The artefacts.
        present: Source to its sha256 now; those that are not in it could not be looked at.
    """
    for source, now in present.items():
        read = {
            name: given.sha256
            for name in verifier.readers[source]
            for given in verifier.records[name].inputs.values()
            if given.path == source and given.sha256 != now
        }
        for reader in sorted(read)[:1]:
            found = f"sha256 {now[:12]}; read by {reader} as {read[reader][:12]}"
            affects = len(verifier.made_from(source))
            yield Finding(source, "changed", found, "restore", source, affects)


def unchecked(studies: Iterable[Path]) -> Verifier:
    """All records below ``studies`` and how they are connected; no file is hashed, so damage goes unnoticed."""
    studies = list(studies)
    inventory = collect(studies)
    inspections = {name: inspect(Path(name), hashing=False) for name in inventory.sizes}
    return Verifier(inventory, inspections, studies)


def checked(studies: Iterable[Path], *, show_progress: bool = False) -> Verifier:
    """All records below ``studies``, every file hashed."""
    studies = list(studies)
    inventory = collect(studies)
    return Verifier(inventory, inspect_all(inventory, show_progress=show_progress), studies)


def verify(studies: list[Path], *, data_root: Path | None = None, show_progress: bool = False) -> Outcome:
    """Check every file below ``studies``.

    Args:
        studies: Folders of results.
        data_root: Where local sources are; None leaves them out.
        show_progress: Whether to draw a bar on standard error.
    """
    verifier = checked(studies, show_progress=show_progress)
    outside = sorted(source for source in verifier.readers if is_outside(source))
    present = hashes_of(outside, data_root)
    work, sources = damaged_work(verifier.inventory), changed_sources(verifier, present)
    not_at_hand = [source for source in outside if source not in present]
    return Outcome(
        studies=verifier.studies,
        artefacts=len(verifier.records.keys() | set(map(verifier.artefact_of, verifier.damage))),
        bytes=sum(verifier.inventory.sizes.values()),
        outside=len(outside),
        not_at_hand=not_at_hand,
        findings=[*verifier.findings(), *work, *sources],
        notes=[*_notes(verifier, not_at_hand)],
    )


def _notes(verifier: Verifier, not_at_hand: list[str]) -> Iterator[str]:
    inventory, records = verifier.inventory, verifier.records.values()
    changed = (
        [file for file, was in record.meaning.items() if meaning_now(file) != was] for record in records
    )
    for files, count in Counter(", ".join(sorted(files)) for files in changed).most_common():
        if files:
            yield f"made by other code: {count} artefacts; changed since: {files}"
    if uncommitted := sum(record.origin.dirty for record in records):
        yield f"made by code that was not committed: {uncommitted} artefacts"
    if inventory.checkpoints:
        yield f"unfinished training: {len(inventory.checkpoints)} complete checkpoints"
    if inventory.tasks:
        yield f"finished tasks, for evaluations to go on from: {len(inventory.tasks)} tables"
    if not_at_hand:
        yield f"not on this machine: {', '.join(not_at_hand)}"


# The verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what verify takes."""
    parser.add_argument("studies", type=Path, nargs="*", metavar="FOLDER", help="default: all below results/")
    parser.add_argument(
        "--data-root", type=Path, default=data_root(), help="folder of local sources; default: SEMBLANCE_DATA"
    )


def answer(args: argparse.Namespace) -> Answer:
    """Findings with the commands that mend them, and what else there is to know."""
    show_progress = sys.stderr.isatty() and not args.json
    outcome = verify(studies_of(args.studies), data_root=args.data_root, show_progress=show_progress)
    kinds = Counter(finding.kind for finding in outcome.findings)
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "all as recorded"
    return Answer(
        f"{outcome.artefacts} artefacts, {decimal(outcome.bytes)}, in {', '.join(outcome.studies)}, "
        f"from {outcome.outside} outside sources, {outcome.outside - len(outcome.not_at_hand)} of them hashed "
        f"again: {said}",
        not outcome.findings,
        [Rows("findings", rows_of(outcome.findings)), *commands(outcome.findings), *outcome.notes],
        {"artefacts": outcome.artefacts, "not_at_hand": outcome.not_at_hand},
    )


def commands(findings: Iterable[Finding]) -> list[str]:
    """Shell commands that repair everything.

    A file that is only deleted is not made again as long as what was made from it exists; hence --forcerun. Files of
    configuration are those with which the study was last run in this folder.
    """
    order: tuple[Todo, ...] = ("delete", "restore", "rerun")
    lines = defaultdict(set)
    for finding in sorted(findings, key=lambda finding: order.index(finding.todo)):
        line = {"delete": "rm -r", "restore": "# restore"}.get(finding.todo) or _rerun(finding.target)
        lines[line].add(shlex.quote(finding.target))
    return [f"{line} {' '.join(sorted(targets))}" for line, targets in lines.items()]


def _rerun(target: str) -> str:
    """The command that makes targets of the same study again, but for the targets."""
    asked = asked_last(Path(target).parts[1])
    files = f" --configfile {shlex.join(asked.configfiles)}" if asked and asked.configfiles else ""
    return f"snakemake --cores all{files} --forcerun"
