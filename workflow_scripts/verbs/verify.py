"""Check that every file of a study is the one that was written, by hashing it again and following its record.

Prints each file that is not as recorded, how many artefacts were made from it, and the commands that repair it:

  changed     its bytes are not the ones that were written
  missing     a record names it, but it does not exist
  foreign     the pipeline did not write it, or wrote it in another place
  stale       an input has been made again since, so that a rerun might give another file
  unlabelled  it lacks the label of a substitution that one of its inputs has

Sources from outside the pipeline are hashed again if this machine has them: files below the data root, in installed
packages, in the Hub's local cache. Artefacts that other code, or uncommitted code, has made are counted, and are no
fault. Checkpoints and the cache are checked by the jobs that use them.

Exit code 1 if a file is not as recorded.

  python -m workflow_scripts verify results/demo
"""

import re
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple, get_args

from rich.filesize import decimal

from workflow_scripts.data import hub, sources
from workflow_scripts.errors import ConfigError
from workflow_scripts.graph.place import Call, last_call
from workflow_scripts.graph.study import data_root_of
from workflow_scripts.provenance.closure import meaning_now
from workflow_scripts.provenance.record import Record, is_outside, sha256_of
from workflow_scripts.verbs.plan import FOLDERS, audited_folders, given_call, snakemake_options, whole_config
from workflow_scripts.verbs.printing import Answer, Rows, rows_of
from workflow_scripts.verbs.records import REPORT, Kind, Records, present_state

Found = tuple[str, Kind, str]
"""A path, its fault, and the fault in words."""

_UNKNOWN = ["--configfile", "CONFIG"]
"""Options for a study that has not run here."""
_MADE_BY_RULES = ("results", "benchmarks")
"""Folders in which jobs make every file that belongs there."""
_PACKAGE = re.compile(r"(?!__main__)(\w+)(?:==[^/]+)?/(.+)")  # no dot: looking for a.b would import a
_HUB = re.compile(r"([\w.-]+(?:/[\w.-]+)?)@([0-9a-f]{40})/(.+)")


class Finding(NamedTuple):
    """One file that is not as recorded."""

    path: str
    kind: Kind
    found: str
    affects: int
    """Number of artefacts made from it, directly or indirectly."""


def verify(
    studies: Sequence[Path], given: Call | None
) -> tuple[Records, list[Finding], dict[str, str | None]]:
    """Check every file below ``studies``; paths are relative to the working directory.

    Args:
        studies: Folders of results.
        given: The configuration that names the data root; None for that of each study's last run here.

    Returns:
        The records; findings sorted by path, one for each path and reason; and each source outside the pipeline with
        its sha256 now, or None if this machine does not have it.
    """
    records = Records(studies)
    roots = dict.fromkeys(_data_root(given or last_call(study.name)) for study in studies)
    outside = {name: sha256_now(name, filter(None, roots)) for name in records.readers if is_outside(name)}
    found: set[Found] = {
        *((path, *fault) for path, fault in records.damage.items()),
        *_orphans(records),
        *_missing(records),
        *_changed_sources(records, outside),
        *(one for name, record in records.by_file.items() for one in _contradictions(records, name, record)),
    }
    return records, [Finding(*one, len(records.made_from(one[0]))) for one in sorted(found)], outside


# Each file on its own


def _orphans(records: Records) -> Iterator[Found]:
    """Files that no record lists, and files in another place than their record says."""
    for name, what in records.strays.items():
        yield name, "foreign", what
    for name, one in records.inspections.items():
        if name in records.damage or records.artefact_name(name) != name:
            continue
        if one.checksum is None and name not in records.listed:
            yield name, "foreign", "no checksum, and no record lists it"
        elif one.checksum and one.record is None:
            yield name, "foreign", "has a checksum, but no record that can be read"
        elif one.record and name not in one.record.outputs:
            where = ", ".join(one.record.outputs) or "no file"
            yield name, "foreign", f"copied or moved: its record belongs to {where}"


def _missing(records: Records) -> Iterator[Found]:
    for folder in records.folders:
        report = f"{folder}/{REPORT}"
        if Path(folder).parent == Path("results") and report not in records.inspections:
            yield report, "missing", "the study is unfinished: this is its last artefact"
    for path, names in records.listed.items():
        if not Path(path).exists():
            rest = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield path, "missing", f"listed by {min(names)}{rest}"


# Records compared with each other and with sources


