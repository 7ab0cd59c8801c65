"""Tables for readers: a frame of cells with their texts, and its views for terminal, Markdown, LaTeX and CSV.

A substitution is marked by a letter on each run that it affects, a note by a number on each of its cells, or on the
heading if it applies to all cells of a column.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain, product, zip_longest
from pathlib import Path

import pandas as pd

from workflow_scripts.columns import TABLE
from workflow_scripts.evaluation.significance import FEWEST
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.record import Label
from workflow_scripts.reporting.cells import Row, text_of
from workflow_scripts.reporting.extraction import shown
from workflow_scripts.reporting.records import Labels, record_of, split_labels
from workflow_scripts.settings.extraction import ExtractionTable, Names


@dataclass(frozen=True)
class Sheet:
    """One table of any rule, with names, notes and labels for readers."""

    name: str
    title: str
    source: str
    """Paper and table."""
    alpha: float
    """Level of significance of the table's tests; 0 without tests."""
    settings: str
    """Configuration file that defines the table."""
    rows: Sequence[Row]
    """Cells of the table (``columns.TABLE``)."""
    headings: Sequence[str]
    """Headings of the table in order."""
    shown: Mapping[str, str] = field(default_factory=dict)
    """Display names of runs and headings that differ from their identifiers."""
    trained: Mapping[str, str] = field(default_factory=dict)
    """Length of the training of each run; empty if all have the same length."""
    of_heading: Mapping[str, str] = field(default_factory=dict)
    """Headings of a joined table, each with the heading in its original table."""

    @cached_property
    def cells(self) -> pd.DataFrame:
        """Return all cells, run by run in the order of the headings, with their texts (``cells.text_of``).

        A joined table has empty cells, whose number of seeds is None, if one of its tables lacks a run or heading.
        """
        rows = [row | text_of(row, self.alpha) for row in self.rows]
        rows = [row | {"score": ""} if row["seeds"] is None else row for row in rows]
        frame = pd.DataFrame(rows, dtype=object)
        by_place = frame.set_index(["run", "heading"], drop=False)
        return by_place.loc[[*product(frame["run"].unique(), self.headings)]].reset_index(drop=True)

    @cached_property
    def columns(self) -> list[Row]:
        """Return one dict per column: ``name``, ``measure``, and the ``marks`` and ``notes`` of all its cells."""
        behind = {heading: set.intersection(*map(set, cells["labels"])) for heading, cells in self._columns}
        everywhere = set.intersection(*behind.values())
        return [
            {
                "name": heading,
                "measure": _measure(cells),
                "labels": behind[heading] - everywhere,
                "marks": self.labels.marks(behind[heading] - everywhere),
                "notes": [self.notes[note]] if (note := self._common[heading]) else [],
            }
            for heading, cells in self._columns
        ]

    @cached_property
    def run_rows(self) -> list[Row]:
        """Return one dict per run: its ``name``, ``marks`` of substitutions, ``facts``, ``baseline`` and ``cells``.

        A run is a baseline if other runs are compared with it. The facts are its number of seeds and, if runs of the
        table differ in it, the length of its training. The run is compared with the run ``against``.
        """
        of_columns = [head["labels"] for head in self.columns]
        lines = []
        for run, cells in self.cells.groupby("run", sort=False):
            labels = (set(mine) - theirs for mine, theirs in zip(cells["labels"], of_columns, strict=True))
            seeds = _counts(cells["seeds"]) or "0"
            lines.append(
                {
                    "name": run,
                    "marks": self.labels.marks(chain.from_iterable(labels)),
                    "facts": {"seeds": seeds}
                    | ({"trained": self.trained.get(run, "")} if self.trained else {}),
                    "baseline": run in self.baselines,
                    "against": cells["baseline"].iloc[-1],
                    "cells": [
                        row
                        | {"notes": [self.notes[note]] if note and not self._common[row["heading"]] else []}
                        for row in cells.to_dict("records")
                        for note in [row["note"]]
                    ],
                }
            )
        return lines

    @property
    def _columns(self) -> list[tuple[str, pd.DataFrame]]:
        return [*self.cells[self.cells["seeds"].notna()].groupby("heading", sort=False)]

    @cached_property
    def _common(self) -> dict[str, str | None]:
        """Return the note that all cells of a column share, by heading."""
        return {
            heading: cells["note"].iloc[0] if len({*cells["note"]}) == 1 else None
            for heading, cells in self._columns
        }

    @cached_property
    def notes(self) -> dict[str, int]:
        """Return the number of each note, in the order of the numbers."""
        notes = filter(None, chain(self._common.values(), (row["note"] for row in self.rows)))
        return {note: number for number, note in enumerate(dict.fromkeys(notes), start=1)}

    @cached_property
    def labels(self) -> Labels:
        """Return the labels of substitutions and of gaps."""
        return split_labels(Label.model_validate(label) for row in self.rows for label in row["labels"])

    @cached_property
    def substitutions(self) -> dict[str, str]:
        """Return the letter of each substitution."""
        return self.labels.letters

    @cached_property
    def baselines(self) -> list[str]:
        """Return the runs with which other runs are compared."""
        compared = {row["baseline"] for row in self.rows}
        return [run for run in self.cells["run"].unique() if run in compared]

    def named(self, name: str) -> str:
        """Return the display name of a run or heading."""
        return self.shown.get(name, name)

    @property
    def facts(self) -> list[str]:
        """Return the headings of the columns between the runs and their cells."""
        return ["seeds", "trained"] if self.trained else ["seeds"]

    @property
    def level(self) -> str:
        """Return the level of significance in the usual notation."""
        return f"{self.alpha:g}".replace("0.", ".", 1)

    @property
    def has_bases(self) -> bool:
        """Return whether rows are compared with different runs, which each row must then name."""
        return self.any_difference and self.only_baseline is None

    @property
    def only_baseline(self) -> str | None:
        """Return the baseline of all rows; None if they differ in it."""
        return self.baselines[0] if len(self.baselines) == 1 else None

    @property
    def any_difference(self) -> bool:
        """Return whether a cell shows a difference to its row's baseline."""
        return bool((self.cells["difference_text"] != "").any())

    @property
    def any_tested(self) -> bool:
        """Return whether a cell has the p-value of a test."""
        return bool((self.cells["p_text"] != "").any())

    @property
    def summary(self) -> str:
        """Return a sentence on how cells summarise the values of several seeds."""
        return "mean ± standard deviation over seeds" if self.any_spread else "one value a cell"

    @property
    def any_spread(self) -> bool:
        """Return whether a cell has the standard deviation of several values."""
        return bool(self.cells["sd"].notna().any())

    @property
    def untested(self) -> str:
        """Return the reason why no difference of the table is tested; empty if one is, or without differences."""
        if self.any_tested or not self.any_difference:
            return ""
        seeds = [count for count in self.cells["seeds"] if count]
        if max(seeds) < FEWEST:
            number = f"{_counts(seeds)} seed{'' if max(seeds) == 1 else 's'}"
            return f"no difference is tested: runs have {number}, a test needs {FEWEST}"
        return f"no difference is tested: a test needs {FEWEST} seeds of both runs, and values that differ"

    @property
    def any_significant(self) -> bool:
        """Return whether a cell has a star, which then has to be explained."""
        return bool((self.cells["star"] != "").any())


