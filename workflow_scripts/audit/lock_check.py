"""Hold the artefacts of a tree against a lock: what was added, removed or changed, and why."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from rich.console import Console

from workflow_scripts.audit.lookup import made_on, name_of
from workflow_scripts.audit.printing import table
from workflow_scripts.audit.tree import Tree, machine, read_tree, settings_hash
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import RECORD_FILE
from workflow_scripts.provenance.record import Record

UNEXPLAINED = "nothing in its making differs: edited and sealed again, or its job does not repeat itself"


class LockDifference(NamedTuple):
    """One artefact that is not as the lock says."""

    path: str
    kind: Literal["added", "removed", "changed", "damaged"]
    why: str


@dataclass
class Comparison:
    """A tree held against a lock."""

    lock: str
    equal: int
    """Artefacts with the contents that the lock names, whatever commit made them."""
    differences: list[LockDifference] = field(default_factory=list)
    other_records: int = 0
    """Those of the equal ones whose records differ, as after an edit of code that changed no number."""
    elsewhere: str = ""
    """How this machine differs from the one that wrote the lock."""

    def as_data(self) -> dict[str, object]:
        """The comparison as data for JSON."""
        return {
            "green": not self.differences,
            "lock": self.lock,
            "equal": self.equal,
            "other_records": self.other_records,
            "elsewhere": self.elsewhere,
            "differences": [difference._asdict() for difference in self.differences],
        }


def check(root: Path, studies: list[Path], file: Path) -> Comparison:
    """Compare the artefacts of ``studies`` with those that a lock names in the same studies.

    Raises:
        DataError: if ``file`` is no lock.
    """
    locked = read_lock(file)
    tree = read_tree(root, studies)
    names = [name_of(study, root) for study in studies]
    wanted = {name for name in locked["contents"] if any(name.startswith(f"{study}/") for study in names)}
    same = {name for name in wanted if tree.contents.get(name) == locked["contents"][name]}
    elsewhere = _elsewhere(locked["machine"])
    return Comparison(
        lock=file.as_posix(),
        equal=len(same),
        differences=sorted(_differences(tree, locked, wanted, same, elsewhere)),
        other_records=sum(tree.checksums[name] != locked["artefacts"][name] for name in same),
        elsewhere=elsewhere,
    )


def _differences(
    tree: Tree, locked: Mapping[str, Any], wanted: set[str], same: set[str], elsewhere: str
) -> Iterator[LockDifference]:
    """What is not as it should be, of the artefacts that a lock names (``wanted``) and of others."""
    present = {*tree.contents, *tree.damaged}
    changed = (wanted & tree.contents.keys()) - same
    for name in tree.damaged:
        yield LockDifference(name, "damaged", "its checksum is broken; see audit verify")
    for name in tree.contents.keys() - wanted:
        yield LockDifference(name, "added", "not in the lock")
    for name in wanted - present:
        yield LockDifference(name, "removed", "in the lock alone")
    for name in changed:
        yield LockDifference(name, "changed", _why(name, tree, locked, changed, elsewhere))


def read_lock(file: Path) -> dict[str, Any]:
    """The content of a lock file.

    Raises:
        DataError: if it is missing or no lock that can be checked.
    """
    try:
        found: dict[str, Any] = json.loads(file.read_text("utf-8"))
        tables = ("artefacts", "contents", "settings", "code", "packages", "sources", "machine")
        valid = all(isinstance(found[name], dict) for name in tables)
    except FileNotFoundError as error:
        raise DataError(
            f"{file}: no such file. Write a lock: python -m workflow_scripts.audit lock."
        ) from error
    except IsADirectoryError as error:
        raise DataError(f"{file}: a folder. Name the lock's file after --check.") from error
    except (ValueError, KeyError, TypeError):
        valid = False
    if not valid:
        raise DataError(
            f"{file}: not a lock of this version. Write it anew: python -m workflow_scripts.audit lock."
        )
    return found


def _why(name: str, tree: Tree, locked: Mapping[str, Any], changed: set[str], elsewhere: str) -> str:
    """What in an artefact's making differs; inputs that differ are named, since they explain themselves."""
    record = tree.records.get(name)
    if record is None:
        return elsewhere or UNEXPLAINED
    reasons = list(_reasons(name, record, tree, locked, changed))
    return "; ".join(reasons) or _moved(name, record, locked, elsewhere) or UNEXPLAINED


def _moved(name: str, record: Record, locked: Mapping[str, Any], elsewhere: str) -> str:
    """How the machines that made an artefact differ; of older locks, which do not name them, those of the audit."""
    if "made_on" not in locked:
        return elsewhere
    was, now = locked["made_on"].get(name), made_on(record.origin)
    return f"another machine: {was} -> {now}" if was != now else ""


def _reasons(
    name: str, record: Record, tree: Tree, locked: Mapping[str, Any], changed: set[str]
) -> Iterator[str]:
    if settings_hash(record.settings) != locked["settings"].get(name):
        yield "settings"
    code = [file for file, meaning in record.meaning.items() if locked["code"].get(file) != meaning]
    yield from _few("code", sorted(code))
    versions = {package: locked["packages"].get(package) for package in record.packages}
    packages = [
        f"{one} {versions[one]} -> {now}" for one, now in record.packages.items() if versions[one] != now
    ]
    yield from _few("package", sorted(packages))
    given = record.inputs.values()
    sources = {one.path for one in given if not tree.holds(one.path)}
    other = {one.path for one in given if locked["sources"].get(one.path) != one.sha256}
    yield from _few("source", sorted(sources & other))
    names = {one.path for one in given} | {f"{one.path}/{RECORD_FILE}" for one in given}
    yield from _few("made from", sorted(names & changed))


def _few(what: str, names: list[str]) -> Iterator[str]:
    if names:
        yield f"{what} {names[0]}" + (f" and {len(names) - 1} more" if len(names) > 1 else "")


def _elsewhere(was: Mapping[str, str]) -> str:
    now = machine()
    pairs = [f"{key} {was.get(key)} -> {now[key]}" for key in now if was.get(key) != now[key]]
    return f"another machine: {', '.join(pairs)}" if pairs else ""


def show(found: Comparison, out: Console) -> None:
    """Print what differs as a table, and how many artefacts are equal."""
    if found.differences:
        shown = table("path", "kind", "why")
        for difference in found.differences:
            shown.add_row(*difference)
        out.print(shown)
    if found.elsewhere:
        out.print(found.elsewhere, style="yellow", soft_wrap=True)
    records = f" ({found.other_records} with other records)" if found.other_records else ""
    out.print(
        f"{found.equal} artefacts as in {found.lock}{records}, {len(found.differences)} not",
        style="red" if found.differences else "green",
        soft_wrap=True,
    )
