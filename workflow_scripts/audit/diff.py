"""Say why two artefacts differ: settings, inputs, code, packages, commit, labels, contents.

Where inputs differ, the first of them is followed down to what made the difference. Exit code 0 when neither
records nor contents differ, 1 when something does.
"""

import argparse
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table

from workflow_scripts.artefacts import identity, page_text
from workflow_scripts.audit.reading import (
    artefact_at,
    artefact_record,
    console,
    flat,
    is_outside,
    name_of,
    print_json,
    recorded_name,
    seal_at,
)
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import Input, Record

ABSENT = "(absent)"


class Change(NamedTuple):
    """One thing that two records say differently."""

    section: str
    key: str
    a: object
    b: object


class InputChange(NamedTuple):
    """One input that is not the same; None where only the other has the role."""

    role: str
    a: Input | None
    b: Input | None


@dataclass
class Difference:
    """What tells two artefacts apart."""

    a: str
    b: str
    contents_equal: bool
    changes: list[Change] = field(default_factory=list)
    inputs: list[InputChange] = field(default_factory=list)
    followed: str = ""
    """Role of the differing input that ``inner`` is about."""
    inner: "Difference | None" = None
    dead_end: str = ""
    """Why no differing input could be followed."""

    @property
    def none(self) -> bool:
        """Whether neither records nor contents differ."""
        return self.contents_equal and not self.changes and not self.inputs

    def as_data(self) -> dict[str, object]:
        """The difference as JSON can hold it."""
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
        }
        if self.inner is not None:
            data["followed"] = {"role": self.followed, "difference": self.inner.as_data()}
        if self.dead_end:
            data["dead_end"] = self.dead_end
        return data


def diff(a: Path, b: Path, root: Path) -> Difference:
    """Compare two artefacts and, where inputs differ, the chain behind the first of them.

    Raises:
        DataError: if one is missing, damaged, or no artefact.
    """
    one, two = (artefact_at(name_of(path, root), root) for path in (a, b))
    for name in (one, two):
        artefact_record(root / name)
        identity(root / name)
    return Comparison(root).of(one, two)


class Comparison:
    """Compares artefacts and the chains behind them, each pair once."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._known: dict[tuple[str, str], Difference] = {}

    def of(self, a: str, b: str) -> Difference:
        """The difference of two artefacts that records call ``a`` and ``b``; a chain is not hashed again.

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
        """Keep the inputs that differ in more than their place, and follow the first that can be followed."""
        reasons = []
        for change in candidates:
            inner = self._inner(change)
            if isinstance(inner, Difference) and inner.none:
                continue  # an artefact's seal covers its path, so that of another study's is another
            found.inputs.append(change)
            if isinstance(inner, str):
                reasons.append(f"{change.role}: {inner}")
            elif found.inner is None:
                found.followed, found.inner = change.role, inner
        found.dead_end = "" if found.inner else "; ".join(reasons)

    def _inner(self, change: InputChange) -> Difference | str:
        """The difference of two inputs, or why it cannot be told."""
        if change.a is None or change.b is None:
            return "only one of the two has it"
        names = []
        for given in (change.a, change.b):
            if is_outside(given.path):
                return "a source outside the pipeline"
            names.append(artefact_at(recorded_name(given.path, self.root), self.root))
            place = self.root / names[-1]
            seal = seal_at(place) if place.exists() else None
            if seal is None:
                return f"{given.path} is {'no artefact' if place.exists() else 'gone'}"
            if seal != given.sha256:
                return f"{given.path} was made anew since"
        try:
            return self.of(*names)
        except DataError as error:
            return str(error)


