"""A table's cells as text, formatted once for the terminal, the report and the laboratory's CSV."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from string import ascii_lowercase, ascii_uppercase
from types import MappingProxyType
from typing import NamedTuple

from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.labels import split_labels
from workflow_scripts.reporting.views import View

GAP = "gap"
MINUS = "\N{MINUS SIGN}"


class Cell(NamedTuple):
    """One cell: texts ready to print, empty where there is nothing to show."""

    score: str
    difference: str
    p: str
    detectable: str
    published: str
    significant: bool
    notes: tuple[int, ...]


class Head(NamedTuple):
    """One column's heading, a description, and notes that apply to all of its cells."""

    text: str
    measure: str
    notes: tuple[int, ...]
    marks: tuple[str, ...]
    """Of substitutions that reach all cells of this column, and not all columns."""


class Line(NamedTuple):
    """One run: marks of its substitutions, its number of seeds, its cells."""

    run: str
    marks: tuple[str, ...]
    seeds: str
    baseline: bool
    """Whether other runs are compared with it."""
    against: str | None
    """The run that it is compared with."""
    cells: tuple[Cell, ...]


class Sheet(NamedTuple):
    """A table as readers see it."""

    title: str
    source: str
    baselines: Mapping[str, str]
    """Runs that others are compared with, in the order of the table, each with its letter."""
    alpha: float
    heads: tuple[Head, ...]
    lines: tuple[Line, ...]
    substitutions: tuple[tuple[str, str], ...]
    gaps: tuple[str, ...]
    notes: tuple[str, ...]
    shown: Mapping[str, str]
    """Runs and headings that readers see under another name."""

    def named(self, name: str) -> str:
        """What readers see in place of a run or heading."""
        return self.shown.get(name, name)

    def letter(self, label: str) -> str | None:
        """The letter that marks a substitution, where a run of the table has it."""
        return next((letter for letter, text in self.substitutions if text == label), None)

    @property
    def level(self) -> str:
        """The level of significance, in the usual notation."""
        return f"{self.alpha:g}".replace("0.", ".", 1)

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
    """Format a table as text; ``names`` are those of runs, beside the table's own.

    A substitution is marked by a letter on each run that it affects, a note by a number on each of its cells, or on the
    heading if it applies to all cells of a column.
    """
    rows, headings, alpha = view.rows, view.headings, view.alpha
    runs = list(dict.fromkeys(row["run"] for row in rows))
    by_cell = {(row["run"], row["heading"]): row for row in rows}
    of_rows, of_columns = _reached(runs, headings, by_cell)
    against = {row["run"]: row["baseline"] for row in rows}
    baselines = _lettered([run for run in runs if run in against.values()])
    labels = split_labels(label for row in rows for label in row["labels"])
    letters = dict(zip(labels.substitutions, _letters(ascii_lowercase), strict=False))
    shared = {heading: _shared_note([by_cell[run, heading] for run in runs]) for heading in headings}
    numbers = _numbered(shared, rows)
    return Sheet(
        title=view.title,
        source=view.source,
        baselines=baselines,
        alpha=alpha,
        heads=tuple(
            Head(
                heading,
                _measure([by_cell[run, heading] for run in runs]),
                _marks(shared[heading], numbers),
                tuple(letters[label] for label in of_columns[heading] if label in letters),
            )
            for heading in headings
        ),
        lines=tuple(
            Line(
                run=run,
                marks=tuple(letters[label] for label in of_rows[run] if label in letters),
                seeds=_range(
                    by_cell[run, heading]["seeds"] for heading in headings if by_cell[run, heading]["seeds"]
                ),
                baseline=run in baselines,
                against=against[run],
                cells=tuple(
                    _cell(by_cell[run, heading], alpha, numbers, shared[heading]) for heading in headings
                ),
            )
            for run in runs
        ),
        substitutions=tuple((letter, label) for label, letter in letters.items()),
        gaps=labels.gaps,
        notes=tuple(numbers),
        shown=dict(names) | dict(view.shown),
    )


def _reached(
    runs: Sequence[str], headings: Sequence[str], cells: Mapping[tuple[str, str], Row]
) -> tuple[dict[str, list[str]], dict[str, list[str]]]:
    """Labels of each run and of each column: of a column where they reach all of its cells and not all columns."""
    within = {
        heading: set.intersection(*({*cells[run, heading]["labels"]} for run in runs)) for heading in headings
    }
    everywhere = set.intersection(*within.values())
    whole = {heading: sorted(labels - everywhere) for heading, labels in within.items()}
    of_runs = {
        run: sorted(
            {
                label
                for heading in headings
                for label in cells[run, heading]["labels"]
                if label not in whole[heading]
            }
        )
        for run in runs
    }
    return of_runs, whole


def _lettered(baselines: Sequence[str]) -> dict[str, str]:
    return dict(zip(baselines, _letters(ascii_uppercase), strict=False))


def _letters(alphabet: str) -> Iterable[str]:
    """Marks: a to z, then aa, ab, ..."""
    yield from alphabet
    yield from ("".join(pair) for pair in product(alphabet, repeat=2))


def _shared_note(rows: Sequence[Row]) -> str | None:
    notes = {row["note"] for row in rows}
    return notes.pop() if len(notes) == 1 else None


def _numbered(shared: Mapping[str, str | None], rows: Iterable[Row]) -> dict[str, int]:
    notes = [note for note in shared.values() if note] + [row["note"] for row in rows if row["note"]]
    return {note: number for number, note in enumerate(dict.fromkeys(notes), start=1)}


def _marks(note: str | None, numbers: Mapping[str, int]) -> tuple[int, ...]:
    return (numbers[note],) if note else ()


def _measure(rows: Sequence[Row]) -> str:
    """What a column holds; its rows may be scores of several measures, or of several datasets."""
    scales = {row["scale"] for row in rows} - {1, None}
    scale = f", times {scales.pop():g}" if len({row["scale"] for row in rows}) == 1 and scales else ""
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


def _range(counts: Iterable[int]) -> str:
    found = sorted(set(counts)) or [0]
    return f"{found[0]}" if len(found) == 1 else f"{found[0]} to {found[-1]}"


def _cell(row: Row, alpha: float, numbers: Mapping[str, int], shared: str | None) -> Cell:
    digits = row["digits"]
    return Cell(
        score=score_text(row["mean"], row["sd"], digits),
        difference="" if row["difference"] is None else number(row["difference"], digits, signed=True),
        p="" if row["p_value"] is None else p_text(row["p_value"]),
        detectable="" if row["detectable"] is None else number(row["detectable"], digits),
        published="" if row["published"] is None else number(row["published"], digits),
        significant=row["p_value"] is not None and row["p_value"] < alpha,
        notes=() if row["note"] == shared else _marks(row["note"], numbers),
    )


def score_text(mean: float | None, sd: float | None, digits: int) -> str:
    """Mean and standard deviation; the word gap if there is no mean."""
    if mean is None:
        return GAP
    return number(mean, digits) if sd is None else f"{number(mean, digits)} ± {number(sd, digits)}"


def number(value: float, digits: int, *, signed: bool = False) -> str:
    """A number with a true minus sign; zero has no sign."""
    rounded = round(value, digits) + 0.0  # -0.0 becomes 0.0
    sign = MINUS if rounded < 0 else "+" if signed and rounded else ""
    return f"{sign}{abs(rounded):.{digits}f}"


def p_text(p: float) -> str:
    """A p-value in the usual notation, with = or <."""
    return "p < .001" if p < 0.001 else f"p = {p:.3f}".replace("0.", ".", 1)
