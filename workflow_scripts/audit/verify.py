"""Re-hash every artefact and trace every record back to its inputs.

For each file that does not match its record, prints the path, what was found and what to do:

  changed     its bytes are not the ones that were written
  truncated   it ends too early
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
import json
import os
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn

from workflow_scripts.audit.disk import (
    Damage,
    Inspection,
    Inventory,
    collect,
    inspect,
    inspect_all,
    inspect_unhashed,
)
from workflow_scripts.audit.lookup import HERE, is_outside, key_of, name_of, record_at, recorded_name
from workflow_scripts.audit.printing import Answer, Rows, rows_of
from workflow_scripts.audit.sources import hashes_of
from workflow_scripts.data.sources import data_root
from workflow_scripts.errors import DataError
from workflow_scripts.graph.notes import asked_last
from workflow_scripts.provenance.artefacts import CHECKSUMMED_SUFFIXES, RECORD_FILE, identity
from workflow_scripts.provenance.closure import meaning_now
from workflow_scripts.provenance.record import Input, Record
from workflow_scripts.training.manifests import MANIFEST, damaged_file, read_manifest

Kind = Literal["changed", "truncated", "missing", "foreign", "stale", "unlabelled"]
Todo = Literal["delete", "rerun", "restore"]

REPORT = "report.html"
_MADE_BY_RULES = ("results", "benchmarks")


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


class OtherCode(NamedTuple):
    """An artefact, and the files of its code that have changed since it was made."""

    path: str
    files: tuple[str, ...]


@dataclass
class Outcome:
    """What ``verify`` found; paths are relative to the root."""

    studies: list[str]
    artefacts: int
    bytes: int
    outside: int
    """Number of sources outside the pipeline that records name."""
    not_at_hand: list[str]
    """Those of them that are no files on this machine, so that they could not be hashed again."""
    checkpoints: int
    """Number of complete checkpoints of unfinished training, damaged ones included."""
    tasks: int
    """Number of tables of finished tasks of evaluations, damaged ones included."""
    checkpoint_files: int
    checkpoint_bytes: int
    findings: list[Finding] = field(default_factory=list)
    other_code: list[OtherCode] = field(default_factory=list)

    uncommitted: int = 0
    """Number of artefacts that were made by code with changes that no commit holds."""


def studies_of(named: Iterable[Path], root: Path = HERE) -> list[Path]:
    """The folders to audit: those that are named, or all below ``results`` if none or ``results`` itself is named.

    Raises:
        DataError: if there is none, since nothing to check does not mean that nothing is wrong.
    """
    results = root / "results"
    studies: list[Path] = []
    for folder in list(named) or [results]:
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder. Run the pipeline first: snakemake.")
        is_all = folder.resolve() == results.resolve()
        studies += sorted(path for path in folder.iterdir() if path.is_dir()) if is_all else [folder]
    if not studies:
        raise DataError(f"{results}: no study in this folder. Run the pipeline first: snakemake.")
    return studies


class Verifier:
    """Compares records with the files that were found.

    Artefacts are named by their path: that of the folder for a model folder, that of the file for all others.
    """

    def __init__(
        self, inventory: Inventory, inspections: Mapping[str, Inspection], studies: Iterable[str]
    ) -> None:
        self.inventory = inventory
        self.inspections = inspections
        self.studies = list(studies)
        self._elsewhere: dict[str, str | DataError] = {}

    def artefact_of(self, path: str) -> str:
        """The name of the artefact that ``path`` is or is part of."""
        if path.endswith(f"/{RECORD_FILE}"):
            return path.removesuffix(f"/{RECORD_FILE}")
        return path if path in self.inventory.models else self.inventory.model_of(path) or path

    @cached_property
    def records(self) -> dict[str, Record]:
        """Artefact to record, for records in intact files."""
        found = [(name, inspection.record) for name, inspection in sorted(self.inspections.items())]
        return {self.artefact_of(name): record for name, record in found if record is not None}

    @cached_property
    def inputs(self) -> dict[str, dict[str, str]]:
        """Artefact to its inputs inside the pipeline, with the hash that each had."""
        return {
            name: {
                recorded_name(given.path, self.inventory.root): given.sha256
                for given in record.inputs.values()
                if not is_outside(given.path)
            }
            for name, record in self.records.items()
        }

    @cached_property
    def outputs(self) -> dict[str, list[str]]:
        """Artefact to everything that its job wrote."""
        records = self.records.items()
        return {
            name: [recorded_name(path, self.inventory.root) for path in record.outputs]
            for name, record in records
        }

    @cached_property
    def models(self) -> set[str]:
        """Model folders, existing or missing, known from their own records or those of other artefacts."""
        paths = [path for name in self.records for path in (*self.inputs[name], *self.outputs[name])]
        return self.inventory.models | {
            self.artefact_of(path) for path in paths if Path(path).name == RECORD_FILE
        }

    @cached_property
    def listed(self) -> dict[str, list[str]]:
        """Artefact, existing or missing, to those whose records list it as an input or output."""
        found = defaultdict(list)
        for name in self.records:
            for unit in {self.artefact_of(path) for path in (*self.inputs[name], *self.outputs[name])}:
                found[unit].append(name)
        return dict(found)

    @cached_property
    def damage(self) -> dict[str, Damage]:
        """Files that are not as they were written, by their checksums."""
        expected = {*self.listed, *(f"{study}/{REPORT}" for study in self.studies)}
        found: dict[str, Damage] = {
            name: inspection.damage for name, inspection in self.inspections.items() if inspection.damage
        }
        for name, inspection in self.inspections.items():
            part = self.inventory.model_of(name) is not None
            if (
                name in expected
                and inspection.checksum is None
                and Path(name).suffix in CHECKSUMMED_SUFFIXES
                and not part
            ):
                found.setdefault(name, "changed")  # complete, but rewritten by something else
        return found

    def not_as_written(self) -> list[str]:
        """Files for which nobody may vouch: by their checksums, or by the record of the model folder they are in."""
        return sorted({*self.damage, *(finding.path for finding in self._parts_of_models())})

    def missing_outputs(self) -> list[str]:
        """Artefacts that were made together with others which are there."""
        every = {path for name in self.records for path in self.outputs[name]}
        return sorted(path for path in every if not (self.inventory.root / path).exists())

    def findings(self) -> list[Finding]:
        """Everything that is wrong, sorted by path; one finding for each path and reason."""
        found = {*self._files(), *self._parts_of_models(), *self._missing()}
        for name, record in self.records.items():
            found.update(self._place(name), self._key(name, record))
            found.update(self._inputs(name, record), self._siblings(name, record))
        found.update(self._damage_elsewhere())
        return [finding._replace(affects=len(self.made_from(finding.path))) for finding in sorted(found)]

    # Each file on its own

    def _files(self) -> Iterator[Finding]:
        for name in self.inventory.leftovers:
            yield _foreign(name, "left behind by a job that was killed, or being written")
        for name in self.inventory.anomalies:
            yield _foreign(name, "neither a file nor a folder; perhaps a broken link")
        for name, inspection in self.inspections.items():
            if name in self.damage:
                known = inspection.checksum
                checksum = f"checksum {known[:12]} does not match" if known else "its checksum is gone"
                yield self._to_remake(name, self.damage[name], checksum)
            elif inspection.checksum is None:
                if not self._is_accounted_for(name):
                    yield _foreign(name, "no checksum, and no record lists it")
            elif inspection.record is None and self.inventory.model_of(name) is None:
                yield _foreign(name, "has a checksum, but no record that can be read")

    def _is_accounted_for(self, name: str) -> bool:
        """Whether a file without a checksum is part of a model folder or listed by a record."""
        folders = {
            folder.as_posix() for folder in Path(name).parents
        }  # one may be a model that lost its record
        return self.inventory.model_of(name) is not None or bool({name, *folders} & self.listed.keys())

    def _parts_of_models(self) -> Iterator[Finding]:
        for folder in self.inventory.models & self.records.keys():
            recorded = self.records[folder].files
            dropped = self.inventory.dropped
            names = [name for name in self.inventory.parts[folder] if Path(name).name != RECORD_FILE]
            found = {os.path.relpath(name, folder): self.inspections[name].sha256 for name in names}
            for part in recorded.keys() | found.keys():
                path = f"{folder}/{part}"
                if part not in found and dropped.get(path) == recorded[part]:
                    continue
                if part not in found:
                    yield self._to_remake(path, "missing", f"{RECORD_FILE} lists it")
                elif part not in recorded:
                    yield _foreign(path, f"{RECORD_FILE} does not list it")
                elif found[part] != recorded[part]:
                    hashes = f"sha256 {str(found[part])[:12]}; {RECORD_FILE} says {recorded[part][:12]}"
                    yield self._to_remake(
                        path, "changed" if self.inventory.sizes[path] else "truncated", hashes
                    )

    def _to_remake(self, path: str, kind: Kind, found: str) -> Finding:
        """A finding about a file that its job should make again; below results/ and benchmarks/, every file has one."""
        if Path(path).parts[0] not in _MADE_BY_RULES:
            return Finding(path, kind, found, "restore", path)
        unit = self.artefact_of(path)
        return Finding(path, kind, found, "rerun", f"{unit}/{RECORD_FILE}" if unit in self.models else path)

    # Files that should exist

    def _missing(self) -> Iterator[Finding]:
        whole = [study for study in self.studies if Path(study).parent == Path("results")]
        for report in (f"{study}/{REPORT}" for study in whole):
            if report not in self.inspections:
                yield self._to_remake(report, "missing", "the study is unfinished: this is its last artefact")
        for path, names in self.listed.items():
            place = self.inventory.root / path
            rest = f" and {len(names) - 1} more" if len(names) > 1 else ""
            if place.is_dir() and not (place / RECORD_FILE).exists():
                yield self._to_remake(f"{path}/{RECORD_FILE}", "missing", f"listed by {min(names)}{rest}")
            elif not place.exists():
                yield self._to_remake(path, "missing", f"listed by {min(names)}{rest}")

    # Comparisons between records

    def _place(self, name: str) -> Iterator[Finding]:
        if name not in map(self.artefact_of, self.outputs[name]):
            where = ", ".join(self.outputs[name]) or "no file"
            yield _foreign(name, f"copied or moved: its record belongs to {where}")

    def _key(self, name: str, record: Record) -> Iterator[Finding]:
        if key_of(record) != record.key:
            altered = "its record was altered and sealed anew: its key is not that of what the record says"
            yield self._to_remake(name, "changed", altered)

    def _inputs(self, name: str, record: Record) -> Iterator[Finding]:
        for path, was in self.inputs[name].items():
            now = self._identity(path)
            if isinstance(now, DataError):
                continue  # missing or damaged, which is a finding of its own
            if now != was:
                found = f"made from another version of {path}: its hash was {was[:12]}, now {now[:12]}"
                yield self._to_remake(name, "stale", found)
            given = self._record_of(path)
            hidden = sorted(set(given.labels) - set(record.labels)) if given else []
            if hidden:
                yield self._to_remake(
                    name, "unlabelled", f"lacks {', '.join(map(repr, hidden))} of its input {path}"
                )

    def _identity(self, path: str) -> str | DataError:
        """The hash of an input as a job would record it now."""
        file = f"{path}/{RECORD_FILE}" if path in self.inventory.models else path
        if file in self.damage or not (self.inventory.root / path).exists():
            return DataError(path)
        if file in self.inspections:
            return self.inspections[file].identity
        if path not in self._elsewhere:
            try:
                self._elsewhere[path] = identity(self.inventory.root / path)
            except DataError as error:
                self._elsewhere[path] = error
        return self._elsewhere[path]

    def _record_of(self, path: str) -> Record | None:
        if path in self._elsewhere:
            return record_at(self.inventory.root / path)
        return self.records.get(self.artefact_of(path))

    def _siblings(self, name: str, record: Record) -> Iterator[Finding]:
        for sibling in map(self.artefact_of, self.outputs[name]):
            other = self.records.get(sibling)
            if other is not None and name < sibling and _job(other) != _job(record):
                yield self._to_remake(name, "stale", f"{sibling} is of another run of {record.rule}")

    # Files outside the studies

    def _damage_elsewhere(self) -> Iterator[Finding]:
        for path, error in self._elsewhere.items():
            place = self.inventory.root / path
            no_model = place.is_dir() and not (place / RECORD_FILE).exists()  # which is reported as missing
            if isinstance(error, DataError) and not no_model:
                yield self._to_remake(path, "changed", str(error))

    def behind(self, path: str) -> set[str]:
        """The artefact that ``path`` belongs to, and all that it was made from, directly or indirectly."""
        found: set[str] = set()
        pending = {self.artefact_of(path)}
        while pending:
            found |= pending
            read = {self.artefact_of(given) for name in pending for given in self.inputs[name]}
            pending = (read & self.records.keys()) - found
        return found

    def made_from(self, path: str) -> set[str]:
        """Every artefact made from ``path``, directly or indirectly."""
        found: set[str] = set()
        pending = [self.artefact_of(path)]
        while pending:
            new = self._readers.get(pending.pop(), set()) - found
            found |= new
            pending.extend(new)
        return found

    @cached_property
    def _readers(self) -> dict[str, set[str]]:
        readers = defaultdict(set)
        for name, inputs in self.inputs.items():
            for path in inputs:
                readers[self.artefact_of(path)].add(name)
        return dict(readers)


def _foreign(path: str, found: str) -> Finding:
    return Finding(path, "foreign", found, "delete", path)


def _job(record: Record) -> tuple[str, dict[str, Input]]:
    """What all outputs of one run of a job share: its key and inputs, sources from outside among them."""
    return record.key, record.inputs


def other_code(records: Mapping[str, Record]) -> list[OtherCode]:
    """Artefacts made by other versions of the project's files than the present ones."""
    present = cache(meaning_now)
    differing = {
        name: tuple(sorted(file for file, was in record.meaning.items() if present(file) != was))
        for name, record in sorted(records.items())
    }
    return [OtherCode(name, files) for name, files in differing.items() if files]


