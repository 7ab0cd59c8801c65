"""Show the files and sources that an artefact was made from, as a tree.

Each line has a file, the rule and wildcards that made it, the start of its hash, and numbers of its labels. A file
whose inputs were shown before is marked (above). Below an input that was made again since, the tree is that of the new
file.

For a table, --cell selects rows. They are printed with the settings of their runs, and with the score of every seed
from which they and their differences were computed. The tree then has only the files behind these rows: score files,
including those of the baselines, models and text. --json adds the facts of each job: settings, code, packages and
machine. With --into, it lists everything that was made from a file, or from a source such as
hub:owner/name@revision/file.

Exit code 1 if anything in the tree is missing, damaged or was made again since.

  python -m workflow_scripts explain results/demo/tables/demo.parquet --cell run=simcse.minilm_mlm.wiki_extract
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import product
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
from rich.text import Text
from rich.tree import Tree

from workflow_scripts.columns import SCORES
from workflow_scripts.errors import DataError, advice
from workflow_scripts.graph.slices import flat
from workflow_scripts.provenance.artefacts import identity, read_trailer
from workflow_scripts.provenance.record import Label, Record, is_outside, merged_labels
from workflow_scripts.settings.grids import scored_columns
from workflow_scripts.verbs.printing import Answer, PrintedTable, Row, argument
from workflow_scripts.verbs.records import (
    Records,
    State,
    artefact_at,
    artefact_name,
    audited_studies,
    facts,
    job_name,
    missing_file,
    present_state,
    relative_name,
)

_BROKEN = ("rebuilt since", "damaged", "missing")
_MADE_WITH = ("method.", "training.", "readout.")
"""Prefixes of the settings that determine a run's model."""
_NEXT_COLUMN = re.compile(r",(?=\s*\w+\s*=)")
Agrees = Callable[[Mapping[str, str]], bool]
"""A test of whether wildcards agree with the selected rows."""


@dataclass
class Node:
    """One file or source in the ancestry of an artefact."""

    role: str
    path: str
    sha256: str
    """Hash of its contents, as in the record of the artefact that was made from it."""
    state: State = field(init=False)
    record: Record | None = field(init=False)
    inputs: list["Node"] = field(default_factory=list)
    remark: str = ""
    """A note that its inputs are shown above, or that some are left out; else empty."""

    def __post_init__(self) -> None:
        """Read the record of the file, and compare its hash."""
        self.state, self.record = present_state(self.path, self.sha256)

    def walk(self, depth: int = 0) -> Iterator[tuple[int, "Node"]]:
        """Yield this node and its ancestry, each with the number of jobs between it and the artefact."""
        yield depth, self
        for node in self.inputs:
            yield from node.walk(depth + 1)

    def follow(self, seen: set[str], agrees: Agrees | None = None) -> None:
        """Add the ancestry, in the order of the records: the order of members matters.

        Args:
            seen: Paths with inputs that are already shown.
            agrees: Selects inputs by their wildcards.
        """
        inputs = [*self.record.listed_inputs()] if self.record else []
        if self.path in seen:
            self.remark = "(above)" if inputs else ""
            return
        seen.add(self.path)
        self.inputs = [Node(role, given.path, given.sha256) for role, given in inputs]
        if agrees:
            self.inputs = [node for node in self.inputs if not node.record or agrees(node.record.wildcards)]
            if others := len(inputs) - len(self.inputs):
                self.remark = f"({others} input{'s' if others > 1 else ''} of other rows left out)"
        for node in self.inputs:
            node.follow(seen)


def explain(path: Path, agrees: Agrees | None = None) -> Node:
    """Return the artefact that is at ``path``, or contains it, with its ancestry.

    Args:
        path: File or model folder.
        agrees: Selects its inputs by their wildcards.

    Raises:
        DataError: if the file is missing, is not an artefact, or its record cannot be read.
    """
    name, _ = artefact_at(path)
    trailer = read_trailer(name)
    top = Node("", name.as_posix(), trailer.identity if trailer else "")
    top.follow(set(), agrees)
    return top


# Cells. The table of an experiment has a run, a baseline and a heading; suite and task of the heading are in its
# settings. The table of the extraction study has a model; its representation is in its settings. An input of any other
# table agrees with a row if its wildcards equal the columns of the same name.


def explain_cell(path: Path, cell: Mapping[str, str]) -> tuple[Node, dict[str, Sequence[Row]]]:
    """Return the ancestry of the rows that agree with ``cell``, and tables about them.

    Raises:
        DataError: as ``explain`` and ``selected_rows``.
    """
    settings = artefact_at(path)[1].settings
    rows = selected_rows(path, cell)
    top = explain(path, agreement(rows, settings))
    files = [node.path for node in top.inputs if node.record]
    if not files:
        return explain(path), {"rows": rows}
    scores = scores_behind(rows, settings, files) if "experiment" in settings else []
    runs = list(dict.fromkeys(run for row in rows if "run" in row for run in _runs(row)))
    records = (node.record for _, node in top.walk() if node.record)
    return top, {"rows": rows, "scores": scores, "made with": made_with(records, runs)}