def _contradictions(records: Records, name: str, record: Record) -> Iterator[Found]:
    """Differences between a record, its own key, those of its job's other outputs, and its inputs as they are now."""
    if record.recomputed_key() != record.key:
        altered = "its record was altered and sealed again"
        yield name, "changed", f"{altered}: its key is not that of its settings, code and inputs"
    for sibling in record.outputs:
        other = records.by_file.get(sibling)
        if other and name < sibling and (other.key, other.inputs) != (record.key, record.inputs):
            yield name, "stale", f"{sibling} is of another run of {record.rule}"
    for path, was in {(given.path, given.sha256) for given in record.inner.values()}:
        if path in records.damage or not Path(path).exists():
            continue  # a finding of its own
        if (here := records.inspections.get(path)) and here.checksum:
            state, source = "" if here.identity == was else "rebuilt since", here.record
        else:  # in another study, or no artefact
            state, source = present_state(path, was)
        if state == "damaged":
            yield path, "changed", "its checksum or its record is broken"
        elif state == "rebuilt since":
            yield name, "stale", f"made from another version of {path}, whose hash was {was[:12]}"
        if hidden := sorted(set(source.labels if source else ()) - set(record.labels)):
            yield name, "unlabelled", f"lacks {', '.join(map(repr, hidden))} of its input {path}"


def _changed_sources(records: Records, now: Mapping[str, str | None]) -> Iterator[Found]:
    """Sources from outside that are not those that were read, each with the first of its readers."""
    for source, sha256 in now.items():
        read = (
            f"read by {name} as {given.sha256[:12]}"
            for name in sorted(records.readers[source])
            for given in records.by_file[name].inputs.values()
            if given.path == source and sha256 not in (None, given.sha256)
        )
        if reader := next(read, None):
            yield source, "changed", f"sha256 {str(sha256)[:12]}; {reader}"


def _data_root(call: Call | None) -> Path | None:
    """The data root of a configuration, or else SEMBLANCE_DATA."""
    if call:
        with suppress(ConfigError):  # its files may be gone
            return data_root_of(whole_config(call)["data_root"])
    return sources.data_root()


def sha256_now(source: str, data_roots: Iterable[Path]) -> str | None:
    """The hash of a source on this machine; None if it is not here, or not a file. Nothing is downloaded.

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


def _candidates(kind: str, name: str, data_roots: Iterable[Path]) -> Iterator[tuple[Path, str]]:
    """Folders that may hold a source, and its path below each."""
    if kind == "local":
        yield from ((root, name) for root in data_roots)
    elif kind == "package" and (found := _PACKAGE.fullmatch(name)):
        spec = find_spec(found[1])
        if spec is not None and spec.origin is not None:
            yield Path(spec.origin).parent, found[2]
    elif kind == "hub" and (found := _HUB.fullmatch(name)):
        for held in get_args(hub.Kind):  # the Hub's client has a folder for each kind
            yield hub.snapshot(found[1], found[2], held), found[3]


# Repair


def commands(records: Records, findings: Iterable[Finding], given: Call | None = None) -> list[str]:
    """Shell commands that repair everything.

    A file that is only deleted is not made again as long as artefacts made from it exist; hence --forcerun.

    Args:
        records: The records of the studies.
        findings: Faults.
        given: The configuration; None for that of each study's last run here.
    """
    lines: dict[str, set[str]] = {"rm -r": set(), "# restore": set()}
    for path, kind, *_ in findings:
        folder, *below = Path(path).parts
        line, target = "# restore", path
        if kind == "foreign":  # jobs can do without it
            line = "rm -r"
        elif folder in _MADE_BY_RULES:
            call, target = given or last_call(below[0]), records.artefact_name(path)
            words = snakemake_options(call) if call else _UNKNOWN
            line = shlex.join(["snakemake", "--cores", "all", *words, "--forcerun"])
        lines.setdefault(line, set()).add(shlex.quote(target))
    return [f"{line} {' '.join(sorted(targets))}" for line, targets in lines.items() if targets]


# The verb


ARGUMENTS = FOLDERS


def answer(studies: list[Path], configfile: list[str], config: list[str]) -> Answer:
    """Findings with the commands that repair them, and notes."""
    given = given_call(configfile, config) if configfile or config else None
    folders = audited_folders(studies, configfile, config)
    records, findings, outside = verify(folders, given)
    kinds = Counter(finding.kind for finding in findings).most_common()
    said = ", ".join(f"{count} {kind}" for kind, count in kinds) or "all as recorded"
    absent = [source for source, now in outside.items() if now is None]
    mending = commands(records, findings, given)
    size = decimal(sum(records.sizes.values()))
    return Answer(
        f"{len(records.by_file)} artefacts, {size}, in {', '.join(records.folders)}, "
        f"from {len(outside)} outside sources, {len(outside) - len(absent)} of them hashed again: {said}",
        not findings,
        [Rows("findings", rows_of(findings)), *mending, *_notes(records, absent)],
        {"commands": mending, "artefacts": len(records.by_file), "not_at_hand": absent},
    )


def _notes(records: Records, absent: Sequence[str]) -> Iterator[str]:
    """Facts worth knowing that are no fault."""
    made = records.by_file.values()
    changed = ([file for file, was in record.meaning.items() if meaning_now(file) != was] for record in made)
    for files, count in Counter(", ".join(sorted(files)) for files in changed).most_common():
        if files:
            yield f"made by other code: {count} artefacts; changed since: {files}"
    if uncommitted := sum(record.origin.dirty for record in made):
        yield f"made by code that was not committed: {uncommitted} artefacts"
    if absent:
        yield f"not on this machine: {', '.join(absent)}"
