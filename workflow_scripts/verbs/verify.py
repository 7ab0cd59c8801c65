"""Re-hash every artefact and trace every record back to its inputs.

For each file that does not match its record, prints the path, what was found and what to do:

  changed     its bytes are not the ones that were written
  missing     a record names it, but it does not exist
  foreign     the pipeline did not write it, or not in this place
  stale       an input has been rebuilt since, so a rerun might give another file
  unlabelled  it lacks the label of a substitution that one of its inputs has

Sources from outside the pipeline are hashed again where this machine has them: files below the data root, in installed
packages, in the Hub's local cache. Checkpoints of unfinished training and entries of the cache are held against their
own lists of hashes; a job would pass over a damaged one.

Exit code 1 if there is such a file. That artefacts were made by a version of the code other than the present one, or by
one that no commit holds, is said, and is no failure.

  python -m workflow_scripts verify results/demo
"""

import re
import shlex
import sys
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from rich.filesize import decimal

from workflow_scripts.data import hub, sources
from workflow_scripts.errors import ConfigError, DataError
from workflow_scripts.graph.configuration import as_in_a_file, load_config
from workflow_scripts.graph.place import last_call
from workflow_scripts.graph.study import data_root_of
from workflow_scripts.provenance import cache
from workflow_scripts.provenance.artefacts import RECORD_FILE, identity
from workflow_scripts.provenance.closure import ROOT, meaning_now
from workflow_scripts.provenance.record import Input, Record, sha256_of
from workflow_scripts.training.manifests import damaged_file, read_manifest
from workflow_scripts.verbs.plan import words_of
from workflow_scripts.verbs.printing import Answer, Rows, argument, rows_of
from workflow_scripts.verbs.records import (
    Records,
    is_outside,
    is_sealed,
    key_of,
    name_of,
    read_inside,
    record_at,
    studies_of,
    study_folder,
)

Kind = Literal["changed", "missing", "foreign", "stale", "unlabelled"]
Todo = Literal["delete", "restore", "rerun"]
Found = tuple[str, Kind, str]
"""A path, what is wrong with it, and what was found."""

REPORT = "report.html"
_CACHE = Path("results/.cache")
"""Of the configuration as it is shipped."""
_MADE_BY_RULES = ("results", "benchmarks")
_PACKAGE = re.compile(r"(?!__main__)(\w+)(?:==[^/]+)?/(.+)")  # no dot: looking for a.b would import a
_HUB = re.compile(r"([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})/(.+)")


class Finding(NamedTuple):
    """One file that is not as recorded."""

    path: str
    kind: Kind
    found: str
    todo: Todo
    """Delete the file, restore what no job makes, or rerun the job that makes it."""
    target: str
    """The file to delete, make or restore; for a part of a model folder, the folder's record."""
    affects: int
    """Number of artefacts made from it, directly or indirectly."""


class Outcome(NamedTuple):
    """What ``verify`` found; paths are relative to the working directory."""

    records: Records
    findings: list[Finding]
    """Sorted by path; one for each path and reason."""
    outside: Mapping[str, str | None]
    """Source outside the pipeline to its sha256 now; None where it is no file on this machine."""


def verify(studies: list[Path], *, show_progress: bool = False) -> Outcome:
    """Check every file below ``studies``.

    Args:
        studies: Folders of results.
        show_progress: Whether to draw a bar on standard error.
    """
    records = Records(studies, show_progress=show_progress)
    roots = list(dict.fromkeys(filter(None, map(data_root_now, studies))))
    outside = {name: sha256_now(name, roots) for name in sorted(records.readers) if is_outside(name)}
    damaged = damaged_files(records)
    cached = {name_of(entry): fault for folder in _caches(records) for entry, fault in cache.faults(folder)}
    found: set[Found] = {
        *_files(records, damaged),
        *_parts_of_models(records),
        *_missing(records),
        *_unfinished(records),
        *_sources(records, outside),
        *((entry, "changed", f"{fault}: its work would be done again") for entry, fault in cached.items()),
    }
    for name, record in records.by_file.items():
        found.update(_of_record(records, name, record))
        for given in read_inside(record):
            if given.path not in damaged and Path(given.path).exists():  # else it is a finding of its own
                found.update(_of_input(records, name, record, given))
    spare = {*records.checkpoints, *cached}
    return Outcome(records, [_finding(records, spare, *one) for one in sorted(found)], outside)


def _caches(records: Records) -> set[Path]:
    """Where the studies' last runs have cached; of a copy without Snakemake's notes, the usual place."""
    calls = filter(None, (last_call(Path(folder).name) for folder in records.folders))
    return {Path(call.cache).expanduser() for call in calls if call.cache} or {_CACHE}


