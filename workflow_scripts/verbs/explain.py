"""Show what a file was made from, down to the sources.

Each line names a file, the rule and wildcards that made it, the start of its hash, and its labels. Files that
were shown already are not repeated; for an input that has been rebuilt since, the ancestry of the new one is shown.
Exit code 1 if anything in it is missing, damaged or has been rebuilt since.

For a table, --cell selects rows, prints them, the settings of their runs and every seed's score that they and their
differences were computed from, and keeps only the inputs that these rows come from, so that a number leads to its score
files and those of its baseline, to their models and their text. --json adds all settings, code, packages and the
machine of each job. With --into, the other direction: everything that was
made from a file, or from a source as records name it, such as hub:owner/name@revision/file.

  python -m workflow_scripts explain results/demo/tables/demo.parquet --cell run=simcse.minilm_mlm.wiki_extract
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, NamedTuple

from workflow_scripts.columns.training import DROPPED_FILE
from workflow_scripts.errors import DataError
from workflow_scripts.graph.reasons import flat
from workflow_scripts.provenance.artefacts import identity, seal_of
from workflow_scripts.provenance.record import Record
from workflow_scripts.verbs.cells import Agrees, agreement, parse_cell, rows_of, runs_of, scores_behind
from workflow_scripts.verbs.printing import Answer, Row, Rows, argument, without_empty
from workflow_scripts.verbs.records import (
    Records,
    artefact_of,
    artefact_record,
    is_outside,
    made_by,
    name_of,
    record_at,
    studies_of,
)
from workflow_scripts.verbs.verify import not_as_written

State = Literal["as recorded", "rebuilt since", "damaged", "missing", "file", "source"]
_BROKEN = ("rebuilt since", "damaged", "missing")
_ROWS_SIDE_BY_SIDE = 3
_MADE_WITH = ("method.", "training.", "readout.")
"""Settings of a run that say how it was made."""


@dataclass
class Node:
    """One file in the ancestry of an artefact."""

    depth: int
    """How many jobs lie between it and the artefact."""
    role: str
    path: str
    state: State
    sha256: str
    """Of its contents, as given in the record of the artefact that was made from it."""
    record: Record | None = None
    repeated: bool = False
    """Whether its inputs were listed before."""
    left_out: int = 0
    """Number of inputs that the selected rows do not come from."""


def explain(path: Path, agrees: Agrees | None = None) -> list[Node]:
    """The artefact that ``path`` is or is part of, and below it its ancestry, each file before its own inputs.

    Args:
        path: File or model folder.
        agrees: Selects inputs by their wildcards; below an input that agrees, everything is kept.

    Raises:
        DataError: if the file is missing, is not an artefact, or its record cannot be read.
    """
    name = Path(artefact_of(name_of(path)))
    record = artefact_record(name)
    seal = seal_of(name)
    state: State = "damaged" if _is_damaged(name) else "as recorded"
    first = Node(0, "", name.as_posix(), state, seal.identity if seal else "", record)
    return [*_below(first, agrees, set())]


def _below(node: Node, agrees: Agrees | None, seen: set[tuple[str, bool]]) -> Iterator[Node]:
    """A node and its ancestry, in the order of the records: that of members, where it counts."""
    yield node
    if node.record is None or not node.record.inputs:
        return
    shown = (node.path, agrees is None)
    node.repeated = shown in seen
    if node.repeated:
        return
    seen.add(shown)
    for role, given in node.record.inputs.items():
        state, record = _state_of(given.path, given.sha256)
        verdict = agrees(record.wildcards) if agrees and record else None
        if verdict is False:
            node.left_out += 1
            continue
        child = Node(node.depth + 1, role, given.path, state, given.sha256, record)
        yield from _below(child, None if verdict else agrees, seen)


def _state_of(name: str, sha256: str) -> tuple[State, Record | None]:
    """Whether a file or source is the one that was read with this hash, and its record if that can be read."""
    path = Path(name)
    if is_outside(name):
        return "source", None
    if not path.exists():
        return "missing", None
    try:
        record = record_at(path)
    except DataError:
        return "damaged", None
    if record is None:
        return "file", None
    if _is_damaged(path):
        return "damaged", record
    seal = seal_of(path)
    return ("as recorded" if seal and seal.identity == sha256 else "rebuilt since"), record


def _is_damaged(path: Path) -> bool:
    """Whether an artefact is not as it was written; each file is read once. Weights may lack that a study drops."""
    try:
        identity(path)
    except DataError:
        run = Path(*path.parts[:-3])  # which lists the dropped weights of all seeds
        broken = not_as_written(Records([run])) if (run / DROPPED_FILE).is_file() else [path.as_posix()]
        return path.as_posix() in map(artefact_of, broken)
    return False


# Cells


class Explanation(NamedTuple):
    """The ancestry of an artefact, and the rows it was narrowed down to."""

    chain: list[Node]
    rows: Sequence[Row] = ()
    narrowed: bool = False
    """Whether wildcards of inputs agreed with the rows; if not, the ancestry is that of the whole table."""
    scores: Sequence[Row] = ()
    """What means, differences and p values of the rows were computed from."""
    settings: Sequence[Row] = ()
    """How the rows' runs were made: a row a setting, a column a run."""


