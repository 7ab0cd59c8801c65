"""Tables as readers see them: a frame of cells, each as text, and its views as terminal, Markdown, LaTeX and CSV.

A substitution is marked by a letter on each run that it affects, a note by a number on each of its cells, or on the
heading if it applies to all cells of a column.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any

import pandas as pd
import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from workflow_scripts.columns import SCORES, TABLE
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.cells import GAP, Row, between, text_of
from workflow_scripts.reporting.extraction import shown
from workflow_scripts.reporting.records import Labels, record_of, split_labels
from workflow_scripts.settings.extraction import ExtractionTable, Names

_ENDLESS = 100_000  # characters: what a table needs where nothing is folded


@dataclass(frozen=True)
class Sheet:
    """One table, whichever rule made it."""

    name: str
    title: str
    source: str
    """Paper and table."""
    alpha: float
    """Level of significance of its tests; 0 without tests."""
    settings: str
    """Configuration file that defines it."""
    rows: Sequence[Row]
    """Its cells (``columns.TABLE``)."""
    headings: Sequence[str]
    """Its columns in order."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Runs and headings that readers see under another name."""
    trained: Mapping[str, str] = field(default_factory=dict)
    """Length of the training of each run; empty if all were trained equally long."""

    @cached_property
    def cells(self) -> pd.DataFrame:
        """All cells, run by run in the order of the headings, with their texts (``cells.text_of``)."""
        frame = pd.DataFrame([row | text_of(row, self.alpha) for row in self.rows], dtype=object)
        by_place = frame.set_index(["run", "heading"], drop=False)
        return by_place.loc[[*product(frame["run"].unique(), self.headings)]].reset_index(drop=True)

    @cached_property
    def heads(self) -> list[Row]:
        """A row a column: its ``name`` and ``measure``, and ``marks`` and ``notes`` that are of all its cells."""
        behind = {heading: set.intersection(*map(set, own["labels"])) for heading, own in self._columns}
        everywhere = set.intersection(*behind.values())
        return [
            {
                "name": heading,
                "measure": _measure(own),
                "labels": behind[heading] - everywhere,
                "marks": self._marks(behind[heading] - everywhere),
                "notes": [self.notes[note]] if (note := self._common[heading]) else [],
            }
            for heading, own in self._columns
        ]

    @cached_property
    def lines(self) -> list[Row]:
        """A row a run: its ``name``, ``marks`` of its substitutions, ``facts``, ``baseline`` and ``cells``.

        It is a baseline if others are compared with it. The facts are its number of seeds, and how long it was trained
        where runs of the table differ in that. It is compared with the run ``against``.
        """
        of_columns = [head["labels"] for head in self.heads]
        lines = []
        for run, own in self.cells.groupby("run", sort=False):
            labels = (set(mine) - theirs for mine, theirs in zip(own["labels"], of_columns, strict=True))
            seeds = between([count for count in own["seeds"] if count]) or "0"
            lines.append(
                {
                    "name": run,
                    "marks": self._marks(chain.from_iterable(labels)),
                    "facts": {"seeds": seeds}
                    | ({"trained": self.trained.get(run, "")} if self.trained else {}),
                    "baseline": run in self.baselines,
                    "against": own["baseline"].iloc[-1],
                    "cells": [
                        row
                        | {"notes": [self.notes[note]] if note and not self._common[row["heading"]] else []}
                        for row in own.to_dict("records")
                        for note in [row["note"]]
                    ],
                }
            )
        return lines

    @property
    def _columns(self) -> list[tuple[str, pd.DataFrame]]:
        return [*self.cells.groupby("heading", sort=False)]

    @cached_property
    def _common(self) -> dict[str, str | None]:
        """The note that all cells of a column share, by heading."""
        return {
            heading: own["note"].iloc[0] if len({*own["note"]}) == 1 else None
            for heading, own in self._columns
        }

    @cached_property
    def notes(self) -> dict[str, int]:
        """Each with its number, in the order of the numbers."""
        notes = filter(None, chain(self._common.values(), (row["note"] for row in self.rows)))
        return {note: number for number, note in enumerate(dict.fromkeys(notes), start=1)}

    @cached_property
    def labels(self) -> Labels:
        """Substitutions, and data that are not there."""
        return split_labels(label for row in self.rows for label in row["labels"])

    @cached_property
    def substitutions(self) -> dict[str, str]:
        """Each with the letter that marks it."""
        return _lettered(self.labels.substitutions, ascii_lowercase)

    def _marks(self, labels: Iterable[str]) -> list[str]:
        return [self.substitutions[label] for label in sorted(set(labels)) if label in self.substitutions]

    @cached_property
    def baselines(self) -> dict[str, str]:
        """Runs that others are compared with, in the order of the table, each with its letter."""
        compared = {row["baseline"] for row in self.rows}
        return _lettered([run for run in self.cells["run"].unique() if run in compared], ascii_uppercase)

    def named(self, name: str) -> str:
        """Names for readers, in place of the identifiers of runs and headings."""
        return self.shown.get(name, name)

    @property
    def facts(self) -> list[str]:
        """Headings of the columns between the runs and their cells."""
        return ["seeds", *["trained"] * bool(self.trained)]

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
        return bool((self.cells["difference_text"] != "").any())

    @property
    def any_significant(self) -> bool:
        """Whether a cell has a star, which then has to be explained."""
        return bool((self.cells["star"] != "").any())

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Print the table in the terminal; if it is too wide, it is continued below, at least one column at a time."""
        yield Text.assemble((self.title, "bold"), f"\n{self.source}")
        unfolded, start = options.update(max_width=_ENDLESS), 0
        for end in range(1, len(self.heads) + 1):
            wider = Measurement.get(console, unfolded, _printed(self, start, end + 1)).maximum
            if end == len(self.heads) or wider > options.max_width:
                yield _printed(self, start, end)
                start = end
        yield from (Text(line, style="dim") for line in footnotes(self))


def sheet_of(path: Path, times: Path | None = None, called: Mapping[str, str] | None = None) -> Sheet:
    """A table as its file and its record say.

    Args:
        path: Of the table.
        times: Of its measured columns, if it has some.
        called: Names of runs that readers see.
    """
    record = record_of(path)
    rows = [row for part in (path, times) if part for row in read_table(part, TABLE).to_pylist()]
    settings = record.settings
    block = settings["experiment"] if "experiment" in settings else settings["table"]
    ordered = [column["heading"] for column in settings.get("experiment", {}).get("columns", ())]
    held = dict.fromkeys(row["heading"] for row in rows)
    renamed = dict(called or {})
    if record.rule == "tabulate_extraction":
        names = Names.parse(settings["names"], f"{path}: names")
        renamed |= shown(ExtractionTable.parse(block, f"{path}: table"), names)
    return Sheet(
        name=path.stem,
        title=block["title"],
        source=block["source"],
        alpha=settings.get("significance", {"alpha": 0.0})["alpha"],
        settings=f"config/experiments/{path.stem}.yaml" if ordered else "config/extraction.yaml",
        rows=rows,
        headings=[heading for heading in ordered if heading in held] or list(held),
        shown=renamed,
        trained=settings.get("trained", {}),
    )


def _lettered(names: Iterable[str], alphabet: str) -> dict[str, str]:
    """Each with its mark: a to z, then aa, ab, ..."""
    return dict(zip(names, chain(alphabet, map("".join, product(alphabet, repeat=2))), strict=False))


def _measure(cells: pd.DataFrame) -> str:
    """The measure of a column, whose rows may differ in measure or dataset."""
    scales = {*cells["scale"]}
    scale = f", times {scales.pop():g}" if len(scales) == 1 and not scales & {1, None} else ""
    parts = []
    for (metric, aggregation), own in cells.groupby(["metric", "aggregation"], sort=False):
        sizes = sorted({*own["n"][own["mean"].notna()]})
        summed = f" ({aggregation})" if aggregation else ""
        counted = " or ".join(f"{n:,}" for n in sizes) or "0"
        parts.append(f"{metric} of {', '.join(own['task'].unique())}{summed}{scale}, n {counted}")
    return "; ".join(parts)


def _grid(
    sheet: Sheet, named: Callable[[Row], str], cell: Callable[[Row], str], *, bases: bool
) -> list[list[str]]:
    """A table in one form, its heading first.

    Args:
        sheet: The table.
        named: A run or heading, with its marks.
        cell: One cell.
        bases: Whether a column says what each row is compared with.
    """
    head = ["run", *["base"] * bases, *sheet.facts, *map(named, sheet.heads)]
    before = (
        [named(line), *[_base_text(sheet, line)] * bases, *line["facts"].values()] for line in sheet.lines
    )
    return [head, *([*one, *map(cell, line["cells"])] for one, line in zip(before, sheet.lines, strict=True))]


def _has_bases(sheet: Sheet) -> bool:
    """Whether rows are compared with different runs, so that each must say with which."""
    return sheet.any_difference and sheet.only_baseline is None


def _base_text(sheet: Sheet, line: Row) -> str:
    """Letter of the run that a row is compared with; in brackets, its own, if it is only a baseline of others."""
    if line["against"]:
        return sheet.baselines[line["against"]]
    return f"({sheet.baselines[line['name']]})" if line["baseline"] else ""


def footnotes(sheet: Sheet) -> Iterator[str]:
    """The lines below a table: how to read its signs, notes, and all labels."""
    yield from (f"{sign} {text}".lstrip() for sign, text in _explained(sheet, "below it"))


def _explained(sheet: Sheet, place: str) -> Iterator[tuple[str, str]]:
    """Signs, empty where none is needed, and what they mean; differences stand at ``place``."""
    to = sheet.only_baseline or "the run that column base names"
    difference = f"; {place} the difference to {to}" if sheet.any_difference else ""
    yield "", f"mean ± standard deviation over seeds{difference}"
    if _has_bases(sheet):
        yield "", "base: " + ", ".join(f"{letter} is {run}" for run, letter in sheet.baselines.items())
    if sheet.any_significant:
        tested = "two-sided t-test over seeds, not corrected for the number of comparisons"
        yield "*", f"p < {sheet.level}, {tested}"
    yield from ((f"[{number}]", note) for note, number in sheet.notes.items())
    yield from ((f"({letter})", label) for label, letter in sheet.substitutions.items())
    yield from (("", f"gap: {gap}") for gap in sheet.labels.gaps)


# Terminal


def _printed(sheet: Sheet, start: int, end: int) -> Table:
    """All rows of some columns."""

    def named(one: Row) -> str:
        marks = f" ({','.join(one['marks'])})" if one["marks"] else ""
        return sheet.named(one["name"]) + marks + _numbers(one.get("notes", ()))

    def cell(row: Row) -> str:
        star = "" if row["score"] == GAP else row["star"] or " "
        difference = ", ".join(filter(None, (row["difference_text"], row["p_text"])))
        lines = (difference, f"paper {row['paper']}" if row["paper"] else "")
        return "\n".join(
            [f"{row['score']}{_numbers(row['notes'])}{star}", *(f"{one} " for one in lines if one)]
        )

    bases = _has_bases(sheet)
    (head, *rows), before = _grid(sheet, named, cell, bases=bases), 1 + bases + len(sheet.facts)
    shown = [*range(1, before), *range(before + start, min(before + end, len(head)))]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    for place in shown:
        table.add_column(Text(head[place]), justify="right", no_wrap=True)
    for row in rows:
        table.add_row(Text(row[0]), *(Text(row[place]) for place in shown))
    return table


def _numbers(notes: Sequence[int]) -> str:
    return "".join(f" [{note}]" for note in notes)


# Markdown, LaTeX and CSV


def markdown_rows(sheet: Sheet) -> list[Row]:
    """A table's cells as text, a row a run; a star marks what the footnotes explain."""

    def cell(row: Row) -> str:
        difference = row["difference_text"] and f" ({row['difference_text']})"
        return f"{row['score']}{row['star']}{difference}"

    head, *rows = _grid(sheet, lambda one: sheet.named(one["name"]), cell, bases=False)
    return [dict(zip(head, row, strict=True)) for row in rows]


