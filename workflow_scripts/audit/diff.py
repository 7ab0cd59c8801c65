"""Explain why two artefacts differ: settings, inputs, code, packages, commit, labels, contents; and by how much.

Of tables it says how many cells of each column differ, and the largest and the mean absolute difference of numbers; of
models the same of their weights. Where inputs differ, the first of them is followed down to the cause of the
difference. Exit code 0 if neither records nor contents differ, 1 otherwise.
"""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from workflow_scripts.audit.lookup import (
    artefact_at,
    artefact_record,
    flat,
    identity_at,
    is_outside,
    name_of,
    recorded_name,
)
from workflow_scripts.audit.numbers import Apart, apart
from workflow_scripts.audit.printing import console, print_json, table
from workflow_scripts.audit.varying import lasting
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import contents_of, identity, identity_of, page_text
from workflow_scripts.provenance.record import Input, Record

ABSENT = "(absent)"


class Change(NamedTuple):
    """One entry in which two records differ."""

    section: str
    key: str
    a: object
    b: object


class InputChange(NamedTuple):
    """One input that differs; None where a record has no input of this role."""

    role: str
    a: Input | None
    b: Input | None


@dataclass
class Difference:
    """How two artefacts differ."""

    a: str
    b: str
    contents_equal: bool
    changes: list[Change] = field(default_factory=list)
    inputs: list[InputChange] = field(default_factory=list)
    numbers: list[Apart] = field(default_factory=list)
    """By how much contents differ, where that can be said."""
    followed: str = ""
    """Role of the differing input that ``inner`` compares."""
    inner: "Difference | None" = None
    dead_end: str = ""
    """Why no differing input could be followed."""

    @property
    def none(self) -> bool:
        """Whether neither records nor contents differ."""
        return self.contents_equal and not self.changes and not self.inputs

    def walk(self) -> Iterator["Difference"]:
        """This difference and those of the inputs that were followed."""
        yield self
        if self.inner is not None:
            yield from self.inner.walk()

    def as_data(self) -> dict[str, object]:
        """The difference as data for JSON."""
        inputs = [
            {"role": i.role, "a": i.a and i.a.model_dump(), "b": i.b and i.b.model_dump()}
            for i in self.inputs
        ]
        data: dict[str, object] = {
            "a": self.a,
            "b": self.b,
            "identical": self.none,
            "contents_equal": self.contents_equal,
            "changes": [change._asdict() for change in self.changes],
            "inputs": inputs,
            "numbers": [one._asdict() for one in self.numbers],
        }
        if self.inner is not None:
            data["followed"] = {"role": self.followed, "difference": self.inner.as_data()}
        if self.dead_end:
            data["dead_end"] = self.dead_end
        return data


def diff(a: Path, b: Path, root: Path) -> Difference:
    """Compare two artefacts and, where inputs differ, the ancestry of the first of them.

    Raises:
        DataError: if one is missing, damaged, or not an artefact.
    """
    one, two = (artefact_at(name_of(path, root), root) for path in (a, b))
    for name in (one, two):
        artefact_record(root / name)
        identity(root / name)
    found = Comparison(root).of(one, two)
    for shown in found.walk():
        if not shown.contents_equal:
            shown.numbers = apart(root / shown.a, root / shown.b)
    return found


class Comparison:
    """Compares artefacts and their ancestry, each pair once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[tuple[str, str], Difference] = {}

    def of(self, a: str, b: str) -> Difference:
        """The difference between two artefacts, named as in records; files are not hashed again.

        Raises:
            DataError: if one of them cannot be read.
        """
        if (a, b) not in self._known:
            one, two = artefact_record(self.root / a), artefact_record(self.root / b)
            equal = contents_equal(self.root / a, self.root / b)
            found = Difference(a, b, equal, changes(one, two))
            self._add_inputs(found, input_changes(one, two))
            self._known[a, b] = found
        return self._known[a, b]

    def _add_inputs(self, found: Difference, candidates: Iterable[InputChange]) -> None:
        """Keep the inputs that differ in more than their path, and follow the first that can be followed."""
        reasons = []
        for change in candidates:
            found.inputs.append(change)
            if found.inner is not None:
                continue
            inner = self._inner(change)
            if isinstance(inner, str):
                reasons.append(f"{change.role}: {inner}")
            else:
                found.followed, found.inner = change.role, inner
        found.dead_end = "" if found.inner else "; ".join(reasons)

    def _inner(self, change: InputChange) -> Difference | str:
        """The difference between two inputs, or why it is unknown."""
        if change.a is None or change.b is None:
            return "only one of the two has this input"
        names = []
        for given in (change.a, change.b):
            if is_outside(given.path):
                return "a source outside the pipeline"
            names.append(artefact_at(recorded_name(given.path, self.root), self.root))
            place = self.root / names[-1]
            now = identity_at(place) if place.exists() else None
            if now is None:
                return f"{given.path} {'is not an artefact' if place.exists() else 'does not exist any more'}"
            if now != given.sha256:
                return f"{given.path} has been rebuilt since"
        try:
            return self.of(*names)
        except DataError as error:
            return str(error)


def changes(a: Record, b: Record) -> list[Change]:
    """Entries in which two records differ, except inputs and outputs."""
    found: list[Change] = []
    machine = {"python", "processor", "capability", "threads", "blas", "gpu"}
    for section, one, two in (
        ("rule", {"": a.rule}, {"": b.rule}),
        ("wildcard", a.wildcards, b.wildcards),
        ("setting", flat(a.settings), flat(b.settings)),
        ("code", a.meaning, b.meaning),
        ("package", a.packages, b.packages),
        ("machine", a.origin.model_dump(include=machine), b.origin.model_dump(include=machine)),
        ("commit", {"": a.origin.commit}, {"": b.origin.commit}),
        ("uncommitted changes", {"": a.origin.dirty}, {"": b.origin.dirty}),
        ("label", dict.fromkeys(a.labels, "present"), dict.fromkeys(b.labels, "present")),
    ):
        found += _changes(section, one, two)
    return found


def _changes(section: str, a: Mapping[str, object], b: Mapping[str, object]) -> list[Change]:
    pairs = ((key, a.get(key, ABSENT), b.get(key, ABSENT)) for key in sorted(a.keys() | b.keys()))
    return [Change(section, key, one, two) for key, one, two in pairs if one != two]


def input_changes(a: Record, b: Record) -> list[InputChange]:
    """Inputs whose contents differ, by role."""
    one, two = _by_role(a), _by_role(b)
    pairs = ((role, one.get(role), two.get(role)) for role in sorted(one.keys() | two.keys()))
    return [InputChange(role, x, y) for role, x, y in pairs if not (x and y and x.sha256 == y.sha256)]


def _by_role(record: Record) -> dict[str, Input]:
    """Role to input; where a role contains a path, as for several files, the study's name is removed from it."""
    return {_role(role, given.path): given for role, given in record.inputs.items()}


