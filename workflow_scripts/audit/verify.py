"""Re-hash every artefact and walk every record back to its inputs.

Says of each file that is not what its record promises where it is, what was found and what to do:

  changed     its bytes are not the ones that were written
  truncated   it ends too early
  missing     a record names it, and it is not there
  foreign     the pipeline did not write it, or not to this place
  stale       an input was made anew since, so a rerun could give another file
  unlabelled  it hides a substitution that one of its inputs declares

Exit code 0 when there is none of these, 1 otherwise. Artefacts made by other code than the present are
listed, and are no failure. Unfinished training (folders of checkpoints) is counted, not judged.
"""

import argparse
import os
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import Literal, NamedTuple

from rich.console import Console
from rich.filesize import decimal
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from workflow_scripts.artefacts import RECORD_FILE, SEALED_SUFFIXES, identity
from workflow_scripts.audit.disk import Damage, Look, Tree, collect, glance_at, look_at_all
from workflow_scripts.audit.reading import console, is_outside, name_of, print_json, record_at, recorded_name
from workflow_scripts.closure import ROOT
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import Record, sha256_of

Kind = Literal["changed", "truncated", "missing", "foreign", "stale", "unlabelled"]
Todo = Literal["delete", "rerun", "restore"]

REPORT = "report.html"


class Finding(NamedTuple):
    """One thing that is not as recorded."""

    path: str
    kind: Kind
    found: str
    todo: Todo
    """Delete the file, rerun the job that makes it, or bring back what no job makes."""
    target: str
    """What to do it to: the file, or the record of the model folder that it is part of."""
    affects: int = 0
    """How many artefacts were made from it, directly or through others."""


class OtherCode(NamedTuple):
    """An artefact, and the files of its code that have changed since."""

    path: str
    files: tuple[str, ...]


@dataclass
class Outcome:
    """What ``verify`` found; paths are relative to the root."""

    studies: list[str]
    artefacts: int
    bytes: int
    outside: int
    """Sources outside the pipeline that records name."""
    checkpoint_files: int
    checkpoint_bytes: int
    findings: list[Finding] = field(default_factory=list)
    other_code: list[OtherCode] = field(default_factory=list)

    def as_data(self) -> dict[str, object]:
        """The outcome as JSON can hold it."""
        data = asdict(self)
        data["findings"] = [finding._asdict() for finding in self.findings]
        data["other_code"] = [other._asdict() for other in self.other_code]
        return {"green": not self.findings, **data}


def studies_of(root: Path, named: Iterable[Path]) -> list[Path]:
    """The folders to audit: those named; every folder below ``results`` where none or ``results`` is named.

    Raises:
        DataError: if there is none, as nothing to check is not the same as nothing wrong.
    """
    results = root / "results"
    studies: list[Path] = []
    for folder in list(named) or [results]:
        if not folder.is_dir():
            raise DataError(f"{folder}: no such folder. Run the pipeline first: snakemake.")
        is_all = folder.resolve() == results.resolve()
        studies += sorted(path for path in folder.iterdir() if path.is_dir()) if is_all else [folder]
    if not studies:
        raise DataError(f"{results}: no study in it. Run the pipeline first: snakemake.")
    return studies