_IN_LATEX = str.maketrans(
    {sign: rf"\{sign}" for sign in "&%$#_{}"}
    | {
        sign: rf"\text{name}{{}}"
        for sign, name in (("~", "asciitilde"), ("^", "asciicircum"), ("\\", "backslash"))
    }
    | {sign: f"{{{sign}}}" for sign in "[]*"}  # which would belong to the end of the row above
    | {sign: f"${sign}$" for sign in "<>|"}
    | {
        "\N{MINUS SIGN}": "$-$",
        "±": r"$\pm$",
        "\N{MULTIPLICATION SIGN}": r"$\times$",
        "≤": r"$\leq$",
        "≥": r"$\geq$",
        "→": r"$\to$",
    }
)


def latex(sheet: Sheet, command: str) -> str:
    """A table as papers print it, with the rules of booktabs and its signs explained below it.

    Args:
        sheet: The table.
        command: What printed it, for a comment.
    """

    def named(one: Row) -> str:
        text = _in_latex(sheet.named(one["name"])) + _raised(*one["marks"], *one.get("notes", ()))
        return rf"\textit{{{text}}}" if one.get("baseline") else text

    def cell(row: Row) -> str:
        difference = row["difference_text"] and f" ({_in_latex(row['difference_text'])})"
        return _in_latex(row["score"]) + _raised(row["star"] and "{*}", *row["notes"]) + difference

    bases = _has_bases(sheet)
    head, *body = (rf"{' & '.join(row)} \\" for row in _grid(sheet, named, cell, bases=bases))
    # Paragraphs of a small box, because a footnote of a floating table would be lost.
    return "\n".join(
        [
            f"% {' '.join(command.split())}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_in_latex(f'{sheet.title} ({sheet.source})')}}}",
            rf"\label{{tab:{sheet.name}}}",
            rf"\begin{{tabular}}{{l{'c' if bases else ''}{'r' * (len(sheet.facts) + len(sheet.heads))}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            r"\begin{minipage}{\linewidth}\footnotesize\medskip",
            *(
                f"{_raised(sign.strip('[]()').replace('*', '{*}'))}{_in_latex(text)}\\par"
                for sign, text in _explained(sheet, "in brackets")
            ),
            r"\end{minipage}",
            r"\end{table}",
        ]
    )