def _role(role: str, path: str) -> str:
    parts = Path(path).parts
    inside = "/".join(parts[2:]) if parts[0] == "results" else path
    return role.removesuffix(path) + inside if role.endswith(f"/{path}") else role


def contents_equal(a: Path, b: Path) -> bool:
    """Whether two artefacts have the same contents, apart from their records and what differs from run to run.

    Raises:
        DataError: if one is too damaged to be read.
    """
    if a.is_dir() or b.is_dir():
        return a.is_dir() and b.is_dir() and artefact_record(a).files == artefact_record(b).files
    if a.suffix != b.suffix:
        return False
    if a.suffix != ".parquet":
        one_page, other_page = (b"".join(lasting(page, [page_text(page)])) for page in (a, b))
        return one_page == other_page
    try:
        one, two = pq.read_table(a), pq.read_table(b)
    except (OSError, ValueError) as error:
        raise DataError(f"{a} or {b}: damaged. Run python -m workflow_scripts.audit verify.") from error
    return bool(one.schema.equals(two.schema)) and (one.equals(two) or _hash(a) == _hash(b))


def _hash(path: Path) -> str:
    """Of a table's columns and pages: unlike in ``Table.equals``, NaN equals NaN."""
    return identity_of(contents_of(path, artefact_record(path)), ())


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit diff`` takes."""
    parser.add_argument("a", type=Path, metavar="A", help="artefact")
    parser.add_argument("b", type=Path, metavar="B", help="artefact to compare it with")


def run(args: argparse.Namespace) -> int:
    """Compare and print; exit code 1 if anything differs."""
    found = diff(args.a, args.b, args.root)
    if args.json:
        print_json(found.as_data())
    else:
        show(found, console())
    return 0 if found.none else 1


def show(found: Difference, out: Console) -> None:
    """Print the difference as a table, then those of the inputs that were followed."""
    out.print(f"A {found.a}\nB {found.b}", soft_wrap=True)
    if found.none:
        out.print("no difference", style="green")
        return
    if found.changes or found.inputs:
        out.print(_table(found))
    elif not found.contents_equal:
        out.print("the records are equal: two outputs of one job, or a job that is not deterministic")
    out.print(f"contents {'equal' if found.contents_equal else 'differ'}")
    if found.numbers:
        out.print(_numbers(found.numbers))
    if found.dead_end:
        out.print(f"not followed: {found.dead_end}", style="yellow", soft_wrap=True)
    if found.inner is not None:
        out.print(f"\ninput {found.followed}:")
        show(found.inner, out)


def _numbers(numbers: list[Apart]) -> Table:
    shown = table(
        "values of", "differing", "of", "largest", "mean", numbers=["differing", "of", "largest", "mean"]
    )
    for one in numbers:
        sizes = ("" if size is None else f"{size:.3g}" for size in (one.largest, one.mean))
        shown.add_row(one.name, f"{one.differing:,}", f"{one.cells:,}", *sizes)
    return shown


def _table(found: Difference) -> Table:
    shown = table("what", "key", "A", "B")
    for change in found.changes:
        a, b = (value[:12] if change.section == "code" else value for value in map(str, (change.a, change.b)))
        shown.add_row(change.section, change.key, a, b)
    for given in found.inputs:
        shown.add_row("input", given.role, _cell(given.a), _cell(given.b))
    return shown


def _cell(given: Input | None) -> str:
    return f"{given.path} {given.sha256[:12]}" if given else ABSENT
