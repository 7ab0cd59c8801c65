"""Write down the checksum and contents of every artefact, and the code, packages and sources behind them.

The file is sorted, and small enough to commit together with the numbers of a study. A checksum covers the record, which
names settings, code and packages; the hash under "contents" leaves the record out, so that it is the same wherever the
results are the same.

With --check FILE, nothing is written: the artefacts are held against a lock that was written before. Each that was
added, removed or changed is listed with what in its making differs: settings, code, packages, sources, inputs, and if
none of these, the machine. Where nothing differs, it was edited and sealed again, or its job does not repeat itself.
Exit code 1 if any artefact was added or removed, or has other contents.

  python -m workflow_scripts lock results/demo --check config/demo.lock.json
"""

import argparse
import hashlib
import json
import platform
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow.parquet as pq

from workflow_scripts.audit.compare import Facts, compare
from workflow_scripts.audit.disk import Inspection, collect, inspect_all
from workflow_scripts.audit.lookup import check_file_place, made_on, name_of
from workflow_scripts.audit.printing import Answer, Rows, rows_of
from workflow_scripts.audit.varying import lasting
from workflow_scripts.audit.verify import Verifier, studies_of
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import RECORD_FILE, atomic, contents_of, identity_of
from workflow_scripts.provenance.origin import processor
from workflow_scripts.provenance.record import Record
from workflow_scripts.reporting.headings import headings_of
from workflow_scripts.reporting.layout import number

LOCK = Path("results/provenance.lock.json")
"""Default path of the lock: the one file below results/ that Git tracks."""
UNEXPLAINED = "nothing in its making differs: edited and sealed again, or its job does not repeat itself"
_TABLES = ("artefacts", "contents", "settings", "code", "packages", "sources", "machine", "made_on")
Locked = Mapping[str, Any]


class Tree(NamedTuple):
    """The artefacts of some studies."""

    checksums: dict[str, str]
    contents: dict[str, str]
    """Artefact to the hash of what it holds besides its record, and besides what differs from run to run."""
    records: dict[str, Record]
    damaged: list[str]
    missing: list[str]
    """Artefacts that are gone, though others of the same jobs are there."""

    def holds(self, path: str) -> bool:
        """Whether an input is an artefact of this tree; else it is a source, from outside or from ``resources``."""
        return not self.checksums.keys().isdisjoint({path, f"{path}/{RECORD_FILE}"})

    def as_lock(self) -> dict[str, Any]:
        """What a lock file holds."""
        records = list(self.records.values())
        given = [given for record in records for given in record.inputs.values()]
        commits = {f"{record.origin.commit}{' (dirty)' * record.origin.dirty}" for record in records}
        return {
            "artefacts": self.checksums,
            "contents": self.contents,
            "settings": {name: settings_hash(record.settings) for name, record in self.records.items()},
            "code": {path: sha for record in records for path, sha in record.meaning.items()},
            "commits": sorted(commits),
            "machine": machine(),
            "made_on": {name: made_on(record.origin) for name, record in self.records.items()},
            "packages": {name: version for record in records for name, version in record.packages.items()},
            "printed": {name: printed(Path(name)) for name in self.records if _is_table(name)},
            "sources": {used.path: used.sha256 for used in given if not self.holds(used.path)},
        }


def printed(table: Path) -> dict[str, str]:
    """The means of a table with the digits that are printed, by run and heading; gaps are left out."""
    digits = {column.heading: column.digits for column in headings_of(table).experiment.columns}
    means = {f"{row['run']}, {row['heading']}": row for row in pq.read_table(table).to_pylist()}
    return {
        name: number(row["mean"], digits[row["heading"]])
        for name, row in means.items()
        if row["mean"] is not None
    }


def _is_table(name: str) -> bool:
    return name.endswith(".parquet") and pq.read_schema(name).remove_metadata() == TABLE


def read_tree(studies: Iterable[Path]) -> Tree:
    """Read every artefact of ``studies`` once."""
    studies = list(studies)
    inventory = collect(studies)
    inspections = inspect_all(inventory, advance=lambda _bytes: None)
    verifier = Verifier(inventory, inspections, map(name_of, studies))
    found = {name: one for name, one in sorted(inspections.items()) if _stands_alone(name, one)}
    return Tree(
        checksums={name: str(inspection.checksum) for name, inspection in found.items()},
        contents={name: _contents(Path(name), inspection) for name, inspection in found.items()},
        records={name: inspection.record for name, inspection in found.items() if inspection.record},
        damaged=verifier.not_as_written(),
        missing=verifier.missing_outputs(),
    )


