"""Explain why two artefacts differ: settings, inputs, code, packages, commit, labels, contents; and by how much.

Of tables it says how many cells of each column differ, and the largest and the mean absolute difference of numbers; of
models the same of their weights. Where inputs differ, the first of them is followed down to the cause of the
difference. Exit code 1 if records or contents differ.

  python -m workflow_scripts diff results/demo/tables/demo.parquet results/other/tables/demo.parquet
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pyarrow.parquet as pq
from rich.console import RenderableType

from workflow_scripts.audit.compare import Change, compare, facts, inputs_by_role
from workflow_scripts.audit.lookup import (
    artefact_at,
    artefact_record,
    identity_at,
    is_outside,
    name_of,
    recorded_name,
)
from workflow_scripts.audit.numbers import Apart, apart
from workflow_scripts.audit.printing import Answer, Rows, rows_of
from workflow_scripts.audit.varying import lasting
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import contents_of, identity, identity_of, page_text
from workflow_scripts.provenance.record import Record


@dataclass
class Difference:
    """How two artefacts differ."""

    a: str
    b: str
    contents_equal: bool
    changes: list[Change]
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
        return self.contents_equal and not self.changes

    def walk(self) -> Iterator["Difference"]:
        """This difference and those of the inputs that were followed."""
        yield self
        if self.inner is not None:
            yield from self.inner.walk()


def diff(a: Path, b: Path) -> Difference:
    """Compare two artefacts and, where inputs differ, the ancestry of the first of them.

    Raises:
        DataError: if one is missing, damaged, or not an artefact.
    """
    names = [artefact_at(name_of(path)) for path in (a, b)]
    for name in names:
        artefact_record(Path(name))
        identity(Path(name))
    found = _difference(*names)
    for shown in found.walk():
        if not shown.contents_equal:
            shown.numbers = apart(Path(shown.a), Path(shown.b))
    return found


def _difference(a: str, b: str) -> Difference:
    """The difference between two artefacts, named as in records; files are not hashed again."""
    one, two = artefact_record(Path(a)), artefact_record(Path(b))
    found = Difference(a, b, contents_equal(Path(a), Path(b)), compare(facts(one), facts(two)))
    reasons = []
    for change in found.changes:
        if change.section == "input" and found.inner is None:
            inner = _inner(change.key, one, two)
            if isinstance(inner, str):
                reasons.append(f"{change.key}: {inner}")
            else:
                found.followed, found.inner = change.key, inner
    found.dead_end = "" if found.inner else "; ".join(reasons)
    return found


def _inner(role: str, a: Record, b: Record) -> Difference | str:
    """The difference between two inputs, or why it is unknown."""
    names = []
    for given in (inputs_by_role(record).get(role) for record in (a, b)):
        if given is None:
            return "only one of the two has this input"
        if is_outside(given.path):
            return "a source outside the pipeline"
        place = Path(artefact_at(recorded_name(given.path)))
        now = identity_at(place) if place.exists() else None
        if now is None:
            return f"{given.path} {'is not an artefact' if place.exists() else 'does not exist any more'}"
        if now != given.sha256:
            return f"{given.path} has been rebuilt since"
        names.append(place.as_posix())
    try:
        return _difference(*names)
    except DataError as error:
        return str(error)


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
        raise DataError(f"{a} or {b}: damaged. Run python -m workflow_scripts verify.") from error
    return bool(one.schema.equals(two.schema)) and (one.equals(two) or _hash(a) == _hash(b))


def _hash(path: Path) -> str:
    """Of a table's columns and pages: unlike in ``Table.equals``, NaN equals NaN."""
    return identity_of(contents_of(path, artefact_record(path)), ())


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what diff takes."""
    parser.add_argument("a", type=Path, metavar="A", help="artefact")
    parser.add_argument("b", type=Path, metavar="B", help="artefact to compare it with")


def answer(args: argparse.Namespace) -> Answer:
    """What differs, and below it what differs in the inputs that were followed."""
    found = diff(args.a, args.b)
    steps = list(found.walk())
    said = "contents equal" if found.contents_equal else "contents differ"
    return Answer(
        "no difference" if found.none else said,
        found.none,
        [part for step in steps for part in _parts(step)],
        {"contents_equal": found.contents_equal, "steps": [_data(step) for step in steps]},
    )


def _parts(step: Difference) -> Iterator[RenderableType | Rows]:
    yield f"A {step.a}\nB {step.b}"
    yield Rows("differences", [change.as_row() for change in step.changes])
    if not step.changes and not step.contents_equal:
        yield "the records are equal: two outputs of one job, or a job that is not deterministic"
    yield Rows("numbers", rows_of(step.numbers))
    if step.dead_end:
        yield f"not followed: {step.dead_end}"
    if step.followed:
        yield f"input {step.followed}:"


def _data(step: Difference) -> dict[str, object]:
    changes, numbers = rows_of(step.changes), rows_of(step.numbers)
    return {"a": step.a, "b": step.b, "changes": changes, "numbers": numbers, "followed": step.followed}