def explain_cell(path: Path, cell: Mapping[str, str]) -> Explanation:
    """The rows that agree with ``cell``, their scores and their baselines', and their ancestry.

    Raises:
        DataError: as ``explain`` and ``rows_of``.
    """
    rows = rows_of(path, cell).to_pylist()
    settings = artefact_record(path).settings
    agrees = agreement(rows, settings)
    chain = explain(path, agrees)
    agreeing = [node.path for node in chain[1:] if node.record and agrees(node.record.wildcards)]
    if not agreeing:
        return Explanation(explain(path), rows)
    scores = scores_behind(rows, settings, agreeing)
    return Explanation(chain, rows, True, scores, made_with(chain[1:], runs_of(rows)))


def made_with(nodes: Iterable[Node], runs: Sequence[str]) -> list[Row]:
    """The settings of the methods and trainings of some runs, side by side; of a run's seeds, those of the first."""
    found: dict[str, Mapping[str, Any]] = {}
    for record in (node.record for node in nodes if node.record and node.record.files):
        if (run := record.wildcards.get("run")) in runs:
            found.setdefault(str(run), flat(record.settings))
    names = dict.fromkeys(name for settings in found.values() for name in settings)
    shown = [name for name in names if name.startswith(_MADE_WITH)]
    return [
        {"setting": name} | {run: found[run].get(name) for run in runs if run in found}
        for name in shown
        if any(settings.get(name) is not None for settings in found.values())
    ]


# The other direction


def made_into(name: str) -> list[Row]:
    """Everything that was made from ``name``, a file or a source as named in records.

    Raises:
        DataError: if it is not an artefact and no record names it.
    """
    records = Records(studies_of([]), hashing=False)
    path = name if is_outside(name) else artefact_of(name_of(name))
    found = records.made_from(path)
    if not found and path not in records.by_file:
        raise DataError(
            f"{name}: no record names it. Name a file below results/, or a source as explain does."
        )
    return [{"made into": one, "by": made_by(records.by_file[one])} for one in sorted(found)]


# The verb


ARGUMENTS = (
    argument("path", help="artefact, or a file in a model folder"),
    argument(
        "--cell", action="append", default=[], metavar="COLUMN=VALUE,...", help="rows of a table to explain"
    ),
    argument("--into", action="store_true", help="what was made from it, instead"),
)


def answer(path: str, cell: list[str], into: bool) -> Answer:
    """The ancestry of a file or a cell, or what was made from a file."""
    if into:
        made = made_into(path)
        return Answer(f"{len(made)} made from {path}", parts=[Rows("downstream", made)])
    found = explain_cell(Path(path), parse_cell(cell)) if cell else Explanation(explain(Path(path)))
    broken = [node.path for node in found.chain if node.state in _BROKEN]
    verdict = f"{len(found.chain) - 1} files and sources behind it"
    return Answer(
        f"{verdict}; not as it was: {', '.join(broken)}" if broken else verdict,
        not broken,
        [*_parts(found)],
        {"chain": [*map(_data, found.chain)], "narrowed": found.narrowed},
    )


def _parts(found: Explanation) -> Iterator[Rows | str]:
    yield Rows("rows", _turned(found.rows))
    if found.rows and not found.narrowed:
        yield "no input's wildcards agree with these rows, so all inputs are shown"
    yield Rows("scores", found.scores)
    yield Rows("made with", found.settings)
    labels = sorted({label for node in found.chain if node.record for label in node.record.labels})
    numbers = {label: number for number, label in enumerate(labels, 1)}
    for node in found.chain:
        yield "  " * node.depth + _line(node, numbers)
        if node.left_out:
            yield "  " * (node.depth + 1) + f"{node.left_out} inputs of other rows left out"
    yield from (f"[{number}] {label}" for label, number in numbers.items())


def _turned(rows: Sequence[Row]) -> list[Row]:
    """A few rows as columns of names and values, for they are wide; empty columns are left out."""
    filled = without_empty(rows)
    if len(rows) > _ROWS_SIDE_BY_SIDE:
        return filled
    names = filled[0] if filled else ()
    return [{"column": name} | {f"row {n}": row[name] for n, row in enumerate(filled, 1)} for name in names]


def _line(node: Node, numbers: Mapping[str, int]) -> str:
    role = node.role.partition("/")[0]  # where an input has several files, a role includes the file's path
    parts = [f"{role}:" if role else "", node.path]
    parts.append(made_by(node.record) if node.record else "")
    parts.append(node.sha256[:12])
    parts += [f"[{numbers[label]}]" for label in node.record.labels] if node.record else []
    parts.append(f"({node.state})" if node.state in _BROKEN else "")
    parts.append("(above)" if node.repeated else "")
    return " ".join(part for part in parts if part)


def _data(node: Node) -> Row:
    """A node for JSON, with all that its record says."""
    data = {name: getattr(node, name) for name in ("depth", "role", "path", "state", "sha256")}
    return data | (node.record.model_dump(exclude={"inputs"}) if node.record else {})