def damaged_checkpoints(inventory: Inventory) -> tuple[int, list[Finding]]:
    """The number of complete checkpoints, and those that are not as they were written.

    One without a manifest was being written when its training was killed: that is no damage, and training passes over
    it.
    """
    complete = [name for name in inventory.checkpoints if (inventory.root / name / MANIFEST).exists()]
    findings = []
    for name in complete:
        manifest = read_manifest(inventory.root / name)
        damaged = damaged_file(inventory.root / name, manifest) if manifest else MANIFEST
        if damaged is not None:
            kind: Kind = "changed" if (inventory.root / name / damaged).exists() else "missing"
            found = (
                "not as this checkpoint was written: training would go on from the one before, or begin anew"
            )
            findings.append(Finding(f"{name}/{damaged}", kind, found, "delete", name))
    return len(complete), findings


def damaged_tasks(inventory: Inventory) -> list[Finding]:
    """Tables of finished tasks that are not as they were written."""
    found = "not as this task was written: its evaluation would take it again"
    kinds = {name: inspect(inventory.root / name, part_of_model=False) for name in inventory.tasks}
    return [
        Finding(name, inspection.damage or "foreign", found, "delete", name)
        for name, inspection in kinds.items()
        if inspection.damage or inspection.checksum is None
    ]


