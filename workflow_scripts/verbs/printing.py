"""Answers of the verbs (``python -m workflow_scripts``), printed as tables and lines, or as JSON."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

_PIPE_WIDTH = 240  # paths stay on one line in a file or a pipe, where nothing folds them
_LARGE = 1000  # from here on, digits behind the point say nothing

Row = Mapping[str, Any]
Argument = tuple[tuple[str, ...], dict[str, Any]]
"""What a verb takes: names and options, as ``argparse.ArgumentParser.add_argument`` is told them."""


def argument(*names: str, **options: Any) -> Argument:
    """One of the ``ARGUMENTS`` of a verb, whose ``answer`` is given it by its name."""
    return names, options


class Rows(NamedTuple):
    """A table: rows with the same keys, which are its headings, in the order of the first row."""

    name: str
    rows: Sequence[Row]


@dataclass
class Answer:
    """Answer of a verb."""

    verdict: str = ""
    """The last line that is printed."""
    good: bool = True
    """True if there is nothing to report (exit code 0, else 1)."""
    parts: Sequence[Rows | RenderableType] = ()
    """Tables, and lines as text, in the order in which they are printed. Of tables, --json has the rows."""
    data: Mapping[str, Any] = field(default_factory=dict)
    """What --json has besides."""


def give(answer: Answer, *, as_json: bool) -> int:
    """Print an answer; returns the exit code."""
    if as_json:
        rows = {part.name: list(part.rows) for part in answer.parts if isinstance(part, Rows)}
        print_json({"green": answer.good, "verdict": answer.verdict, **rows, **answer.data})
        return 0 if answer.good else 1
    out = console()
    for part in answer.parts:
        if not isinstance(part, Rows):
            out.print(part, soft_wrap=isinstance(part, str | Text))
        elif part.rows:
            out.print(table_of(part), end="\n\n")
    if answer.verdict:
        out.print(answer.verdict, style="green" if answer.good else "red", soft_wrap=True)
    return 0 if answer.good else 1


def table_of(part: Rows) -> Table:
    """Rows as a table that folds what is too long; columns of numbers are right-aligned."""
    shown = Table(title=part.name, title_justify="left", show_edge=False, pad_edge=False)
    for name in part.rows[0]:
        numeric = all(isinstance(row[name], int | float | None) for row in part.rows)
        shown.add_column(name, overflow="fold", justify="right" if numeric else "left")
    for row in part.rows:
        shown.add_row(*(Text(text_of(value)) for value in row.values()))
    return shown


def text_of(value: object) -> str:
    """A value as a person reads it: numbers with the digits that say something, nothing for None."""
    match value:
        case None:
            return ""
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            return f"{value:,.0f}" if abs(value) >= _LARGE else f"{value:.4g}"
        case list() | tuple() | set():
            return ", ".join(map(text_of, value))
        case _:
            return str(value)


def markdown_of(rows: Sequence[Row]) -> str:
    """Rows as a table of Markdown."""
    lines = [list(rows[0]), ["---"] * len(rows[0])] if rows else []
    lines += [[text_of(value) for value in row.values()] for row in rows]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def rows_of(tuples: Iterable[Any]) -> list[dict[str, Any]]:
    """Named tuples as rows."""
    return [one._asdict() for one in tuples]


def without_empty(rows: Sequence[Row]) -> list[Row]:
    """Rows without the columns that are empty in all of them."""
    names = [name for name in (rows[0] if rows else ()) if any(row[name] is not None for row in rows)]
    return [{name: row[name] for name in names} for row in rows]


def console() -> Console:
    """Standard output; wide where it is no terminal and COLUMNS does not say how wide it is."""
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    return Console(width=None if known else _PIPE_WIDTH, highlight=False, markup=False, emoji=False)


def print_json(data: object) -> None:
    """Write ``data`` to standard output as JSON; ends the process where nobody reads any more, as behind head."""
    try:
        sys.stdout.write(json.dumps(data, indent=1, ensure_ascii=False) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python flushes once more at its end
        sys.exit(1)