def _in_latex(text: str) -> str:
    """Text that LaTeX prints unchanged, in one line; letters of any alphabet stay, as UTF-8."""
    return " ".join(text.split()).translate(_IN_LATEX)


def _raised(*signs: object) -> str:
    shown = ",".join(map(str, filter(None, signs)))
    return rf"\textsuperscript{{{shown}}}" if shown else ""


_CSV_FIELDS = [
    "experiment", "run", "heading", "task", "aggregation", "metric", "mean", "sd", "seeds", "n", "baseline",
    "difference", "p_value", "detectable", "published", "note", "labels",
]  # fmt: skip
_ROUNDED = ("mean", "sd", "difference", "detectable", "published")
_FORMULA = re.compile(r"[=@\t\r\n]|[+-].*[(|!]")
"""Beginnings of text that a spreadsheet evaluates; without a call or a reference, a sign begins a name: -biases."""


def to_csv(sheets: Iterable[Sheet]) -> str:
    """Tables one after another, rounded to the printed digits; a gap is in the note of its row, not in labels."""
    return _csv(_CSV_FIELDS, (_in_csv(sheet.name, row) for sheet in sheets for row in sheet.rows))


def scores_csv(scores: pa.Table) -> str:
    """Scores, values as they are."""
    return _csv(SCORES.names, scores.to_pylist())


def _in_csv(name: str, row: Row) -> Row:
    measured = {key: row[key] for key in _ROUNDED if row[key] is not None}
    rounded = {key: round(value, row["digits"]) + 0.0 for key, value in measured.items()}  # -0.0 becomes 0.0
    p = None if row["p_value"] is None else f"{row['p_value']:.2g}"
    labels = "; ".join(split_labels(row["labels"]).substitutions)
    return row | rounded | {"experiment": name, "labels": labels, "p_value": p}


def _csv(fields: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    frame = pd.DataFrame([*rows], columns=fields, dtype=object)
    text: str = frame.map(_harmless).to_csv(index=False, lineterminator="\n")
    return text


def _harmless(value: object) -> object:
    """Text with an apostrophe in front if a spreadsheet would evaluate it as a formula."""
    return f"'{value}" if isinstance(value, str) and _FORMULA.match(value) else value
