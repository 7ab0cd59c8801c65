"""Show what a file was made from, down to the sources.

Each line names a file, the rule and wildcards that made it, the start of its hash, and its labels. Files that
were shown already are not repeated; for an input that has been rebuilt since, the ancestry of the new one is shown.
For a table, --cell selects rows, prints them and every seed's score that they and their differences were computed
from, and keeps only the inputs that these rows come from, so that a number leads to its score files and those of its
baseline, to their models and their text:

  python -m workflow_scripts.audit explain results/demo/scores.parquet --cell run=simcse,task=STS12
"""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from workflow_scripts.audit.cells import Agrees, SeedScore, agreement, parse_cell, rows_of, scores_behind
from workflow_scripts.audit.disk import collect, inspect
from workflow_scripts.audit.lookup import (
    artefact_at,
    artefact_record,
    flat,
    identity_at,
    is_outside,
    made_on,
    name_of,
    record_at,
    recorded_name,
)
from workflow_scripts.audit.printing import console, print_json, table
from workflow_scripts.audit.verify import Verifier
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import RECORD_FILE, identity
from workflow_scripts.provenance.record import Record

State = Literal["as recorded", "rebuilt since", "damaged", "missing", "file", "source"]
_MOST_ROWS = 50
_ROWS_SIDE_BY_SIDE = 3


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

    def walk(self) -> Iterator["Node"]:
        """This node and all below it."""
        yield self
        for node in self.inputs.values():
            yield from node.walk()

    def as_data(self, *, full: bool) -> dict[str, object]:
        """The ancestry as data for JSON; ``full`` adds settings, code, packages and origin."""
        data: dict[str, object] = {"path": self.path, "state": self.state, "sha256": self.sha256}
        if self.record is not None:
            shown = {"rule", "wildcards", "labels"}
            shown |= {"settings", "meaning", "packages", "origin"} if full else set()
            data |= self.record.model_dump(include=shown)
        data |= {"repeated": True} if self.repeated else {}
        data |= {"left_out": self.left_out} if self.left_out else {}
        if self.inputs:
            data["inputs"] = {role: node.as_data(full=full) for role, node in self.inputs.items()}
        return data


def explain(path: Path, root: Path, agrees: Agrees | None = None) -> Node:
    """The ancestry of the artefact that ``path`` is or is part of.

    Args:
        path: File or model folder.
        root: Folder where snakemake ran.
        agrees: Selects inputs by their wildcards; below an input that agrees, everything is kept.

    Raises:
        DataError: if the file is missing, is not an artefact, or its record cannot be read.
    """
    name = artefact_at(name_of(path, root), root)
    record = artefact_record(root / name)
    state: State = "damaged" if _is_damaged(root / name, root) else "as recorded"
    node = Node(name, state, str(identity_at(root / name)), record)
    _add_inputs(node, root, agrees, set())
    return node


def _add_inputs(node: Node, root: Path, agrees: Agrees | None, seen: set[tuple[str, bool]]) -> None:
    assert node.record is not None
    for role, given in node.record.inputs.items():  # in the record's order: that of members, where it counts
        if is_outside(given.path):
            node.inputs[role] = Node(given.path, "source", given.sha256)
            continue
        name = artefact_at(recorded_name(given.path, root), root)
        child = node_at(name, given.sha256, root)
        verdict = agrees(child.record.wildcards) if agrees and child.record else None
        if verdict is False:
            node.left_out += 1
            continue
        node.inputs[role] = child
        below = None if verdict else agrees
        if child.record is not None and child.record.inputs:
            child.repeated = (name, below is None) in seen
            seen.add((name, below is None))
            if not child.repeated:
                _add_inputs(child, root, below, seen)


def node_at(name: str, sha256: str, root: Path) -> Node:
    """A file, and whether it is the one that was read with this hash; nothing below it."""
    place = root / name
    if not place.exists():
        return Node(name, "missing", sha256)
    try:
        record = record_at(place)
    except DataError:
        return Node(name, "damaged", sha256)
    if record is None:
        return Node(name, "file", sha256)
    if _is_damaged(place, root):
        return Node(name, "damaged", sha256, record)
    return Node(name, "as recorded" if identity_at(place) == sha256 else "rebuilt since", sha256, record)


def _is_damaged(place: Path, root: Path) -> bool:
    """Whether an artefact is not as it was written; each file is read once. Weights may lack that a study drops."""
    try:
        identity(place)
    except DataError:
        return not (place.is_dir() and _lacks_dropped_weights_alone(place, root))
    return False


def _lacks_dropped_weights_alone(model: Path, root: Path) -> bool:
    run = collect(root, [model.parent.parent])  # which lists the dropped weights of all seeds
    parts = run.parts[name_of(model, root)]
    found = {part: inspect(root / part, part_of_model=Path(part).name != RECORD_FILE) for part in parts}
    return not Verifier(run, found, []).not_as_written()


# Cells


@dataclass
class Explanation:
    """The ancestry of an artefact, and the rows it was narrowed down to."""

    chain: Node
    rows: list[dict[str, Any]] = field(default_factory=list)
    narrowed: bool = False
    """Whether wildcards of inputs agreed with the rows; if not, the ancestry is that of the whole table."""
    scores: list[SeedScore] = field(default_factory=list)
    """What means, differences and p values of the rows were computed from."""