def changes(a: Record, b: Record) -> list[Change]:
    """What two records say differently, but for inputs and outputs."""
    found: list[Change] = []
    for section, one, two in (
        ("rule", {"": a.rule}, {"": b.rule}),
        ("wildcard", a.wildcards, b.wildcards),
        ("setting", flat(a.settings), flat(b.settings)),
        ("code", a.code, b.code),
        ("package", a.packages, b.packages),
        ("commit", {"": a.commit}, {"": b.commit}),
        ("uncommitted changes", {"": a.dirty}, {"": b.dirty}),
        ("label", dict.fromkeys(a.labels, "present"), dict.fromkeys(b.labels, "present")),
    ):
        found += _changes(section, one, two)
    return found


def _changes(section: str, a: Mapping[str, object], b: Mapping[str, object]) -> list[Change]:
    pairs = ((key, a.get(key, ABSENT), b.get(key, ABSENT)) for key in sorted(a.keys() | b.keys()))
    return [Change(section, key, one, two) for key, one, two in pairs if one != two]


def input_changes(a: Record, b: Record) -> list[InputChange]:
    """Inputs whose seals differ, by role."""
    one, two = _by_role(a), _by_role(b)
    pairs = ((role, one.get(role), two.get(role)) for role in sorted(one.keys() | two.keys()))
    return [InputChange(role, x, y) for role, x, y in pairs if not (x and y and x.sha256 == y.sha256)]


def _by_role(record: Record) -> dict[str, Input]:
    """Role to input; a role that holds its path, as one of several files does, loses the study's name."""
    return {_role(role, given.path): given for role, given in record.inputs.items()}


def _role(role: str, path: str) -> str:
    parts = Path(path).parts
    inside = "/".join(parts[2:]) if parts[0] == "results" else path
    return role.removesuffix(path) + inside if role.endswith(f"/{path}") else role


def contents_equal(a: Path, b: Path) -> bool:
    """Whether two artefacts hold the same, whatever their records say.

    Raises:
        DataError: if one is so damaged that it cannot be read.
    """
    if a.is_dir() or b.is_dir():
        return a.is_dir() and b.is_dir() and artefact_record(a).files == artefact_record(b).files
    if a.suffix != b.suffix:
        return False
    if a.suffix != ".parquet":
        return page_text(a) == page_text(b)
    try:
        one, two = pq.read_table(a), pq.read_table(b)
    except (OSError, ValueError) as error:
        raise DataError(f"{a} or {b}: damaged. See audit verify.") from error
    return bool(one.schema.equals(two.schema)) and (one.equals(two) or _pages_equal(a, b))


def _pages_equal(a: Path, b: Path) -> bool:
    """Whether two Parquet files are equal up to their footers; unlike ``Table.equals``, so are NaNs."""
    return before_footer(a) == before_footer(b)


def before_footer(path: Path) -> bytes:
    """What a Parquet file holds besides schema and record."""
    content = path.read_bytes()
    return content[: -8 - int.from_bytes(content[-8:-4], "little")]


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
    """Print the difference for people, then those of the inputs that were followed."""
    out.print(f"A {found.a}\nB {found.b}", soft_wrap=True)
    if found.none:
        out.print("no difference", style="green")
        return
    if found.changes or found.inputs:
        out.print(_table(found))
    elif not found.contents_equal:
        out.print("equal records: two outputs of one job, or a job that gives another result each time")
    out.print(f"contents {'equal' if found.contents_equal else 'differ'}")
    if found.dead_end:
        out.print(f"not followed: {found.dead_end}", style="yellow", soft_wrap=True)
    if found.inner is not None:
        out.print(f"\ninput {found.followed}:")
        show(found.inner, out)


def _table(found: Difference) -> Table:
    table = Table(show_edge=False, pad_edge=False)
    for column in ("what", "key", "A", "B"):
        table.add_column(column, overflow="fold")
    for change in found.changes:
        a, b = (value[:12] if change.section == "code" else value for value in map(str, (change.a, change.b)))
        table.add_row(change.section, change.key, a, b)
    for given in found.inputs:
        table.add_row("input", given.role, _cell(given.a), _cell(given.b))
    return table


def _cell(given: Input | None) -> str:
    return f"{given.path} {given.sha256[:12]}" if given else ABSENT
