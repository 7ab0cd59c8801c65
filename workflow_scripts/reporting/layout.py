"""A table with all that readers see of it, as text that the terminal, documents and the page print."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from types import MappingProxyType
from typing import NamedTuple

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.extraction import shown
from workflow_scripts.reporting.numbers import between, number, p_equation, score_text
from workflow_scripts.reporting.records import record_of, split_labels
from workflow_scripts.settings.extraction import ExtractionTable, Names

_NAMED_BY = {
    "make_table": "experiment",
    "tabulate_times": "experiment",
    "tabulate_extraction": "table",
    "describe_datasets": "statistics",
}
"""Rules that make tables, and the wildcard that is a table's name."""
_NO_TESTS = 0.05  # level of significance for tables without tests


class View(NamedTuple):
    """One table, whichever rule made it."""

    name: str
    title: str
    source: str
    """Paper and table."""
    alpha: float
    """Level of its tests."""
    settings: str
    """Configuration file that defines it."""
    rows: Sequence[Row]
    """Its cells (``columns.tables.TABLE``)."""
    headings: Sequence[str]
    """Its columns in order."""
    shown: Mapping[str, str]
    """Rows and columns that readers see under another name."""
    trained: Mapping[str, str] = MappingProxyType({})
    """How long its runs were trained; empty where all were trained equally long."""


def view_of(path: Path, times: Path | None = None) -> View:
    """A table as its file and its record say.

    Args:
        path: Of the table.
        times: Of its measured columns, if it has some.

    Raises:
        DataError: if a file is no table.
    """
    record = record_of(path)
    if record.rule not in _NAMED_BY:
        raise DataError(f"{path}: made by {record.rule}. Give files of results/<study>/tables.")
    rows = [row for part in (path, times) if part for row in read_table(part, TABLE).to_pylist()]
    settings, name = record.settings, record.wildcards[_NAMED_BY[record.rule]]
    block = settings["experiment"] if "experiment" in settings else settings["table"]
    ordered = [column["heading"] for column in settings.get("experiment", {}).get("columns", ())]
    held = dict.fromkeys(row["heading"] for row in rows)
    renamed: Mapping[str, str] = {}
    if record.rule == "tabulate_extraction":
        names = Names.parse(settings["names"], f"{path}: names")
        renamed = shown(ExtractionTable.parse(block, f"{path}: table"), names)
    return View(
        name=name,
        title=block["title"],
        source=block["source"],
        alpha=settings.get("significance", {}).get("alpha", _NO_TESTS),
        settings=f"config/experiments/{name}.yaml" if ordered else "config/extraction.yaml",
        rows=rows,
        headings=[heading for heading in ordered if heading in held] or list(held),
        shown=renamed,
        trained=settings.get("trained", {}),
    )


class Cell(NamedTuple):
    """One cell: texts ready to print, empty where there is nothing to show."""

    score: str
    difference: str
    p: str
    detectable: str
    published: str
    significant: bool
    notes: Sequence[int]


class Head(NamedTuple):
    """One column's heading, a description, and notes that apply to all of its cells."""

    text: str
    measure: str
    notes: Sequence[int]
    marks: Sequence[str]
    """Of substitutions that reach all cells of this column, and not all columns."""


class Line(NamedTuple):
    """One run: marks of its substitutions, what stands before its cells, its cells."""

    run: str
    marks: Sequence[str]
    facts: Mapping[str, str]
    """Its number of seeds, and how long it was trained where runs of the table differ in that, by their headings."""
    baseline: bool
    """Whether other runs are compared with it."""
    against: str | None
    """The run that it is compared with."""
    cells: Sequence[Cell]


class Sheet(NamedTuple):
    """A table as readers see it."""

    view: View
    baselines: Mapping[str, str]
    """Runs that others are compared with, in the order of the table, each with its letter."""
    heads: Sequence[Head]
    lines: Sequence[Line]
    substitutions: Mapping[str, str]
    """Each with the letter that marks it."""
    gaps: Sequence[str]
    notes: Sequence[str]
    shown: Mapping[str, str]
    """Runs and headings that readers see under another name."""

    def named(self, name: str) -> str:
        """What readers see in place of a run or heading."""
        return self.shown.get(name, name)

    @property
    def facts(self) -> Sequence[str]:
        """Headings of the columns between the runs and their cells."""
        return list(self.lines[0].facts)

    @property
    def level(self) -> str:
        """The level of significance, in the usual notation."""
        return f"{self.view.alpha:g}".replace("0.", ".", 1)

    @property
    def only_baseline(self) -> str | None:
        """The baseline of all rows, where they share one."""
        return next(iter(self.baselines)) if len(self.baselines) == 1 else None

    @property
    def any_difference(self) -> bool:
        """Whether a cell shows a difference to its row's baseline."""
        return any(cell.difference for line in self.lines for cell in line.cells)

    @property
    def any_significant(self) -> bool:
        """Whether a cell has a star, which then has to be explained."""
        return any(cell.significant for line in self.lines for cell in line.cells)