def changed_sources(verifier: Verifier, present: Mapping[str, str]) -> list[Finding]:
    """Sources from outside the pipeline that are not the ones artefacts were made from.

    Args:
        verifier: The artefacts.
        present: Source to its sha256 now; those that are not in it could not be looked at.
    """
    readers: dict[tuple[str, str], set[str]] = defaultdict(set)
    for name, record in verifier.records.items():
        for given in record.inputs.values():
            if present.get(given.path, given.sha256) != given.sha256:
                readers[given.path, given.sha256].add(name)
    findings = []
    for (source, was), names in sorted(readers.items()):
        found = f"sha256 {present[source][:12]}; read by {min(names)} as {was[:12]}"
        affected = names.union(*map(verifier.made_from, names))
        reader = min(names)
        is_read_anew = _leaves_open(verifier.records[reader], was)
        todo: Todo = "rerun" if is_read_anew else "restore"
        file = f"{reader}/{RECORD_FILE}" if reader in verifier.models else reader
        target = file if is_read_anew else source
        findings.append(Finding(source, "changed", found, todo, target, len(affected)))
    return findings


def _leaves_open(record: Record, sha256: str) -> bool:
    """Whether a job takes files of a source as they are, so that the next run reads a changed one by itself."""
    settings = {name: value for name, value in record.settings.items() if name != "source"}
    return "source" in record.settings and sha256 not in json.dumps(settings)


