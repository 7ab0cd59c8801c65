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

import argparse
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from workflow_scripts.audit.cells import Agrees, agreement, parse_cell, rows_of, runs_of, scores_behind
from workflow_scripts.audit.lookup import (
    artefact_of,
    artefact_record,
    flat,
    is_outside,
    made_by,
    name_of,
    record_at,
)
from workflow_scripts.audit.printing import Answer, Row, Rows, without_empty
from workflow_scripts.audit.verify import checked, studies_of, unchecked
from workflow_scripts.columns.training import DROPPED_FILE
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import identity, sealed_identity
from workflow_scripts.provenance.record import Record

State = Literal["as recorded", "rebuilt since", "damaged", "missing", "file", "source"]
_BROKEN = ("rebuilt since", "damaged", "missing")
_ROWS_SIDE_BY_SIDE = 3
_MADE_WITH = ("method.", "training.", "readout.")
"""Settings of a run that say how it was made."""


@dataclass
class Node:
    """One file in the ancestry of an artefact."""

    path: str
    state: State
    sha256: str
    """Of its contents, as given in the record of the artefact that was made from it."""
    record: Record | None = None
    repeated: bool = False
    inputs: dict[str, "Node"] = field(default_factory=dict)
    """Role to input; empty where repeated."""
    left_out: int = 0
    """Number of inputs that the selected rows do not come from."""

    def walk(self, depth: int = 0, role: str = "") -> Iterator[tuple[int, str, "Node"]]:
        """This node and all below it, each with its depth and role."""
        yield depth, role, self
        for name, node in self.inputs.items():
            yield from node.walk(depth + 1, name)

    def nodes(self) -> list["Node"]:
        """This node and all below it."""
        return [node for _depth, _role, node in self.walk()]


def explain(path: Path, agrees: Agrees | None = None) -> Node:
    """The ancestry of the artefact that ``path`` is or is part of.

    Args:
        path: File or model folder.
        agrees: Selects inputs by their wildcards; below an input that agrees, everything is kept.

    Raises:
        DataError: if the file is missing, is not an artefact, or its record cannot be read.
    """
    name = artefact_of(name_of(path))
    record = artefact_record(Path(name))
    node = _node_at(name, str(sealed_identity(Path(name))))
    node.record = record
    _add_inputs(node, agrees, set())
    return node


def _add_inputs(node: Node, agrees: Agrees | None, seen: set[tuple[str, bool]]) -> None:
    assert node.record is not None
    for role, given in node.record.inputs.items():  # in the record's order: that of members, where it counts
        child = _node_at(given.path, given.sha256)
        verdict = agrees(child.record.wildcards) if agrees and child.record else None
        if verdict is False:
            node.left_out += 1
            continue
        node.inputs[role] = child
        below = None if verdict else agrees
        if child.record is not None and child.record.inputs:
            shown = (child.path, below is None)
            child.repeated = shown in seen
            seen.add(shown)
            if not child.repeated:
                _add_inputs(child, below, seen)


def _node_at(name: str, sha256: str) -> Node:
    """A file or source, and whether it is the one that was read with this hash; nothing below it."""
    if is_outside(name):
        return Node(name, "source", sha256)
    if not Path(name).exists():
        return Node(name, "missing", sha256)
    try:
        record = record_at(Path(name))
    except DataError:
        return Node(name, "damaged", sha256)
    if record is None:
        return Node(name, "file", sha256)
    state: State = "as recorded" if sealed_identity(Path(name)) == sha256 else "rebuilt since"
    return Node(name, "damaged" if _is_damaged(name) else state, sha256, record)


def _is_damaged(name: str) -> bool:
    """Whether an artefact is not as it was written; each file is read once. Weights may lack that a study drops."""
    try:
        identity(Path(name))
    except DataError:
        run = Path(*Path(name).parts[:-3])  # which lists the dropped weights of all seeds
        broken = checked([run]).not_as_written() if (run / DROPPED_FILE).is_file() else [name]
        return name in map(artefact_of, broken)
    return False


# Cells


