"""Check that every file of a study is as written, by its hash and its record.

Prints each file that is not as recorded, how many artefacts were made from it, and the commands that repair it:

  changed     its bytes are not those that were written
  missing     a record lists it, but it does not exist
  foreign     the pipeline did not write it, or wrote it in another place
  stale       an input was made again later, so a rerun might give another file
  unlabelled  it lacks the label of a substitution in one of its inputs

External sources are not read: `stale` compares them with the records, and the jobs that read them check pinned hashes.
Checkpoints and the cache are also checked by the jobs that use them. Artefacts made by uncommitted code are counted,
but are not a fault.

Exit code 1 if a file is not as recorded.

  python -m workflow_scripts verify results/demo
"""

import shlex
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from workflow_scripts.errors import MADE_BELOW, snakemake_call
from workflow_scripts.graph.notes import Call, options_for
from workflow_scripts.provenance.record import Record
from workflow_scripts.verbs.plan import FOLDERS, audited_folders, given_call
from workflow_scripts.verbs.printing import Answer, PrintedTable, rows_of
from workflow_scripts.verbs.records import (
    REPORT,
    Fault,
    Kind,
    Records,
    present_state,
)


class Deviation(NamedTuple):
    """A file that is not as recorded."""

    path: str
    kind: Kind
    found: str
    affects: int
    """Number of artefacts made from it, directly or indirectly."""


def verify(studies: Iterable[Path]) -> tuple[Records, list[Deviation]]:
    """Return the records and faulty files below ``studies``; paths are relative to the working directory.

    Returns:
        The records, and the faults sorted by path, one for each path and reason.
    """
    records = Records(studies)
    faults: set[Fault] = {
        *((path, *fault) for path, fault in records.damage.items()),
        *records.strays,
        *_orphans(records),
        *_missing(records),
        *(
            fault
            for name, record in records.by_file.items()
            for fault in _contradictions(records, name, record)
        ),
    }
    return records, [Deviation(*fault, len(records.made_from(fault[0]))) for fault in sorted(faults)]


# Each file on its own


def _orphans(records: Records) -> Iterator[Fault]:
    """Yield files that no record lists, and files whose record is of another path."""
    for name, inspection in records.inspections.items():
        if name in records.damage or records.artefact_name(name) != name:
            continue
        if inspection.trailer is None and name not in records.listed:
            yield name, "foreign", "no checksum, and no record lists it"
        elif inspection.trailer and inspection.record is None:
            yield name, "foreign", "has a checksum, but no readable record"
        elif inspection.record and name not in inspection.record.outputs:
            where = ", ".join(inspection.record.outputs) or "no file"
            yield name, "foreign", f"copied or moved: its record belongs to {where}"


def _missing(records: Records) -> Iterator[Fault]:
    for folder in records.folders:
        report = f"{folder}/{REPORT}"
        if Path(folder).parent == Path("results") and report not in records.inspections:
            yield report, "missing", "the study is unfinished: this is its last artefact"
    for path, names in records.listed.items():
        if not Path(path).exists():
            rest = f" and {len(names) - 1} more" if len(names) > 1 else ""
            yield path, "missing", f"listed by {min(names)}{rest}"


# Records compared with each other


def _contradictions(records: Records, name: str, record: Record) -> Iterator[Fault]:
    """Yield contradictions between a record and its key, its job's other outputs, or its present inputs."""
    if record.recomputed_key() != record.key:
        altered = "its record was altered and its checksum renewed"
        yield name, "changed", f"{altered}: its key is not that of its settings, code and inputs"
    for sibling in record.outputs:
        other = records.by_file.get(sibling)
        if other and name < sibling and (other.key, other.inputs) != (record.key, record.inputs):
            yield name, "stale", f"{sibling} is of another run of {record.rule}"
    for path, was in {(given.path, given.sha256) for given in record.inner_files}:
        if path in records.damage or not Path(path).exists():
            continue  # a deviation of its own
        if (here := records.inspections.get(path)) and here.trailer:
            state, source = "" if here.trailer.identity == was else "rebuilt since", here.record
        else:  # in another study, or not an artefact
            state, source = present_state(path, was)
        if state == "damaged":
            yield path, "changed", "its checksum or its record is damaged"
        elif state == "rebuilt since":
            yield name, "stale", f"made from another version of {path}, whose hash was {was[:12]}"
        if hidden := sorted(map(str, {*source.labels} - {*record.labels})) if source else []:
            yield name, "unlabelled", f"lacks {', '.join(map(repr, hidden))} of its input {path}"


# Repair


def commands(records: Records, deviations: Iterable[Deviation], given: Call | None = None) -> list[str]:
    """Return shell commands that repair all faults.

    Args:
        records: The records of the studies.
        deviations: The faulty files.
        given: The configuration; None for the one with which each file was made here.
    """
    lines: dict[str, set[str]] = {"rm -r": set(), "# restore": set()}
    again = defaultdict[tuple[str, ...] | None, set[str]](set)
    for path, kind, *_ in deviations:
        if kind == "foreign":  # jobs can do without it
            lines["rm -r"].add(shlex.quote(path))
        elif Path(path).parts[0] in MADE_BELOW:
            target = records.artefact_name(path)
            again[given.options() if given else options_for(target)].add(target)
        else:
            lines["# restore"].add(shlex.quote(path))
    calls = [snakemake_call(sorted(targets), options, again=True) for options, targets in again.items()]
    return [*(f"{line} {' '.join(sorted(targets))}" for line, targets in lines.items() if targets), *calls]


# The verb


ARGUMENTS = FOLDERS


def answer(studies: list[Path], configfile: list[str], config: list[str]) -> Answer:
    """Return the faulty files with the commands that repair them, and the number of files by uncommitted code."""
    given = given_call(configfile, config) if configfile or config else None
    records, deviations = verify(audited_folders(studies, configfile, config))
    kinds = Counter(deviation.kind for deviation in deviations).most_common()
    said = ", ".join(f"{count} {kind}" for kind, count in kinds) or "all as recorded"
    mending = commands(records, deviations, given)
    uncommitted = sum(record.origin.dirty for record in records.by_file.values())
    note = [f"made by code that was not committed: {uncommitted} artefacts"] if uncommitted else []
    return Answer(
        f"{len(records.by_file)} artefacts in {', '.join(records.folders)}: {said}",
        not deviations,
        [
            PrintedTable("findings", rows_of(deviations)),
            PrintedTable("commands", [{"command": line} for line in mending], shown=()),
            *mending,
            *note,
        ],
        {"artefacts": len(records.by_file)},
    )