def _finding(records: Records, spare: Container[str], path: str, kind: Kind, found: str) -> Finding:
    """What was found, with what to do; below results/ and benchmarks/, a job makes every file that belongs there.

    Args:
        records: Of all files.
        spare: What jobs can do without.
        path: The file.
        kind: What is wrong with it.
        found: In words.
    """
    todo: Todo = "rerun" if Path(path).parts[0] in _MADE_BY_RULES else "restore"
    target = records.artefact_of(path)
    if kind == "foreign" or path in spare:
        todo, target = "delete", path
    return Finding(path, kind, found, todo, target, len(records.made_from(path)))


# Each file on its own


def damaged_files(records: Records) -> set[str]:
    """Files that are not as they were written, by their checksums."""
    expected = {*records.listed, *(f"{folder}/{REPORT}" for folder in records.folders)}
    return {
        name
        for name, one in records.inspections.items()
        if one.damaged or (name in expected and is_sealed(Path(name)) and one.checksum is None)
    }


def not_as_written(records: Records) -> list[str]:
    """Files for which nobody may vouch: by their checksums, or by the record of the model folder they are in."""
    return sorted({*damaged_files(records), *(path for path, _, _ in _parts_of_models(records))})


def _files(records: Records, damaged: set[str]) -> Iterator[Found]:
    for name, what in records.strays.items():
        yield name, "foreign", what
    for name, one in records.inspections.items():
        if name in damaged:
            broken = (
                f"checksum {one.checksum[:12]} does not match" if one.checksum else "its checksum is gone"
            )
            yield name, "changed", broken
        elif records.artefact_of(name) != name:
            continue  # a part of a model
        elif one.checksum is None and name not in records.listed:
            yield name, "foreign", "no checksum, and no record lists it"
        elif one.checksum and one.record is None:
            yield name, "foreign", "has a checksum, but no record that can be read"


def _parts_of_models(records: Records) -> Iterator[Found]:
    parts: dict[str, dict[str, str]] = defaultdict(dict)
    for name, one in records.inspections.items():
        if (artefact := records.artefact_of(name)) != name:
            parts[artefact][name] = one.identity
    for artefact, record in records.by_file.items():
        folder = artefact.removesuffix(RECORD_FILE)
        recorded = {f"{folder}{part}": sha256 for part, sha256 in record.files.items()}
        for path in recorded.keys() | parts[artefact].keys():
            was, now = recorded.get(path), parts[artefact].get(path)
            if was is None:
                yield path, "foreign", f"{RECORD_FILE} does not list it"
            elif now is None and records.dropped.get(path) != was:
                yield path, "missing", f"{RECORD_FILE} lists it"
            elif now and now != was:
                yield path, "changed", f"sha256 {now[:12]}; {RECORD_FILE} says {was[:12]}"


def _missing(records: Records) -> Iterator[Found]:
    for folder in records.folders:
        report = f"{folder}/{REPORT}"
        if Path(folder).parent == Path("results") and report not in records.inspections:
            yield report, "missing", "the study is unfinished: this is its last artefact"
    for path, names in records.listed.items():
        if not Path(path).exists():
            rest = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield path, "missing", f"listed by {min(names)}{rest}"


def _unfinished(records: Records) -> Iterator[Found]:
    """Checkpoints that are not as they were written."""
    for name in records.checkpoints:
        manifest = read_manifest(Path(name))
        damaged = damaged_file(Path(name), manifest) if manifest else "its manifest"
        if damaged is not None:
            after = "training would go on from the checkpoint before, or begin anew"
            yield name, "changed", f"{damaged} is not as it was written: {after}"


# Comparisons between records


def _of_record(records: Records, name: str, record: Record) -> Iterator[Found]:
    if name not in record.outputs:
        where = ", ".join(record.outputs) or "no file"
        yield name, "foreign", f"copied or moved: its record belongs to {where}"
    if key_of(record) != record.key:
        altered = "its record was altered and sealed anew: its key is not that of what the record says"
        yield name, "changed", altered
    for sibling in record.outputs:
        other = records.by_file.get(sibling)
        if other and name < sibling and (other.key, other.inputs) != (record.key, record.inputs):
            yield name, "stale", f"{sibling} is of another run of {record.rule}"


def _of_input(records: Records, name: str, record: Record, given: Input) -> Iterator[Found]:
    path = given.path
    try:
        if path in records.inspections:
            now, source = records.inspections[path].identity, records.by_file.get(path)
        else:  # outside the studies
            now, source = identity(Path(path)), record_at(Path(path))
    except DataError as error:
        yield path, "changed", str(error)
        return
    if now != given.sha256:
        found = f"made from another version of {path}: its hash was {given.sha256[:12]}, now {now[:12]}"
        yield name, "stale", found
    if hidden := sorted(set(source.labels if source else ()) - set(record.labels)):
        yield name, "unlabelled", f"lacks {', '.join(map(repr, hidden))} of its input {path}"


# Sources from outside the pipeline