def _stands_alone(name: str, inspection: Inspection) -> bool:
    whole = inspection.checksum is not None and not inspection.damage
    return whole and (inspection.record is not None or Path(name).name == RECORD_FILE)


def _contents(path: Path, inspection: Inspection) -> str:
    """Hash of what an artefact holds, computed again: what was sealed anew may claim another."""
    if inspection.record is None:  # of another version of this pipeline
        return inspection.identity
    return identity_of(lasting(path, contents_of(path, inspection.record)), ())


def machine() -> dict[str, str]:
    """What of this machine may move the last digits of a number: processor, Python, operating system."""
    system = platform.system()
    return {"processor": processor(), "python": platform.python_version(), "system": system}


def settings_hash(settings: Mapping[str, Any]) -> str:
    """Hash of the slice of the configuration that a job read."""
    return hashlib.sha256(json.dumps(settings, sort_keys=True).encode()).hexdigest()


def lock(studies: Iterable[Path]) -> dict[str, Any]:
    """Checksums and contents of all artefacts of ``studies``, and the code, packages and sources in their records.

    Raises:
        DataError: if an artefact is damaged or gone, since a lock must not vouch for it.
    """
    tree = read_tree(studies)
    mend = "Run python -m workflow_scripts verify, repair it, and lock again."
    if tree.damaged:
        raise DataError(f"{tree.damaged[0]}: damaged. {mend}")
    if tree.missing:
        raise DataError(f"{tree.missing[0]}: missing, though its job's other files are there. {mend}")
    return tree.as_lock()


# Checking


class LockDifference(NamedTuple):
    """One artefact that is not as the lock says."""

    path: str
    kind: str
    """Added, removed, changed or damaged."""
    why: str


@dataclass
class Comparison:
    """A tree held against a lock."""

    equal: int
    """Artefacts with the contents that the lock names, whatever commit made them."""
    differences: list[LockDifference] = field(default_factory=list)
    other_records: int = 0
    """Those of the equal ones whose records differ, as after an edit of code that changed no number."""
    elsewhere: str = ""
    """How this machine differs from the one that wrote the lock."""
    numbers: dict[str, tuple[str | None, str | None]] = field(default_factory=dict)
    """Printed numbers that differ, by run and heading: that of the lock, and that of the tree."""
    compared: int = 0
    """How many printed numbers were compared."""


def check(studies: list[Path], file: Path) -> Comparison:
    """Compare the artefacts of ``studies`` with those that a lock names in the same studies.

    Raises:
        DataError: if ``file`` is no lock.
    """
    locked = read_lock(file)
    tree = read_tree(studies)
    folders = tuple(f"{name_of(study)}/" for study in studies)
    wanted = {name for name in locked["contents"] if name.startswith(folders)}
    same = {name for name in wanted if tree.contents.get(name) == locked["contents"][name]}
    was, now = (
        {cell: text for name in wanted for cell, text in tables.get(name, {}).items()}
        for tables in (locked.get("printed", {}), tree.as_lock()["printed"])
    )
    return Comparison(
        equal=len(same),
        numbers={cell: (was.get(cell), now.get(cell)) for cell in was if was[cell] != now.get(cell)},
        compared=len(was),
        differences=sorted(_differences(tree, locked, wanted, same)),
        other_records=sum(tree.checksums[name] != locked["artefacts"][name] for name in same),
        elsewhere=_moved(locked["machine"], machine()),
    )


def _differences(tree: Tree, locked: Locked, wanted: set[str], same: set[str]) -> Iterator[LockDifference]:
    """What is not as it should be, of the artefacts that a lock names (``wanted``) and of others."""
    changed = (wanted & tree.contents.keys()) - same
    for name in tree.damaged:
        yield LockDifference(name, "damaged", "its checksum is broken; see verify")
    for name in tree.contents.keys() - wanted:
        yield LockDifference(name, "added", "not in the lock")
    for name in wanted - {*tree.contents, *tree.damaged}:
        yield LockDifference(name, "removed", "in the lock alone")
    for name in changed:
        yield LockDifference(name, "changed", _why(name, tree, locked, changed))


def read_lock(file: Path) -> dict[str, Any]:
    """The content of a lock file.

    Raises:
        DataError: if it is missing or no lock that can be checked.
    """
    write = "python -m workflow_scripts lock."
    try:
        found: dict[str, Any] = json.loads(file.read_text("utf-8"))
        valid = all(isinstance(found[name], dict) for name in _TABLES)
    except FileNotFoundError as error:
        raise DataError(f"{file}: no such file. Write a lock: {write}") from error
    except IsADirectoryError as error:
        raise DataError(f"{file}: a folder. Name the lock's file after --check.") from error
    except (ValueError, KeyError, TypeError):
        valid = False
    if not valid:
        raise DataError(f"{file}: not a lock of this version. Write it anew: {write}")
    return found