def lay_out(view: View, names: Mapping[str, str] = MappingProxyType({})) -> Sheet:
    """Format a table as text; ``names`` adds names of runs to the table's own.

    A substitution is marked by a letter on each run that it affects, a note by a number on each of its cells, or on the
    heading if it applies to all cells of a column.
    """
    by_cell = {(row["run"], row["heading"]): row for row in view.rows}
    runs = list(dict.fromkeys(row["run"] for row in view.rows))
    columns = {heading: [by_cell[run, heading] for run in runs] for heading in view.headings}
    lines = {run: [by_cell[run, heading] for heading in view.headings] for run in runs}
    against = {row["run"]: row["baseline"] for row in view.rows}
    baselines = _lettered([run for run in runs if run in against.values()], ascii_uppercase)
    labels = split_labels(label for row in view.rows for label in row["labels"])
    letters = _lettered(labels.substitutions, ascii_lowercase)
    # A substitution behind all cells of a column is marked at its heading, unless it is behind all columns.
    within = {
        heading: set.intersection(*({*row["labels"]} for row in rows)) for heading, rows in columns.items()
    }
    whole = {heading: reached - set.intersection(*within.values()) for heading, reached in within.items()}
    # So is a note that all cells of a column share.
    shared = {
        heading: rows[0]["note"]
        for heading, rows in columns.items()
        if len({row["note"] for row in rows}) == 1
    }
    notes = [*filter(None, chain(shared.values(), (row["note"] for row in view.rows)))]
    numbers = {note: place for place, note in enumerate(dict.fromkeys(notes), start=1)}

    def marks(reached: Iterable[str]) -> list[str]:
        return [letters[label] for label in sorted(set(reached)) if label in letters]

    def cell(row: Row) -> Cell:
        own = row["note"] if shared.get(row["heading"]) is None else None
        return _cell(row, view.alpha, [numbers[own]] if own else [])

    return Sheet(
        view=view,
        baselines=baselines,
        heads=[
            Head(
                heading,
                _measure(rows),
                [numbers[note] for note in [shared.get(heading)] if note],
                marks(whole[heading]),
            )
            for heading, rows in columns.items()
        ],
        lines=[
            Line(
                run=run,
                marks=marks(label for row in rows for label in {*row["labels"]} - whole[row["heading"]]),
                facts={"seeds": between([row["seeds"] for row in rows if row["seeds"]]) or "0"}
                | ({"trained": view.trained.get(run, "")} if view.trained else {}),
                baseline=run in baselines,
                against=against[run],
                cells=[cell(row) for row in rows],
            )
            for run, rows in lines.items()
        ],
        substitutions=letters,
        gaps=labels.gaps,
        notes=list(numbers),
        shown=dict(names) | dict(view.shown),
    )


def _lettered(names: Iterable[str], alphabet: str) -> dict[str, str]:
    """Each with its mark: a to z, then aa, ab, ..."""
    return dict(zip(names, chain(alphabet, map("".join, product(alphabet, repeat=2))), strict=False))


def _measure(rows: Sequence[Row]) -> str:
    """What a column holds; its rows may be scores of several measures, or of several datasets."""
    scales = {row["scale"] for row in rows}
    scale = f", times {scales.pop():g}" if len(scales) == 1 and not scales & {1, None} else ""
    parts: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        parts.setdefault((row["metric"], row["aggregation"]), []).append(row)
    return "; ".join(
        f"{metric} of {', '.join(dict.fromkeys(row['task'] for row in part))}"
        f"{f' ({aggregation})' if aggregation else ''}{scale}, n {_sizes(part)}"
        for (metric, aggregation), part in parts.items()
    )


def _sizes(rows: Iterable[Row]) -> str:
    found = sorted({row["n"] for row in rows if row["mean"] is not None})
    return " or ".join(f"{n:,}" for n in found) or "0"


def _cell(row: Row, alpha: float, notes: Sequence[int]) -> Cell:
    digits, p = row["digits"], row["p_value"]
    return Cell(
        score=score_text(row["mean"], row["sd"], digits),
        difference="" if row["difference"] is None else number(row["difference"], digits, signed=True),
        p="" if p is None else p_equation(p),
        detectable="" if row["detectable"] is None else number(row["detectable"], digits),
        published="" if row["published"] is None else number(row["published"], digits),
        significant=p is not None and p < alpha,
        notes=notes,
    )