def outcome_of(verifier: Verifier, data_root: Path | None) -> Outcome:
    """Everything that ``verify`` reports."""
    inventory, records = verifier.inventory, verifier.records
    given = [given.path for record in records.values() for given in record.inputs.values()]
    outside = {path for path in given if is_outside(path)}
    present = hashes_of(sorted(outside), data_root)
    checkpoints, damaged = damaged_checkpoints(inventory)
    return Outcome(
        studies=verifier.studies,
        artefacts=len(records.keys() | {verifier.artefact_of(name) for name in verifier.damage}),
        bytes=sum(inventory.sizes.values()),
        outside=len(outside),
        not_at_hand=sorted(outside - present.keys()),
        checkpoints=checkpoints,
        tasks=len(inventory.tasks),
        checkpoint_files=inventory.checkpoint_files,
        checkpoint_bytes=inventory.checkpoint_bytes,
        findings=[
            *verifier.findings(),
            *damaged,
            *damaged_tasks(inventory),
            *changed_sources(verifier, present),
        ],
        other_code=other_code(records),
        uncommitted=sum(record.origin.dirty for record in records.values()),
    )


def unchecked(studies: Iterable[Path], root: Path = HERE) -> Verifier:
    """All records below ``studies`` and how they are connected; no file is hashed, so damage goes unnoticed."""
    studies = list(studies)
    inventory = collect(studies, root)
    inspections = {name: inspect_unhashed(root / name) for name in inventory.sizes}
    return Verifier(inventory, inspections, [name_of(study, root) for study in studies])