def sheet_of(path: Path, times: Path | None = None) -> Sheet:
    """Return a table, read from its file and its record.

    Args:
        path: File of the table.
        times: File of its measured columns, if it has some.
    """
    record = record_of(path)
    rows = [row for part in (path, times) if part for row in read_table(part, TABLE).to_pylist()]
    settings = record.settings
    block = settings["experiment"] if "experiment" in settings else settings["table"]
    ordered = [column["heading"] for column in settings.get("experiment", {}).get("columns", ())]
    held = dict.fromkeys(row["heading"] for row in rows)
    renamed: Mapping[str, str] = {
        row["run"]: row["name"] for row in settings.get("experiment", {}).get("rows", ())
    }
    if "names" in settings:  # a table of the extraction study
        names = Names.parse(settings["names"], f"{path}: names")
        renamed = shown(ExtractionTable.parse(block, f"{path}: table"), names)
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


def _counts(seeds: Iterable[int]) -> str:
    """Return the numbers of seeds of cells as text: 2, 1 or 5, or 1, 2 or 5; empty cells do not count."""
    *others, last = [f"{count:,}" for count in sorted({*filter(None, seeds)})] or [""]
    return f"{', '.join(others)} or {last}" if others else last


def _measure(cells: pd.DataFrame) -> str:
    """Return the measure of a column, whose rows may differ in measure or dataset."""
    scales = {*cells["scale"]}
    scale = f", times {scales.pop():g}" if len(scales) == 1 and not scales & {1, None} else ""
    parts = []
    for (metric, aggregation), group in cells.groupby(["metric", "aggregation"], sort=False):
        sizes = sorted({*group["n"][group["mean"].notna()]})
        summed = f" ({aggregation})" if aggregation else ""
        counted = " or ".join(f"{n:,}" for n in sizes) or "0"
        parts.append(f"{metric} of {', '.join(group['task'].unique())}{summed}{scale}, n {counted}")
    return "; ".join(parts)


