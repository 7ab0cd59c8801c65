"""Explain why two artefacts differ, and by how much.

Begins with a sentence on the cause. Then it compares settings, inputs, code, packages, commit, labels and contents: for
each column of a table, and each file of weights, the number of cells that differ, and the largest and the mean absolute
difference. If inputs differ, it compares the first differing input in the same way, and so on down to the cause.

Exit code 1 if records or contents differ.

  python -m workflow_scripts diff results/demo/tables/demo.parquet results/other/tables/demo.parquet
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from safetensors import SafetensorError, safe_open

from workflow_scripts.arrays import Floats
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import RECORD_FILE, identity
from workflow_scripts.provenance.record import Record
from workflow_scripts.verbs.printing import Answer, PrintedTable, argument, rows_of
from workflow_scripts.verbs.records import (
    HASHES,
    Change,
    artefact_at,
    compare_artefacts,
    named_inputs,
    present_state,
    relative_name,
)


class Difference(NamedTuple):
    """Distances between the values of one column, or of one file of weights, in two artefacts."""

    name: str
    differing: int
    """Number of cells that differ; a cell that is empty on only one side differs, two NaN do not."""
    cells: int
    largest: float | None
    """Largest absolute difference; None if no pair of numbers differs, as in columns of text."""
    mean: float | None
    """Mean absolute difference of the pairs of numbers that differ."""


class Step(NamedTuple):
    """Differences between two artefacts."""

    a: str
    b: str
    contents_equal: bool
    changes: list[Change]
    numbers: list[Difference]
    """Distances between contents, as far as they can be computed."""
    not_followed: list[str]
    """Differing inputs that could not be compared, each with the reason."""
    followed: str
    """Role of the differing input that the next step compares; empty in the last step."""


def diff(a: Path, b: Path) -> list[Step]:
    """Compare two artefacts, then their first differing input, and so on down to the cause.

    Raises:
        DataError: if one is missing, damaged, or not an artefact, or if both are files of one artefact.
    """
    steps: list[Step] = []
    pair = [a, b]
    while pair:
        (left, was), (right, now) = map(artefact_at, pair)
        parts = {*map(relative_name, pair)} - {left.as_posix(), left.parent.as_posix()}
        if left == right and len(parts) == 2:
            raise DataError(f"{a} and {b}: files of one artefact, {left}. Choose two artefacts.")
        for path in (left, right):
            identity(path)  # raises if it is damaged
        equal, changes = compare_artefacts(left, right)
        numbers = [] if equal else numeric_differences(left, right)
        roles = [change.key for change in changes if change.section == "input"]
        followed, pair, not_followed = _followed((was, now), roles)
        steps.append(Step(str(left), str(right), equal, changes, numbers, not_followed, followed))
    return steps


def _followed(records: Sequence[Record], roles: Iterable[str]) -> tuple[str, list[Path], list[str]]:
    """Return role and paths of the first differing input that is unchanged on both sides, and the states of others."""
    reasons: list[str] = []
    inputs = [named_inputs(record) for record in records]
    for role in roles:
        pair = [named[role] for named in inputs if role in named]
        states = [present_state(given.path, given.sha256)[0] for given in pair]
        if states == ["as recorded"] * 2:
            return role, [Path(given.path) for given in pair], reasons
        side = " on only one side" if len(pair) == 1 else ""
        reasons.append(f"{role}: {' and '.join(states)}{side}")
    return "", [], reasons


# By how much


def numeric_differences(a: Path, b: Path) -> list[Difference]:
    """Return the columns of two tables, or the files of two model folders, whose values differ.

    Rows are compared in order. Tables of different lengths, columns and tensors that one side lacks, and pages are
    skipped.
    """
    pairs = {"": (a, b)}
    if a.name == b.name == RECORD_FILE:
        names = [file.relative_to(a.parent).as_posix() for file in sorted(a.parent.rglob("*"))]
        pairs = {name: (a.parent / name, b.parent / name) for name in names if (b.parent / name).is_file()}
    return [
        difference
        for name, files in pairs.items()
        for difference in _in_files(name, *files)
        if difference.differing
    ]


def _in_files(name: str, a: Path, b: Path) -> Iterator[Difference]:
    """Yield the difference between two files of weights, or those between the columns of two tables."""
    if {a.suffix, b.suffix} == {".safetensors"}:
        with suppress(SafetensorError):  # of another form
            yield _difference(name, _tensors(a, b))
    elif {a.suffix, b.suffix} == {".parquet"}:
        for column in _columns(pq.read_table(a), pq.read_table(b)):
            yield column._replace(name=f"{name}: {column.name}".removeprefix(": "))


def _columns(a: pa.Table, b: pa.Table) -> Iterator[Difference]:
    if a.num_rows == b.num_rows:
        for name in (name for name in a.column_names if name in b.column_names):
            yield _column(name, a[name].combine_chunks(), b[name].combine_chunks())


def _column(name: str, a: pa.Array, b: pa.Array) -> Difference:
    nested, number = pa.types.is_nested, pa.types.is_primitive
    while nested(a.type) and nested(b.type) and pc.list_value_length(a).equals(pc.list_value_length(b)):
        a, b = a.flatten(), b.flatten()
    if number(a.type) and number(b.type):
        floats = (side.cast(pa.float64(), safe=False).to_numpy(zero_copy_only=False) for side in (a, b))
        return _difference(name, [tuple(floats)])
    differing = sum(left != right for left, right in zip(a.to_pylist(), b.to_pylist(), strict=True))
    return Difference(name, differing, len(a), None, None)


def _tensors(a: Path, b: Path) -> Iterator[tuple[Floats, Floats]]:
    """Yield pairs of tensors that have the same name and shape."""
    with safe_open(a, framework="pt") as left, safe_open(b, framework="pt") as right:  # NumPy has no bfloat16
        for name in sorted({*left.keys()} & {*right.keys()}):
            x, y = left.get_tensor(name), right.get_tensor(name)
            if x.shape == y.shape:
                yield x.double().flatten().numpy(), y.double().flatten().numpy()


def _difference(name: str, pairs: Iterable[tuple[Floats, Floats]]) -> Difference:
    cells, differing, numbers, largest, total = 0, 0, 0, 0.0, 0.0
    for a, b in pairs:
        unlike = (a != b) & ~(np.isnan(a) & np.isnan(b))
        cells, differing = cells + a.size, differing + int(unlike.sum())
        distances = np.abs(a[unlike] - b[unlike])
        distances = distances[np.isfinite(distances)]
        numbers += distances.size
        largest, total = max(largest, distances.max(initial=0.0)), total + float(distances.sum())
    known = (float(largest), total / numbers) if numbers else (None, None)
    return Difference(name, differing, cells, *known)


# The verb


ARGUMENTS = (
    argument("a", type=Path, metavar="A", help="artefact"),
    argument("b", type=Path, metavar="B", help="artefact to compare it with"),
)


def answer(a: Path, b: Path) -> Answer:
    """Return the differences between two artefacts, then those of the inputs that caused them."""
    steps = diff(a, b)
    equal, changes = steps[0].contents_equal, steps[0].changes
    said = "contents equal" if equal else "contents differ"
    return Answer(
        said if changes or not equal else "no difference",
        equal and not changes,
        [sentence(steps), *(part for number, step in enumerate(steps, 1) for part in _parts(number, step))],
        {"contents_equal": equal},
    )


_CAUSES = ("rule", "wildcard", "setting", "code", "package")
_HASH_DIGITS = 12
_NAMED = 3
"""Maximum number of changes that the sentence names; the others are counted."""


def sentence(steps: Sequence[Step]) -> str:
    """Return a sentence on the difference and its cause, which is in the last step."""
    first, last = steps[0], steps[-1]
    if not first.changes:
        said = "Contents and records are equal"
        return f"{said if first.contents_equal else 'The contents differ, the records are equal'}."
    causes = [change for change in last.changes if change.section in _CAUSES] or last.changes
    named = [_named(change) for change in causes[:_NAMED]]
    more = [f"and {len(causes) - _NAMED} more"] if len(causes) > _NAMED else []
    said = "The contents are equal; the records differ" if first.contents_equal else "The contents differ"
    cause = f", because of input {steps[-2].followed}" if len(steps) > 1 else ""
    because = f": {', '.join([*named, *more])}" if named else ", whose records are equal"
    return f"{said}{cause}{because}."


def _named(change: Change) -> str:
    values = "" if change.section in HASHES else f" ({change.a} and {change.b})"
    return f"{change.section} {change.key}".rstrip() + values


def _parts(number: int, step: Step) -> Iterator[str | PrintedTable]:
    of_step = {"step": number}
    pair = {name: getattr(step, name) for name in ("a", "b", "contents_equal", "followed", "not_followed")}
    yield PrintedTable("steps", [of_step | pair], shown=())
    yield f"A {step.a}\nB {step.b}"
    changes = [of_step | change for change in rows_of(step.changes)]
    yield PrintedTable("differences", changes, shown=[_row(change) for change in step.changes])
    if not step.changes and not step.contents_equal:
        yield "the records are equal: two outputs of one job, or a job that is not deterministic"
    numbers = rows_of(step.numbers)
    yield PrintedTable("numbers", [of_step | row for row in numbers], shown=numbers)
    if step.followed:
        yield f"input {step.followed}:"
    elif step.not_followed:
        yield f"not followed: {'; '.join(step.not_followed)}"


def _row(change: Change) -> Mapping[str, object]:
    """Return a change as a row to print, with shortened hashes."""
    sides = (str(side)[:_HASH_DIGITS] if change.section in HASHES else side for side in (change.a, change.b))
    return dict(zip(("what", "key", "A", "B"), (change.section, change.key, *sides), strict=True))