def _sources(records: Records, present: Mapping[str, str | None]) -> Iterator[Found]:
    """Those that are not the ones artefacts were made from, each with the first of its readers."""
    for source, now in present.items():
        read = {
            name: given.sha256
            for name in sorted(records.readers[source])
            for given in records.by_file[name].inputs.values()
            if given.path == source and now not in (None, given.sha256)
        }
        for reader, was in [*read.items()][:1]:
            yield source, "changed", f"sha256 {str(now)[:12]}; read by {reader} as {was[:12]}"


def data_root_now(study: Path) -> Path | None:
    """The folder of local sources: that of a study's last run here, or else the environment variable SEMBLANCE_DATA."""
    if call := last_call(study.name):
        with suppress(ConfigError):  # its files may be gone
            return data_root_of(load_config(ROOT, call.configfiles, as_in_a_file(call.config)))
    return sources.data_root()


def sha256_now(source: str, data_roots: Sequence[Path]) -> str | None:
    """The hash of a source on this machine; None where it is not here, or is no file. Nothing is downloaded.

    Args:
        source: As records name it: ``local:`` below the data root, ``package:`` in an installed package, ``hub:`` in
            the local cache of the Hugging Face Hub. Answers of translators and language models are no files.
        data_roots: Folders that ``local:`` files may be in.
    """
    kind, _, name = source.partition(":")
    for folder, path in _candidates(kind, name, data_roots):
        inside = not Path(path).is_absolute() and ".." not in Path(path).parts  # a record may be a stranger's
        if inside and (folder / path).is_file():
            return sha256_of(folder / path)
    return None


def _candidates(kind: str, name: str, data_roots: Sequence[Path]) -> Iterator[tuple[Path, str]]:
    """Folders that may hold a source, and its path below each."""
    if kind == "local":
        yield from ((root, name) for root in data_roots)
    elif kind == "package" and (found := _PACKAGE.fullmatch(name)):
        spec = find_spec(found[1])
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent, found[2]
    elif kind == "hub" and (found := _HUB.fullmatch(name)):
        for held in get_args(hub.Kind):  # the Hub's client keeps models and datasets apart
            yield hub.snapshot(found[1], found[2], held), found[3]


# The verb


ARGUMENTS = (
    argument("studies", type=study_folder, nargs="*", metavar="FOLDER", help="default: all below results/"),
)


def answer(studies: list[Path]) -> Answer:
    """Findings with the commands that mend them, and what else there is to know."""
    found = verify(studies_of(studies), show_progress=sys.stderr.isatty())
    records, findings, outside = found
    kinds = Counter(finding.kind for finding in findings)
    said = ", ".join(f"{count} {kind}" for kind, count in kinds.most_common()) or "all as recorded"
    absent = [source for source, now in outside.items() if now is None]
    size = decimal(sum(records.sizes.values()))
    return Answer(
        f"{len(records.by_file)} artefacts, {size}, in {', '.join(records.folders)}, "
        f"from {len(outside)} outside sources, {len(outside) - len(absent)} of them hashed again: {said}",
        not findings,
        [Rows("findings", rows_of(findings)), *commands(findings), *_notes(records, absent)],
        {"artefacts": len(records.by_file), "not_at_hand": absent},
    )


def _notes(records: Records, absent: list[str]) -> Iterator[str]:
    """What is no fault."""
    made = records.by_file.values()
    changed = ([file for file, was in record.meaning.items() if meaning_now(file) != was] for record in made)
    for files, count in Counter(", ".join(sorted(files)) for files in changed).most_common():
        if files:
            yield f"made by other code: {count} artefacts; changed since: {files}"
    if uncommitted := sum(record.origin.dirty for record in made):
        yield f"made by code that was not committed: {uncommitted} artefacts"
    if records.checkpoints:
        yield f"unfinished training: {len(records.checkpoints)} complete checkpoints"
    if absent:
        yield f"not on this machine: {', '.join(absent)}"


def commands(findings: Iterable[Finding]) -> list[str]:
    """Shell commands that repair everything.

    A file that is only deleted is not made again as long as what was made from it exists; hence --forcerun. The
    configuration is that of the study's last run in this folder.
    """
    order: tuple[Todo, ...] = ("delete", "restore", "rerun")
    lines = defaultdict(set)
    for finding in sorted(findings, key=lambda finding: order.index(finding.todo)):
        line = {"delete": "rm -r", "restore": "# restore"}.get(finding.todo) or _rerun(finding.target)
        lines[line].add(shlex.quote(finding.target))
    return [f"{line} {' '.join(sorted(targets))}" for line, targets in lines.items()]


def _rerun(target: str) -> str:
    """The command that makes targets of the same study again, but for the targets."""
    asked = last_call(Path(target).parts[1])
    return shlex.join(["snakemake", "--cores", "all", *(words_of(asked) if asked else []), "--forcerun"])