def as_columns(rows: Sequence[Row]) -> list[Row]:
    """Return rows as columns, because tables are wide; columns that are empty in all rows are left out."""
    names = [name for name in rows[0] if any(row[name] is not None for row in rows)] if rows else []
    return [{"column": name} | {f"row {n}": row[name] for n, row in enumerate(rows, 1)} for name in names]


def parse_cell(texts: Iterable[str]) -> dict[str, str]:
    """Return ``column=value`` pairs, separated by commas; a comma without a following column is part of a value.

    Raises:
        DataError: if a text is not such a pair.
    """
    by_column: dict[str, str] = {}
    for pair in (pair for text in texts for pair in _NEXT_COLUMN.split(text)):
        column, equals, value = map(str.strip, pair.partition("="))
        if not equals:
            raise DataError(f"--cell {pair}: no '='. Write column=value, such as run=simcse,task=STS12.")
        by_column[column] = value
    return by_column


def selected_rows(path: Path, cell: Mapping[str, str]) -> list[Row]:
    """Return the rows of a table in which every column of ``cell`` has the given value; an empty value means null.

    Raises:
        DataError: if the file is not a table or damaged, a column does not exist, or no row agrees.
    """
    if path.suffix != ".parquet":
        raise DataError(f"{path}: not a table, so it has no cells. Name a .parquet file, or omit --cell.")
    identity(path)
    table = pq.read_table(path)
    rows: list[Row] = table.to_pylist()
    for column, wanted in cell.items():
        if column not in table.column_names:
            raise DataError(f"{path}: no column {column!r}. {advice(column, table.column_names)}")
        texts = ["" if row[column] is None else str(row[column]) for row in rows]
        rows = [row for row, text in zip(rows, texts, strict=True) if text == wanted]
        if not rows:
            raise DataError(f"{path}: no row with {column}={wanted}. {advice(wanted, sorted({*texts}))}")
    return rows


def agreement(rows: Sequence[Row], settings: Mapping[str, Any]) -> Agrees:
    """Return a test of whether a file with some wildcards is an input of ``rows``; nulls match anything.

    Args:
        rows: Selected rows of a table.
        settings: The settings in the table's record.
    """
    wanted = [
        {key: str(value) for key, value in source.items() if value is not None}
        for row in rows
        for source in _sources(row, settings)
    ]

    def agrees(wildcards: Mapping[str, str]) -> bool:
        return any(
            all(wildcards.get(key, value) == value for key, value in source.items()) for source in wanted
        )

    return agrees


def _sources(row: Row, settings: Mapping[str, Any]) -> Iterator[Row]:
    """Yield the wildcards of the files from which a row was computed."""
    if "experiment" in settings:
        for run, column in _scored(row, settings):  # a path of a metric has no suite
            yield {"run": run} | {key: column[key] for key in ("suite", "task") if key in column}
    elif "names" in settings and "heading" in row:
        models = settings["names"]["models"]
        named = (row["heading"], row["run"], row["run"].rpartition(": ")[2])
        representation = next((models[name]["representation"] for name in named if name in models), None)
        for task in row["task"].split(", "):
            yield {"representation": representation, "kind": row["suite"], "task": task}
    else:
        yield from ({**row, "run": run} for run in _runs(row)) if "run" in row else [row]


def _runs(row: Row) -> list[str]:
    """Return the run of a row and, if it has one, its baseline."""
    return [run for run in (row["run"], row.get("baseline")) if run is not None]


def _scored(row: Row, settings: Mapping[str, Any]) -> Iterable[tuple[str, Row]]:
    """Return the runs and columns of scores from which a row of an experiment's table was computed."""
    return product(_runs(row), scored_columns(settings["experiment"]["columns"], row["heading"]))


def scores_behind(rows: Sequence[Row], settings: Mapping[str, Any], files: Iterable[str]) -> list[Row]:
    """Return the score of every seed from which rows of an experiment's table were computed, the baseline's last.

    A score is multiplied by its column's scale, as in the table. A gain also depends on the scores of the baseline.

    Args:
        rows: Selected rows of the table.
        settings: The settings in the table's record.
        files: The score files from which the rows were computed.

    Raises:
        DataError: if one of the files is damaged.
    """
    scores: list[Row] = []
    for file in (Path(file) for file in files if file.endswith(".parquet")):
        identity(file)
        table = pq.read_table(file)
        scores += table.to_pylist() if table.column_names == SCORES.names else []
    whose = ("the row's own", "the baseline's")
    values = {
        (run != row["run"], column["heading"], run, score["seed"]): score["value"]
        and score["value"] * column["scale"]
        for row in rows
        for run, column in _scored(row, settings)
        for score in scores
        if score["run"] == run
        and all(score[key] == column.get(key) for key in ("suite", "task", "aggregation", "metric"))
    }
    return [
        {
            "heading": heading,
            "of run": run,
            "seed": seed,
            "score": "gap" if value is None else value,
            "whose": whose[is_baseline],
        }
        for (is_baseline, heading, run, seed), value in sorted(values.items())
    ]