def _grid(sheet: Sheet, cell: Callable[[Row], str], text: Callable[[str], str] = str) -> list[list[str]]:
    """Return the texts of a table, its heading first; ``cell`` returns those of its cells, ``text`` escapes the others.

    If rows are compared with different runs, a column has their names.
    """

    def named(row: Row) -> str:
        return text(_signed(sheet.named(row["name"]), row))

    bases = sheet.has_bases
    head = ["run", *["base"] * bases, *sheet.facts, *map(named, sheet.columns)]
    rows = (
        [
            named(line),
            *[text(sheet.named(line["against"] or ""))] * bases,
            *map(text, line["facts"].values()),
            *map(cell, line["cells"]),
        ]
        for line in sheet.run_rows
    )
    return [head, *rows]


def _signed(text: str, row: Row) -> str:
    """Return a text with the signs of its footnotes."""
    marks = [f"({','.join(row['marks'])})"] if row.get("marks") else []
    return " ".join([text, *marks, *(f"[{note}]" for note in row.get("notes", ()))])


def footnotes(sheet: Sheet) -> Iterator[str]:
    """Yield the lines below a table: explanations of its signs, notes, and all labels."""
    to = sheet.named(sheet.only_baseline or "") or "the run in column base"
    difference = f", and the difference to {to}" if sheet.any_difference else ""
    yield f"{sheet.summary}{difference}"
    if sheet.untested:
        yield sheet.untested
    if sheet.any_significant:
        tested = "two-sided t-test over seeds, not corrected for the number of comparisons"
        yield f"* p < {sheet.level}, {tested}"
    yield from (f"[{number}] {note}" for note, number in sheet.notes.items())
    yield from (f"({letter}) {label}" for label, letter in sheet.substitutions.items())
    yield from (f"gap: {gap}" for gap in sheet.labels.gaps)


# Terminal


def in_terminal(sheet: Sheet, width: int, *, notes: bool = True) -> str:
    """Return a table with up to three lines per run; columns beyond ``width`` letters are printed below the others."""
    head, *rows = _grid(sheet, _in_lines)
    lines = [line for row in rows for line in zip_longest(*map(str.splitlines, row), fillvalue="")]
    cells, runs = [line[1:] for line in lines], [line[0] for line in lines]
    frame = pd.DataFrame(cells, index=runs, columns=head[1:]).rename_axis(columns="run")
    printed = frame.to_string(line_width=width)
    return "\n".join([sheet.title, sheet.source, "", printed, *(["", *footnotes(sheet)] if notes else [])])


def _in_lines(row: Row) -> str:
    """Return a cell, its difference and the paper's value; a line without a star ends with a space in its place."""
    difference = ", ".join(filter(None, (row["difference_text"], row["p_text"])))
    paper = row["paper"] and f"paper {row['paper']}"
    first = f"{_signed(row['score'], row)}{row['star'] or ' '}"
    return "\n".join([first, *(f"{line} " for line in (difference, paper) if line)])


# Markdown, LaTeX and CSV