def verify(studies: list[Path], *, data_root: Path | None = None, show_progress: bool = False) -> Outcome:
    """Check every file below ``studies``.

    Args:
        studies: Folders of results.
        data_root: Where local sources are; None leaves them out.
        show_progress: Whether to draw a bar on standard error.
    """
    inventory = collect(studies)
    columns = (TextColumn("hashing"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not show_progress)
    with bar:
        task = bar.add_task("hashing", total=sum(inventory.sizes.values()))
        inspections = inspect_all(inventory, lambda size: bar.advance(task, size))
    return outcome_of(Verifier(inventory, inspections, map(name_of, studies)), data_root)


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
        [Rows("findings", rows_of(outcome.findings)), *commands(outcome.findings), *_notes(outcome)],
        {"artefacts": outcome.artefacts, "not_at_hand": outcome.not_at_hand, "tasks": outcome.tasks},
    )


def _notes(outcome: Outcome) -> Iterator[str]:
    """What is no fault."""
    for files, count in Counter(other.files for other in outcome.other_code).most_common():
        yield f"made by other code: {count} artefacts; changed since: {', '.join(files)}"
    if outcome.uncommitted:
        yield f"made by code that was not committed: {outcome.uncommitted} artefacts"
    if outcome.checkpoint_files:
        size = decimal(outcome.checkpoint_bytes)
        counted = f"{outcome.checkpoints} complete checkpoints, {size} in {outcome.checkpoint_files} files"
        yield f"unfinished training: {counted}"
    if outcome.tasks:
        yield f"finished tasks, for evaluations to go on from: {outcome.tasks} tables"
    if outcome.not_at_hand:
        yield f"not on this machine: {', '.join(outcome.not_at_hand)}"


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