class Judge:
    """Compares what records say with what was found.

    An artefact goes by one name: a model folder by the folder's, any other by the file's.
    """

    def __init__(self, tree: Tree, looks: Mapping[str, Look], studies: Iterable[str]) -> None:
        self.tree = tree
        self.looks = looks
        self.studies = list(studies)
        self._elsewhere: dict[str, str | DataError] = {}

    def unit(self, path: str) -> str:
        """The name of the artefact that ``path`` is or is part of."""
        if path.endswith(f"/{RECORD_FILE}"):
            return path.removesuffix(f"/{RECORD_FILE}")
        return path if path in self.tree.models else self.tree.model_of(path) or path

    @cached_property
    def records(self) -> dict[str, Record]:
        """Artefact to record, where the file with the record is whole."""
        looks = sorted(self.looks.items())
        return {self.unit(name): look.record for name, look in looks if look.record is not None}

    @cached_property
    def inputs(self) -> dict[str, dict[str, str]]:
        """Artefact to its inputs inside the pipeline, each with the identity it had."""
        return {
            name: {
                recorded_name(given.path, self.tree.root): given.sha256
                for given in record.inputs.values()
                if not is_outside(given.path)
            }
            for name, record in self.records.items()
        }

    @cached_property
    def outputs(self) -> dict[str, list[str]]:
        """Artefact to all that its job wrote."""
        records = self.records.items()
        return {
            name: [recorded_name(path, self.tree.root) for path in record.outputs] for name, record in records
        }

    @cached_property
    def models(self) -> set[str]:
        """Model folders, there or not, by their own records or those of others."""
        paths = [path for name in self.records for path in (*self.inputs[name], *self.outputs[name])]
        return self.tree.models | {self.unit(path) for path in paths if Path(path).name == RECORD_FILE}

    @cached_property
    def listed(self) -> dict[str, list[str]]:
        """Artefact, there or not, to those whose records list it as input or output."""
        found = defaultdict(list)
        for name in self.records:
            for unit in {self.unit(path) for path in (*self.inputs[name], *self.outputs[name])}:
                found[unit].append(name)
        return dict(found)

    @cached_property
    def damage(self) -> dict[str, Damage]:
        """Files that are not as they were written, by their seals."""
        expected = {*self.listed, *(f"{study}/{REPORT}" for study in self.studies)}
        found: dict[str, Damage] = {name: look.damage for name, look in self.looks.items() if look.damage}
        for name, look in self.looks.items():
            part = self.tree.model_of(name) is not None
            if name in expected and look.seal is None and Path(name).suffix in SEALED_SUFFIXES and not part:
                found.setdefault(name, "changed")  # whole, but rewritten by something else
        return found

    def findings(self) -> list[Finding]:
        """Everything that is wrong, sorted by path; one row for each path and reason."""
        found = {*self._files(), *self._parts_of_models(), *self._missing()}
        for name, record in self.records.items():
            found.update(self._place(name), self._inputs(name, record), self._siblings(name, record))
        found.update(self._damage_elsewhere())
        return [finding._replace(affects=len(self.made_from(finding.path))) for finding in sorted(found)]

    # Each file by itself

    def _files(self) -> Iterator[Finding]:
        for name in self.tree.leftovers:
            yield _foreign(name, "left behind by a job that was killed, or being written")
        for name in self.tree.oddities:
            yield _foreign(name, "neither a file nor a folder; a link to nothing?")
        for name, look in self.looks.items():
            if name in self.damage:
                seal = f"seal {look.seal[:12]} is broken" if look.seal else "no seal is left"
                yield self._bad(name, self.damage[name], seal)
            elif look.seal is not None and look.record is None and self.tree.model_of(name) is None:
                yield _foreign(name, "sealed, but without a record that can be read")
            elif look.seal is None and not self._is_accounted_for(name):
                yield _foreign(name, "no seal, and no record lists it")

    def _is_accounted_for(self, name: str) -> bool:
        """Whether a file without a seal is part of a model folder or listed by a record."""
        folders = {
            folder.as_posix() for folder in Path(name).parents
        }  # one may be a model that lost its record
        return self.tree.model_of(name) is not None or bool({name, *folders} & self.listed.keys())

    def _parts_of_models(self) -> Iterator[Finding]:
        for folder in self.tree.models & self.records.keys():
            recorded = self.records[folder].files
            names = [name for name in self.tree.parts[folder] if Path(name).name != RECORD_FILE]
            found = {os.path.relpath(name, folder): self.looks[name].sha256 for name in names}
            for part in recorded.keys() | found.keys():
                path = f"{folder}/{part}"
                if part not in found:
                    yield self._bad(path, "missing", f"{RECORD_FILE} lists it")
                elif part not in recorded:
                    yield _foreign(path, f"{RECORD_FILE} does not list it")
                elif found[part] != recorded[part]:
                    hashes = f"sha256 {str(found[part])[:12]}; {RECORD_FILE} says {recorded[part][:12]}"
                    yield self._bad(path, "changed" if self.tree.sizes[path] else "truncated", hashes)

    def _bad(self, path: str, kind: Kind, found: str) -> Finding:
        """A finding about a file that some job should make again."""
        if Path(path).parts[0] != "results":
            return Finding(path, kind, found, "restore", path)
        unit = self.unit(path)
        return Finding(path, kind, found, "rerun", f"{unit}/{RECORD_FILE}" if unit in self.models else path)

    # What should be there

    def _missing(self) -> Iterator[Finding]:
        for report in (f"{study}/{REPORT}" for study in self.studies):
            if report not in self.looks:
                yield self._bad(report, "missing", "the last artefact of a study: unfinished")
        for path, names in self.listed.items():
            place = self.tree.root / path
            rest = f" and {len(names) - 1} more" if len(names) > 1 else ""
            if place.is_dir() and not (place / RECORD_FILE).exists():
                yield self._bad(f"{path}/{RECORD_FILE}", "missing", f"listed by {min(names)}{rest}")
            elif not place.exists():
                yield self._bad(path, "missing", f"listed by {min(names)}{rest}")

    # Records against each other

    def _place(self, name: str) -> Iterator[Finding]:
        if name not in map(self.unit, self.outputs[name]):
            where = ", ".join(self.outputs[name]) or "no file"
            yield _foreign(name, f"copied or moved: its record is that of {where}")

    def _inputs(self, name: str, record: Record) -> Iterator[Finding]:
        for path, was in self.inputs[name].items():
            now = self._identity(path)
            if isinstance(now, DataError):
                continue  # missing or damaged, and said so once
            if now != was:
                found = f"made from another version of {path}: seal {was[:12]}, now {now[:12]}"
                yield self._bad(name, "stale", found)
            given = self._record_of(path)
            hidden = sorted(set(given.labels) - set(record.labels)) if given else []
            if hidden:
                yield self._bad(
                    name, "unlabelled", f"lacks {', '.join(map(repr, hidden))} of its input {path}"
                )

    def _identity(self, path: str) -> str | DataError:
        """The identity of an input as a job would record it now."""
        file = f"{path}/{RECORD_FILE}" if path in self.tree.models else path
        if file in self.damage or not (self.tree.root / path).exists():
            return DataError(path)
        if file in self.looks:
            return self.looks[file].identity
        if path not in self._elsewhere:
            try:
                self._elsewhere[path] = identity(self.tree.root / path)
            except DataError as error:
                self._elsewhere[path] = error
        return self._elsewhere[path]

    def _record_of(self, path: str) -> Record | None:
        if path in self._elsewhere:
            return record_at(self.tree.root / path)
        return self.records.get(self.unit(path))

    def _siblings(self, name: str, record: Record) -> Iterator[Finding]:
        for sibling in map(self.unit, self.outputs[name]):
            other = self.records.get(sibling)
            if other is not None and name < sibling and _job(other) != _job(record):
                yield self._bad(name, "stale", f"{sibling} is of another run of {record.rule}")

    # Outside the studies, and after them

    def _damage_elsewhere(self) -> Iterator[Finding]:
        for path, error in self._elsewhere.items():
            place = self.tree.root / path
            no_model = place.is_dir() and not (place / RECORD_FILE).exists()  # and said to be missing
            if isinstance(error, DataError) and not no_model:
                yield self._bad(path, "changed", str(error))

    def behind(self, path: str) -> set[str]:
        """The artefact that ``path`` is, and every one that it was made from, directly or through others."""
        found: set[str] = set()
        pending = {self.unit(path)}
        while pending:
            found |= pending
            read = {self.unit(given) for name in pending for given in self.inputs[name]}
            pending = (read & self.records.keys()) - found
        return found

    def made_from(self, path: str) -> set[str]:
        """Every artefact made from ``path``, directly or through others."""
        found: set[str] = set()
        pending = [self.unit(path)]
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
                readers[self.unit(path)].add(name)
        return dict(readers)