def in_rows(
    sheet: Sheet,
    best: Collection[tuple[str, str]] = (),
    strong: Callable[[str], str] = "**{}**".format,
    text: Callable[[str], str] = str,
) -> list[list[str]]:
    """Return the texts of a table: its heading, then a row per run, each text in one line.

    Args:
        sheet: The table.
        best: Cells in bold, by run and heading.
        strong: Function that makes an escaped text bold.
        text: Function that escapes a text.
    """

    def cell(row: Row) -> str:
        score = text(row["score"])
        score = strong(score) if (row["run"], row["heading"]) in best else score
        difference = row["difference_text"] and f" ({row['difference_text']})"
        paper = row["paper"] and f"; paper {row['paper']}"
        rest = f"{_signed('', row)}{row['star']}{difference}{paper}"
        return score + text(rest)

    return _grid(sheet, cell, text)


# Brackets and stars are in braces: LaTeX would read them as options of the row above.
_IN_LATEX = str.maketrans(
    {sign: rf"\{sign}" for sign in "&%$#_{}"}
    | {
        sign: rf"\text{name}{{}}"
        for sign, name in (("~", "asciitilde"), ("^", "asciicircum"), ("\\", "backslash"))
    }
    | {sign: f"{{{sign}}}" for sign in "[]*"}
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


def latex(sheet: Sheet, command: str, best: Collection[tuple[str, str]] = (), *, notes: bool = True) -> str:
    """Return a table in the form of papers, with the rules of booktabs and explanations of its signs below it.

    Args:
        sheet: The table.
        command: The command that printed the table, for a comment.
        best: Cells in bold, by run and heading.
        notes: Whether to explain its signs.
    """
    rows = in_rows(sheet, best, r"\textbf{{{}}}".format, _in_latex)
    head, *body = (rf"{' & '.join(row)} \\" for row in rows)
    small = [r"\begin{minipage}{\linewidth}\footnotesize\medskip", r"\end{minipage}"]
    below = [small[0], *(rf"{_in_latex(line)}\par" for line in footnotes(sheet)), small[1]] if notes else []
    # Paragraphs of a small box, because a footnote of a floating table would be lost.
    return "\n".join(
        [
            f"% {' '.join(command.split())}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_in_latex(f'{sheet.title} ({sheet.source})')}}}",
            rf"\label{{tab:{sheet.name}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(rows[0]) - 1)}}}",
            r"\toprule",
            head,
            r"\midrule",
            *body,
            r"\bottomrule",
            r"\end{tabular}",
            *below,
            r"\end{table}",
        ]
    )


def _in_latex(text: str) -> str:
    """Return text that LaTeX prints unchanged, in one line; letters of any alphabet stay, as UTF-8.

    The two signs of a comparison such as >= become one. LaTeX would join two hyphens, as of an option, to a dash.
    """
    one_line = re.sub(r"\s+", " ", text).replace("<=", "≤").replace(">=", "≥")
    return re.sub("-(?=-)", "-{}", one_line.translate(_IN_LATEX))


_CSV_FIELDS = [
    "study", "experiment", "run", "heading", "task", "aggregation", "metric", "mean", "sd", "seeds", "n", "baseline",
    "difference", "p_value", "detectable", "published", "note", "labels",
]  # fmt: skip
_ROUNDED = ("mean", "sd", "difference", "detectable", "published")


def to_csv(sheets: Iterable[Sheet]) -> str:
    """Return tables one after another, rounded as printed; a gap is in the note of its row, not in labels."""
    rows = [_in_csv(sheet.name, row) for sheet in sheets for row in sheet.rows if row["seeds"] is not None]
    frame = pd.DataFrame(rows, columns=_CSV_FIELDS, dtype=object)
    text: str = frame.to_csv(index=False, lineterminator="\n")
    return text


def _in_csv(name: str, row: Row) -> Row:
    measured = {key: row[key] for key in _ROUNDED if row[key] is not None}
    rounded = {key: round(value, row["digits"]) + 0.0 for key, value in measured.items()}  # -0.0 becomes 0.0
    p = None if row["p_value"] is None else f"{row['p_value']:.2g}"
    labels = "; ".join(split_labels(map(Label.model_validate, row["labels"])).substitutions)
    origin = {"study": row.get("study"), "experiment": row.get("table", name)}
    return origin | row | rounded | {"labels": labels, "p_value": p}