def made_with(records: Iterable[Record], runs: Sequence[str]) -> list[Row]:
    """Return a row for each setting of the methods and trainings of some runs, by the first seed of each run."""
    by_run: dict[str, Mapping[str, Any]] = {}
    for record in records:
        if record.files and (run := record.wildcards.get("run")) in runs:
            by_run.setdefault(str(run), flat(record.settings))
    names = dict.fromkeys(name for settings in by_run.values() for name in settings)
    return [
        {"setting": name, "run": run, "value": by_run[run].get(name)}
        for name in names
        if name.startswith(_MADE_WITH) and any(settings.get(name) is not None for settings in by_run.values())
        for run in runs
        if run in by_run
    ]


def side_by_side(settings: Sequence[Row]) -> list[Row]:
    """Return a row for each setting, with a column for each run."""
    names = dict.fromkeys(row["setting"] for row in settings)
    return [
        {"setting": name} | {row["run"]: row["value"] for row in settings if row["setting"] == name}
        for name in names
    ]


# The other direction


def made_into(name: str) -> list[Row]:
    """Return a row for each file that was made from ``name``, a file or a source as named in records.

    Raises:
        DataError: if it is not an artefact and no record names it.
    """
    records = Records(audited_studies([]), hashing=False)
    path = name if is_outside(name) else artefact_name(relative_name(name))
    if Path(path).is_dir():
        raise missing_file(Path(path))
    files = records.made_from(path)
    if not files and path not in records.by_file:
        close = get_close_matches(path, {*records.readers, *records.by_file}, n=1)
        remedy = (
            f"Did you mean {close[0]}?"
            if close
            else "Name a file below results/, or a source as explain does."
        )
        raise DataError(f"{name}: no record names it. {remedy}")
    makers = {file: records.by_file[file] for file in sorted(files)}
    return [
        {"made into": file, "by": job_name(record.rule, record.wildcards)} for file, record in makers.items()
    ]


# The verb


ARGUMENTS = (
    argument("path", metavar="PATH", help="artefact, or a file in a model folder"),
    argument(
        "--cell",
        exclusive=True,
        action="append",
        default=[],
        metavar="COLUMN=VALUE,...",
        help="rows of a table to explain",
    ),
    argument(
        "--into", exclusive=True, action="store_true", help="list the files that were made from it instead"
    ),
)


def answer(path: str, cell: list[str], into: bool) -> Answer:
    """Return the ancestry of a file or a cell, or the files that were made from a file."""
    if into:
        files = made_into(path)
        return Answer(f"{len(files)} made from {path}", parts=[PrintedTable("downstream", files)])
    top, tables = explain_cell(Path(path), parse_cell(cell)) if cell else (explain(Path(path)), {})
    narrowed, chain = "scores" in tables, [*top.walk()]
    rows, settings = tables.get("rows", ()), tables.get("made with", ())
    broken = [node.path for _, node in chain if node.state in _BROKEN]
    verdict = f"{len(chain) - 1} files and sources behind it"
    labels = merged_labels(*(node.record.labels for _, node in chain if node.record))
    numbers = {label: number for number, label in enumerate(labels, 1)}
    unnarrowed = "no input's wildcards agree with these rows: all inputs are shown"
    return Answer(
        f"{verdict}; not as it was: {', '.join(broken)}" if broken else verdict,
        not broken,
        [
            PrintedTable("rows", rows, shown=as_columns(rows)),
            PrintedTable("scores", tables.get("scores", ())),
            PrintedTable("made with", settings, shown=side_by_side(settings)),
            PrintedTable("files", [_file(depth, node) for depth, node in chain], shown=()),
            PrintedTable("facts", [fact for _, node in chain for fact in _facts(node)], shown=()),
            *([unnarrowed] if cell and not narrowed else []),
            _tree(top, numbers),
            *(f"[{number}] {label}" for label, number in numbers.items()),
        ],
        {"narrowed": narrowed},
    )


def _tree(node: Node, numbers: Mapping[Label, int]) -> Tree:
    """Return the lines of a node and its ancestry; labels are printed as numbers."""
    record = node.record
    parts = [
        f"{node.role}:" if node.role else "",
        node.path,
        job_name(record.rule, record.wildcards) if record else "",
        node.sha256[:12],
        *(f"[{numbers[label]}]" for label in (record.labels if record else ())),
        f"({node.state})" if node.state in _BROKEN else "",
        node.remark,
    ]
    tree = Tree(Text(" ".join(filter(None, parts)), style="red" if node.state in _BROKEN else ""))
    tree.children += [_tree(child, numbers) for child in node.inputs]
    return tree


def _file(depth: int, node: Node) -> Row:
    """Return a node as a row of --json."""
    job = job_name(node.record.rule, node.record.wildcards) if node.record else None
    row = {"depth": depth, "role": node.role, "path": node.path, "state": node.state}
    return row | {"sha256": node.sha256, "job": job}


def _facts(node: Node) -> Iterator[Row]:
    """Yield a row of --json for each entry of a node's record, but for its inputs, which are nodes."""
    for section, entries in facts(node.record).items() if node.record else ():
        if section != "input":
            yield from (
                {"path": node.path, "section": section, "key": key, "value": value}
                for key, value in entries.items()
            )