def _why(name: str, tree: Tree, locked: Locked, changed: set[str]) -> str:
    """What in an artefact's making differs; inputs that differ are named, since they explain themselves."""
    record = tree.records.get(name)
    if record is None:
        return UNEXPLAINED
    found: dict[str, list[str]] = {}
    for change in compare(*_sides(name, record, tree, locked)):
        versions = f" {change.a} -> {change.b}" if change.section == "package" else ""
        found.setdefault(change.section, []).append(f"{change.key}{versions}")
    given = {path for one in record.inputs.values() for path in (one.path, f"{one.path}/{RECORD_FILE}")}
    found |= {"made from": sorted(given & changed)} if given & changed else {}
    reasons = [_few(section, keys) for section, keys in found.items()]
    elsewhere = _moved({"": locked["made_on"].get(name)}, {"": made_on(record.origin)})
    return "; ".join(reasons) or elsewhere or UNEXPLAINED


def _sides(name: str, record: Record, tree: Tree, locked: Locked) -> tuple[Facts, Facts]:
    """What a lock and a record say of the same: a lock has settings as a hash, and nothing of inputs but sources."""
    sources = {one.path: one.sha256 for one in record.inputs.values() if not tree.holds(one.path)}
    now = {"code": record.meaning, "package": record.packages, "source": sources}
    was = {
        section: {key: locked[table].get(key) for key in now[section]}
        for section, table in (("code", "code"), ("package", "packages"), ("source", "sources"))
    }
    settings = {"": locked["settings"].get(name)}, {"": settings_hash(record.settings)}
    return {"settings": settings[0], **was}, {"settings": settings[1], **now}


def _few(what: str, names: list[str]) -> str:
    more = f" and {len(names) - 1} more" if len(names) > 1 else ""
    return f"{what} {names[0]}{more}".rstrip()


def _moved(was: Mapping[str, str | None], now: Mapping[str, str]) -> str:
    pairs = [f"{key} {was.get(key)} -> {now[key]}".strip() for key in now if was.get(key) != now[key]]
    return f"another machine: {', '.join(pairs)}" if pairs else ""


# The verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what lock takes."""
    parser.add_argument(
        "studies", type=Path, nargs="*", help="folders of studies; default: all below results/"
    )
    parser.add_argument("--to", type=Path, default=LOCK, help="file to write; default: %(default)s")
    parser.add_argument(
        "--short", action="store_true", help="with --check: say in a line whether numbers differ"
    )
    parser.add_argument(
        "--check", type=Path, metavar="FILE", help="compare with this lock, and write nothing"
    )


def answer(args: argparse.Namespace) -> Answer:
    """What was written, or how the artefacts differ from a lock."""
    studies = studies_of(args.studies)
    if args.check is not None:
        found = check(studies, args.check)
        named = " ".join(map(str, args.studies))
        return (
            _in_short(found, f"{named} --check {args.check}") if args.short else _checked(found, args.check)
        )
    check_file_place(args.to)
    content = lock(studies)
    with atomic(args.to) as temporary:
        temporary.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", "utf-8")
    return Answer(f"{args.to}: {len(content['artefacts'])} artefacts")


def _in_short(found: Comparison, arguments: str) -> Answer:
    """Whether a tree gives the numbers of a lock, in one line."""
    details = f"`python -m workflow_scripts lock {arguments}` for details"
    where = ", as on another processor" if found.elsewhere else ""
    if not found.differences:
        said = f"As published: {found.equal} artefacts have the contents of the lock."
    elif found.numbers or not found.compared:
        first = next((f", such as {cell}: {was} -> {now}" for cell, (was, now) in found.numbers.items()), "")
        counted = f"{len(found.numbers)} of {found.compared} numbers" if found.compared else "artefacts"
        said = f"Not as published: {counted} differ{first}; {details}."
    else:
        said = f"Same numbers as published; bytes differ{where}: {details}."
    return Answer(said, not found.differences, data={"numbers": found.numbers})


def _checked(found: Comparison, file: Path) -> Answer:
    records = f" ({found.other_records} with other records)" if found.other_records else ""
    return Answer(
        f"{found.equal} artefacts as in {file}{records}, {len(found.differences)} not",
        not found.differences,
        [Rows("differences", rows_of(found.differences)), *filter(None, [found.elsewhere])],
        {"equal": found.equal, "other_records": found.other_records},
    )
