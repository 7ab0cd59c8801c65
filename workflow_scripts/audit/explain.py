"""Show what a file was made from, down to the sources.

Each line names a file, the rule and wildcards that made it, the start of its seal, and its labels. What was
shown already is not repeated; below an input that was made anew since stands what the new one was made from.
For a table, --cell picks rows, prints them, and keeps only those inputs whose wildcards agree with the rows,
so that a number leads to its score file, its model and its text:

  python -m workflow_scripts.audit explain results/demo/scores.parquet --cell run=simcse,task=STS12
"""

import argparse
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from rich.table import Table
from rich.tree import Tree

from workflow_scripts.artefacts import identity
from workflow_scripts.audit.reading import (
    artefact_at,
    artefact_record,
    console,
    flat,
    is_outside,
    name_of,
    print_json,
    record_at,
    recorded_name,
    seal_at,
)
from workflow_scripts.errors import DataError
from workflow_scripts.provenance import Record

State = Literal["as recorded", "made anew since", "damaged", "missing", "file", "source"]
Agrees = Callable[[Mapping[str, str]], bool | None]
"""Whether wildcards agree with the rows asked for; None where they say nothing about them."""

_MOST_ROWS = 50
_ROWS_SIDE_BY_SIDE = 3


@dataclass
class Node:
    """One file of a chain."""

    path: str
    state: State
    seal: str
    """As the record of what was made from it has it."""
    record: Record | None = None
    repeated: bool = False
    inputs: dict[str, "Node"] = field(default_factory=dict)
    """Role to input; empty where repeated."""
    left_out: int = 0
    """Inputs that the rows asked for do not come from."""

    def walk(self) -> Iterator["Node"]:
        """This node and all below it."""
        yield self
        for node in self.inputs.values():
            yield from node.walk()

    def as_data(self, *, full: bool) -> dict[str, object]:
        """The chain as JSON can hold it; ``full`` adds settings, code, packages and commit."""
        data: dict[str, object] = {"path": self.path, "state": self.state, "seal": self.seal}
        if self.record is not None:
            shown = {"rule", "wildcards", "labels"}
            shown |= {"settings", "code", "packages", "commit", "dirty"} if full else set()
            data |= self.record.model_dump(include=shown)
        data |= {"repeated": True} if self.repeated else {}
        data |= {"left_out": self.left_out} if self.left_out else {}
        if self.inputs:
            data["inputs"] = {role: node.as_data(full=full) for role, node in self.inputs.items()}
        return data


def explain(path: Path, root: Path, agrees: Agrees | None = None) -> Node:
    """The chain behind the artefact that ``path`` is or is part of.

    Args:
        path: File or model folder.
        root: Folder where snakemake ran.
        agrees: Which inputs to keep, by their wildcards; below one that agrees everything is kept.

    Raises:
        DataError: if the file is missing, is no artefact, or its record cannot be read.
    """
    name = artefact_at(name_of(path, root), root)
    record = artefact_record(root / name)
    node = Node(name, "as recorded", str(seal_at(root / name)), record)
    try:
        identity(root / name)
    except DataError:
        node.state = "damaged"
    _add_inputs(node, root, agrees, set())
    return node


def _add_inputs(node: Node, root: Path, agrees: Agrees | None, seen: set[tuple[str, bool]]) -> None:
    assert node.record is not None
    for role, given in sorted(node.record.inputs.items()):
        if is_outside(given.path):
            node.inputs[role] = Node(given.path, "source", given.sha256)
            continue
        name = artefact_at(recorded_name(given.path, root), root)
        child = _node(name, given.sha256, root)
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


def _node(name: str, seal: str, root: Path) -> Node:
    place = root / name
    if not place.exists():
        return Node(name, "missing", seal)
    try:
        record = record_at(place)
    except DataError:
        return Node(name, "damaged", seal)
    if record is None:
        return Node(name, "file", seal)
    return Node(name, "as recorded" if seal_at(place) == seal else "made anew since", seal, record)


# Cells


def parse_cell(texts: Iterable[str]) -> dict[str, str]:
    """Read ``column=value`` pairs, separated by commas.

    Raises:
        DataError: if one is no pair.
    """
    found = {}
    for pair in (pair for text in texts for pair in text.split(",")):
        column, equals, value = pair.partition("=")
        if not equals:
            raise DataError(f"--cell {pair}: no '='. Write column=value, such as run=simcse,task=STS12.")
        found[column.strip()] = value.strip()
    return found


def rows_of(path: Path, cell: Mapping[str, str]) -> pa.Table:
    """The rows of a table in which every column of ``cell`` has the value asked for; empty means null.

    Raises:
        DataError: if the file is no table, a column is not there, or no row agrees.
    """
    if path.suffix != ".parquet":
        raise DataError(f"{path}: no table, so it has no cells. Name a .parquet file, or leave --cell out.")
    rows = pq.read_table(path)
    for column, wanted in cell.items():
        if column not in rows.column_names:
            raise DataError(f"{path}: no column {column!r}; has {rows.column_names}. Correct --cell.")
        present = rows[column].to_pylist()
        rows = rows.filter(pa.array([_is(value, wanted) for value in present]))
        if not rows.num_rows:
            values = ", ".join(sorted(set(map(str, present)))[:10])
            raise DataError(f"{path}: no row with {column}={wanted}; has {values}. Correct --cell.")
    return rows