@dataclass
class Explanation:
    """The ancestry of an artefact, and the rows it was narrowed down to."""

    chain: Node
    rows: list[dict[str, Any]] = field(default_factory=list)
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
    below = [node for node in chain.nodes() if node is not chain and node.record]
    agreeing = [node.path for node in below if node.record and agrees(node.record.wildcards)]
    if not agreeing:
        return Explanation(explain(path), rows)
    scores = scores_behind(rows, settings, agreeing)
    return Explanation(chain, rows, True, scores, made_with(below, runs_of(rows)))


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
    verifier = unchecked(studies_of([]))
    path = name if is_outside(name) else artefact_of(name_of(name))
    found = verifier.made_from(path)
    if not found and path not in verifier.records:
        raise DataError(
            f"{name}: no record names it. Name a file below results/, or a source as explain does."
        )
    return [{"made into": one, "by": made_by(verifier.records[one])} for one in sorted(found)]


# The verb


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what explain takes."""
    parser.add_argument("path", help="artefact, or a file in a model folder")
    parser.add_argument(
        "--cell", action="append", default=[], metavar="COLUMN=VALUE,...", help="rows of a table to explain"
    )
    parser.add_argument("--into", action="store_true", help="what was made from it, instead")


def answer(args: argparse.Namespace) -> Answer:
    """The ancestry of a file or a cell, or what was made from a file."""
    if args.into:
        made = made_into(args.path)
        return Answer(f"{len(made)} made from {args.path}", parts=[Rows("downstream", made)])
    path, cell = Path(args.path), parse_cell(args.cell)
    found = explain_cell(path, cell) if cell else Explanation(explain(path))
    nodes = found.chain.nodes()
    broken = [node.path for node in nodes if node.state in _BROKEN]
    verdict = f"{len(nodes) - 1} files and sources behind it"
    return Answer(
        f"{verdict}; not as it was: {', '.join(broken)}" if broken else verdict,
        not broken,
        [*_parts(found)],
        {"chain": [_data(*step) for step in found.chain.walk()], "narrowed": found.narrowed},
    )


def _parts(found: Explanation) -> Iterator[Rows | str]:
    yield Rows("rows", _turned(found.rows))
    if found.rows and not found.narrowed:
        yield "no input's wildcards agree with these rows, so all inputs are shown"
    yield Rows("scores", found.scores)
    yield Rows("made with", found.settings)
    records = [node.record for node in found.chain.nodes() if node.record]
    labels = sorted({label for record in records for label in record.labels})
    numbers = {label: number for number, label in enumerate(labels, 1)}
    for depth, role, node in found.chain.walk():
        yield "  " * depth + _line(role, node, numbers)
        if node.left_out:
            yield "  " * (depth + 1) + f"{node.left_out} inputs of other rows left out"
    yield from (f"[{number}] {label}" for label, number in numbers.items())


def _turned(rows: list[dict[str, Any]]) -> list[Row]:
    """A few rows as columns of names and values, for they are wide; empty columns are left out."""
    filled = without_empty(rows)
    if len(rows) > _ROWS_SIDE_BY_SIDE:
        return filled
    names = filled[0] if filled else ()
    return [{"column": name} | {f"row {n}": row[name] for n, row in enumerate(filled, 1)} for name in names]


def _line(role: str, node: Node, numbers: Mapping[str, int]) -> str:
    role = role.partition("/")[0]  # where an input has several files, a role includes the file's path
    parts = [f"{role}:" if role else "", node.path]
    parts.append(made_by(node.record) if node.record else "")
    parts.append(node.sha256[:12])
    parts += [f"[{numbers[label]}]" for label in node.record.labels] if node.record else []
    parts.append(f"({node.state})" if node.state in _BROKEN else "")
    parts.append("(above)" if node.repeated else "")
    return " ".join(part for part in parts if part)


def _data(depth: int, role: str, node: Node) -> Row:
    """A node for JSON, with all that its record says."""
    data = {"depth": depth, "role": role, "path": node.path, "state": node.state, "sha256": node.sha256}
    return data | (node.record.model_dump(exclude={"inputs"}) if node.record else {})