def explain_cell(path: Path, root: Path, cell: Mapping[str, str]) -> Explanation:
    """The rows that agree with ``cell``, their scores and their baselines', and their ancestry.

    Raises:
        DataError: as ``explain`` and ``rows_of``.
    """
    whole = explain(path, root)
    rows = rows_of(path, cell).to_pylist()
    settings = whole.record.settings if whole.record else {}
    agrees = agreement(rows, settings)
    chain = explain(path, root, agrees)
    below = [node for node in chain.walk() if node is not chain and node.record]
    agreeing = [node for node in below if node.record and agrees(node.record.wildcards)]
    if not agreeing:
        return Explanation(whole, rows)
    files = {node.path: root / node.path for node in agreeing}
    return Explanation(chain, rows, narrowed=True, scores=scores_behind(rows, settings, files))


# The command


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare what ``audit explain`` takes."""
    parser.add_argument("path", type=Path, help="artefact, or a file in a model folder")
    parser.add_argument(
        "--cell", action="append", default=[], metavar="COLUMN=VALUE,...", help="rows of a table to explain"
    )
    parser.add_argument("--full", action="store_true", help="add settings, packages and commit")


def run(args: argparse.Namespace) -> int:
    """Explain and print; exit code 0."""
    cell = parse_cell(args.cell)
    found = explain_cell(args.path, args.root, cell) if cell else Explanation(explain(args.path, args.root))
    if args.json:
        scores = [score._asdict() for score in found.scores]
        rows = {"rows": found.rows, "narrowed": found.narrowed, "scores": scores} if cell else {}
        print_json({**rows, "chain": found.chain.as_data(full=args.full)})
    else:
        show(found, console(), full=args.full)
    return 0


def show(found: Explanation, out: Console, *, full: bool = False) -> None:
    """Print rows and ancestry; labels, which are long and often repeated, are shown as numbers."""
    if found.rows:
        out.print(_rows(found.rows[:_MOST_ROWS]))
        if len(found.rows) > _MOST_ROWS:
            out.print(f"and {len(found.rows) - _MOST_ROWS} more rows")
        if not found.narrowed:
            out.print("no input's wildcards agree with these rows, so all inputs are shown", style="yellow")
        if found.scores:
            out.print()
            out.print(_scores(found.scores))
        out.print()
    labels = sorted({label for node in found.chain.walk() if node.record for label in node.record.labels})
    numbers = {label: number for number, label in enumerate(labels, 1)}
    tree = Tree(_line("", found.chain, numbers))
    _grow(tree, found.chain, numbers, full=full)
    out.print(tree)
    for label, number in numbers.items():
        out.print(f"[{number}] {label}", style="yellow")


def _rows(rows: list[dict[str, Any]]) -> Table:
    """A few rows side by side, each as names and values; more as rows of a table. Empty columns are left out."""
    columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    texts = [["" if row[name] is None else str(row[name]) for name in columns] for row in rows]
    if len(rows) > _ROWS_SIDE_BY_SIDE:
        many = table(*columns)
        for values in texts:
            many.add_row(*values)
        return many
    few = Table(show_edge=False, pad_edge=False, show_header=False)
    for name, *values in zip(columns, *texts, strict=True):
        few.add_row(name, *values)
    return few


def _scores(scores: list[SeedScore]) -> Table:
    """What the rows were computed from, the baseline's part named as such."""
    shown = table("heading", "of run", "seed", "score", "whose", numbers=["seed", "score"])
    for score in scores:
        value = "gap" if score.value is None else f"{score.value:.6g}"
        whose = "the baseline's" if score.is_baseline else "the row's own"
        shown.add_row(score.heading, score.run, str(score.seed), value, whose)
    return shown


def _grow(tree: Tree, node: Node, numbers: Mapping[str, int], *, full: bool) -> None:
    if full and node.record is not None and not node.repeated:
        record = node.record
        for key, value in flat(record.settings).items():
            tree.add(f"setting {key} = {value}", style="dim")
        for package, known in record.packages.items():
            tree.add(f"package {package} {known}", style="dim")
        tree.add(
            f"commit {record.origin.commit}{' with changes' if record.origin.dirty else ''}", style="dim"
        )
        tree.add(f"machine {made_on(record.origin)}", style="dim")
    for role, child in node.inputs.items():
        _grow(tree.add(_line(role, child, numbers)), child, numbers, full=full)
    if node.left_out:
        tree.add(f"{node.left_out} inputs of other rows left out", style="dim")


def _line(role: str, node: Node, numbers: Mapping[str, int]) -> str:
    role = role.partition("/")[0]  # where an input has several files, a role includes the file's path
    parts = [f"{role}:" if role else "", node.path]
    if node.record is not None:
        wildcards = ", ".join(f"{key}={value}" for key, value in node.record.wildcards.items())
        parts += [f"{node.record.rule}({wildcards})", node.sha256[:12]]
        parts += [f"[{numbers[label]}]" for label in node.record.labels]
    else:
        parts.append(node.sha256[:12])
    parts.append(f"({node.state})" if node.state in ("rebuilt since", "damaged", "missing") else "")
    parts.append("(above)" if node.repeated else "")
    return " ".join(part for part in parts if part)