def _is(value: object, wanted: str) -> bool:
    if value is None:
        return not wanted
    if isinstance(value, float):
        with suppress(ValueError):
            return value == float(wanted)
    return str(value) == wanted


def agreement(rows: pa.Table) -> Agrees:
    """Whether wildcards agree with one of ``rows`` in each column of the same name, but for nulls."""
    wanted = {
        tuple((key, str(value)) for key, value in row.items() if value is not None)
        for row in rows.to_pylist()
    }
    names = set(rows.column_names)

    def agrees(wildcards: Mapping[str, str]) -> bool | None:
        if not names & wildcards.keys():
            return None
        return any(all(wildcards.get(key, value) == value for key, value in row) for row in wanted)

    return agrees


@dataclass
class Explanation:
    """A chain, and the rows it was asked for."""

    chain: Node
    rows: list[dict[str, Any]] = field(default_factory=list)
    narrowed: bool = False
    """Whether wildcards of inputs agreed with the rows; if not, the chain is that of the whole table."""


def explain_cell(path: Path, root: Path, cell: Mapping[str, str]) -> Explanation:
    """The rows that agree with ``cell``, and the chain behind them.

    Raises:
        DataError: as ``explain`` and ``rows_of``.
    """
    whole = explain(path, root)
    rows = rows_of(path, cell)
    agrees = agreement(rows)
    chain = explain(path, root, agrees)
    narrowed = any(
        node.record and agrees(node.record.wildcards) for node in chain.walk() if node is not chain
    )
    return Explanation(chain if narrowed else whole, rows.to_pylist(), narrowed)


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
        rows = {"rows": found.rows, "narrowed": found.narrowed} if cell else {}
        print_json({**rows, "chain": found.chain.as_data(full=args.full)})
    else:
        show(found, console(), full=args.full)
    return 0


def show(found: Explanation, out: Console, *, full: bool = False) -> None:
    """Print rows and chain for people; labels, which are long and many times the same, get numbers."""
    if found.rows:
        out.print(_rows(found.rows[:_MOST_ROWS]))
        if len(found.rows) > _MOST_ROWS:
            out.print(f"and {len(found.rows) - _MOST_ROWS} more rows")
        if not found.narrowed:
            out.print("no input has wildcards that agree with these rows; all inputs follow", style="yellow")
        out.print()
    labels = sorted({label for node in found.chain.walk() if node.record for label in node.record.labels})
    numbers = {label: number for number, label in enumerate(labels, 1)}
    tree = Tree(_line("", found.chain, numbers))
    _grow(tree, found.chain, numbers, full=full)
    out.print(tree)
    for label, number in numbers.items():
        out.print(f"[{number}] {label}", style="yellow")


def _rows(rows: list[dict[str, Any]]) -> Table:
    """Few rows as columns of names and values, many as rows; columns that hold nothing are left out."""
    columns = [name for name in rows[0] if any(row[name] is not None for row in rows)]
    texts = [["" if row[name] is None else str(row[name]) for name in columns] for row in rows]
    if len(rows) > _ROWS_SIDE_BY_SIDE:
        table = Table(*columns, show_edge=False, pad_edge=False)
        for values in texts:
            table.add_row(*values)
        return table
    table = Table(show_edge=False, pad_edge=False, show_header=False)
    for name, *values in zip(columns, *texts, strict=True):
        table.add_row(name, *values)
    return table


def _grow(tree: Tree, node: Node, numbers: Mapping[str, int], *, full: bool) -> None:
    if full and node.record is not None and not node.repeated:
        record = node.record
        for key, value in flat(record.settings).items():
            tree.add(f"setting {key} = {value}", style="dim")
        for package, known in record.packages.items():
            tree.add(f"package {package} {known}", style="dim")
        tree.add(f"commit {record.commit}{' with changes' if record.dirty else ''}", style="dim")
    for role, child in node.inputs.items():
        _grow(tree.add(_line(role, child, numbers)), child, numbers, full=full)
    if node.left_out:
        tree.add(f"{node.left_out} inputs of other rows left out", style="dim")


def _line(role: str, node: Node, numbers: Mapping[str, int]) -> str:
    role = role.partition("/")[0]  # where an input is several files, each has its path in its role
    parts = [f"{role}:" if role else "", node.path]
    if node.record is not None:
        wildcards = ", ".join(f"{key}={value}" for key, value in node.record.wildcards.items())
        parts += [f"{node.record.rule}({wildcards})", node.seal[:12]]
        parts += [f"[{numbers[label]}]" for label in node.record.labels]
    else:
        parts.append(node.seal[:12])
    parts.append(f"({node.state})" if node.state in ("made anew since", "damaged", "missing") else "")
    parts.append("(above)" if node.repeated else "")
    return " ".join(part for part in parts if part)