def _foreign(path: str, found: str) -> Finding:
    return Finding(path, "foreign", found, "delete", path)


def _job(record: Record) -> Record:
    """The part of a record that all outputs of a job share."""
    return record.model_copy(update={"files": {}, "labels": []})


def other_code(records: Mapping[str, Record]) -> list[OtherCode]:
    """Artefacts that the present files of this project did not make."""

    @cache
    def present(file: str) -> str | None:
        return sha256_of(ROOT / file) if (ROOT / file).is_file() else None

    differing = {
        name: tuple(sorted(file for file, was in record.code.items() if present(file) != was))
        for name, record in sorted(records.items())
    }
    return [OtherCode(name, files) for name, files in differing.items() if files]


def judge(tree: Tree, looks: Mapping[str, Look], studies: list[str]) -> Outcome:
    """Bring records and files together."""
    judged = Judge(tree, looks, studies)
    given = [given.path for record in judged.records.values() for given in record.inputs.values()]
    return Outcome(
        studies=studies,
        artefacts=len(judged.records.keys() | {judged.unit(name) for name in judged.damage}),
        bytes=sum(tree.sizes.values()),
        outside=len({path for path in given if is_outside(path)}),
        checkpoint_files=tree.checkpoint_files,
        checkpoint_bytes=tree.checkpoint_bytes,
        findings=judged.findings(),
        other_code=other_code(judged.records),
    )


def unchecked(root: Path, studies: Iterable[Path]) -> Judge:
    """All records below ``studies`` and how they hang together; no file is hashed, so damage goes unnoticed."""
    studies = list(studies)
    tree = collect(root, studies)
    looks = {name: glance_at(root / name) for name in tree.sizes}
    return Judge(tree, looks, [name_of(study, root) for study in studies])


def verify(root: Path, studies: list[Path], *, show_progress: bool = False) -> Outcome:
    """Judge every file below ``studies``; a progress bar goes to standard error."""
    tree = collect(root, studies)
    columns = (TextColumn("hashing"), BarColumn(), DownloadColumn(), TimeRemainingColumn())
    bar = Progress(*columns, console=Console(stderr=True), transient=True, disable=not show_progress)
    with bar:
        task = bar.add_task("hashing", total=sum(tree.sizes.values()))
        looks = look_at_all(tree, lambda size: bar.advance(task, size))
    return judge(tree, looks, [name_of(study, root) for study in studies])


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit verify`` takes."""
    parser.add_argument(
        "studies", type=Path, nargs="*", metavar="RESULTS_DIR", help="default: every folder below results/"
    )


def run(args: argparse.Namespace) -> int:
    """Verify and print; exit code 1 if anything is wrong."""
    studies = studies_of(args.root, args.studies)
    outcome = verify(args.root, studies, show_progress=sys.stderr.isatty() and not args.json)
    if args.json:
        print_json(outcome.as_data())
    else:
        show(outcome, console())
    return 1 if outcome.findings else 0


def show(outcome: Outcome, out: Console) -> None:
    """Print the outcome for people."""
    if outcome.findings:
        out.print(_table(outcome.findings))
        for line in commands(outcome.findings):
            out.print(line, style="bold", soft_wrap=True)
    by_files = Counter(other.files for other in outcome.other_code)
    for files, count in by_files.most_common():
        line = (
            f"made by other code: {count} of {outcome.artefacts} artefacts; changed since: {', '.join(files)}"
        )
        out.print(line, style="yellow", soft_wrap=True)
    if outcome.checkpoint_files:
        size = decimal(outcome.checkpoint_bytes)
        out.print(
            f"unfinished training, not judged: {size} in {outcome.checkpoint_files} files", soft_wrap=True
        )
    kinds = Counter(finding.kind for finding in outcome.findings)
    verdict = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "all as recorded"
    out.print(
        f"{outcome.artefacts} artefacts, {decimal(outcome.bytes)}, in {', '.join(outcome.studies)}, "
        f"from {outcome.outside} sources outside: {verdict}",
        style="red" if outcome.findings else "green",
        soft_wrap=True,
    )


def commands(findings: Iterable[Finding]) -> list[str]:
    """What to type to mend everything.

    A file that is merely deleted is not made again while what was made from it is there; hence --forcerun.
    """
    targets = defaultdict(set)
    for finding in findings:
        targets[finding.todo].add(shlex.quote(finding.target))
    lines: dict[Todo, str] = {"delete": "rm -r", "restore": "# bring back", "rerun": "snakemake --forcerun"}
    return [f"{line} {' '.join(sorted(targets[todo]))}" for todo, line in lines.items() if todo in targets]


def _table(findings: Iterable[Finding]) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for column in ("path", "kind", "found", "what to do"):
        table.add_column(column, overflow="fold")
    table.add_column("affects", justify="right")
    for finding in findings:
        todo = finding.todo if finding.target == finding.path else f"{finding.todo} {finding.target}"
        table.add_row(finding.path, finding.kind, finding.found, todo, str(finding.affects))
    return table
