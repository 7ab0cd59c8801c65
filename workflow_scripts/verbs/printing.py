"""Answers of the verbs (``python -m workflow_scripts``), printed as tables and lines, or as JSON.

The form of ``--json`` is the same in all verbs but ``schema``: an array with a flat object per row. ``part`` says which
table of the answer the row belongs to; a verdict, if there is one, is the last object. All keys are in snake case, a
value is a number, a text, true, false, null, or a list of these.
"""

import json
import math
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 240
"""Letters of a line in a file or a pipe, enough for paths."""
_SECONDS = 5.0
"""Seconds between two states of an answer that is renewed."""
_LARGE = 1000  # larger numbers are printed without decimals

Row = Mapping[str, Any]
Argument = tuple[tuple[str, ...], bool, dict[str, Any]]
"""Names and options of ``argparse.ArgumentParser.add_argument``, and whether it excludes others of this kind."""


def argument(*names: str, exclusive: bool = False, **options: Any) -> Argument:
    """Return one of a verb's ``ARGUMENTS``, whose value is an argument of the verb's ``answer``."""
    return names, exclusive, options


class PrintedTable(NamedTuple):
    """Table of rows with the same keys, which are its headings, in the order of the first row."""

    name: str
    """Its title, and the ``part`` of its rows in --json."""
    rows: Sequence[Row]
    shown: Sequence[Row] | None = None
    """Rows to print, if they are not those of --json; empty for a table of --json only."""


@dataclass
class Answer:
    """Answer of a verb: a verdict, tables and lines."""

    verdict: str = ""
    """The last printed line."""
    good: bool = True
    """Whether the verb has no errors (exit code 0, else 1)."""
    parts: Sequence[PrintedTable | RenderableType] = ()
    """Tables, and lines as text, in the order in which they are printed. --json has the tables only."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Further entries of the verdict in --json."""
    document: Mapping[str, Any] | None = None
    """One JSON document that --json prints instead of rows."""
    renewed: "Callable[[], Answer] | None" = None
    """Function that returns a later answer, for a terminal that shows it until Ctrl-C."""


def records(answer: Answer) -> list[dict[str, Any]]:
    """Return the rows of an answer as --json has them, its verdict last."""
    tables = [part for part in answer.parts if isinstance(part, PrintedTable)]
    said = {"good": answer.good, "verdict": answer.verdict, **answer.facts}
    verdicts = [PrintedTable("verdict", [said])] if answer.verdict or answer.facts else []
    return [
        {"part": _plain_key(table.name)} | {_plain_key(key): _plain(value) for key, value in row.items()}
        for table in [*tables, *verdicts]
        for row in table.rows
    ]


def _plain_key(heading: str) -> str:
    """Return a heading as a key: "memory, GB" as memory_gb."""
    return re.sub(r"\W+", "_", heading.lower()).strip("_")


def _plain(value: Any) -> Any:
    """Return a value as a type of JSON; a number that is not finite becomes null."""
    if isinstance(value, list | tuple | set | frozenset):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return json.dumps(value, sort_keys=True, ensure_ascii=False, default=str)
    return value if isinstance(value, bool | int | float | str | None) else str(value)


def _as_json(answer: Answer) -> str:
    """Return the text of --json: a line per row."""
    if answer.document is not None:
        return json.dumps(answer.document, indent=1, sort_keys=True, ensure_ascii=False)
    lines = (json.dumps(row, ensure_ascii=False, allow_nan=False) for row in records(answer))
    return "[" + ",\n ".join(lines) + "]"


def print_answer(answer: Answer, *, as_json: bool) -> int:
    """Print an answer and return the exit code."""
    if as_json:
        print(_as_json(answer))  # noqa: T201
        return 0 if answer.good else 1
    known = sys.stdout.isatty() or "COLUMNS" in os.environ
    out = Console(width=None if known else PIPE_WIDTH, highlight=False, markup=False, emoji=False)
    if answer.renewed and out.is_terminal and not out.is_dumb_terminal:
        return _show_live(out, answer)
    for part in _printed(answer):
        is_table = isinstance(part, Table)
        out.print(part, soft_wrap=isinstance(part, str | Text), end="\n\n" if is_table else "\n")
    if answer.verdict:
        out.print(answer.verdict, style="green" if answer.good else "red", soft_wrap=True)
    return 0 if answer.good else 1


def _printed(answer: Answer) -> Iterator[RenderableType]:
    """Yield the parts of an answer as they are printed, without tables that have no rows to print."""
    for part in answer.parts:
        if not isinstance(part, PrintedTable):
            yield part
        elif rows := part.rows if part.shown is None else part.shown:
            yield _table(part.name, rows)


def _show_live(out: Console, answer: Answer) -> int:
    """Show an answer that is renewed until Ctrl-C, and return the exit code of the last one."""
    with suppress(KeyboardInterrupt), Live(console=out, auto_refresh=False) as live:
        while answer.renewed:
            live.update(Group(*_printed(answer), answer.verdict), refresh=True)
            time.sleep(_SECONDS)
            answer = answer.renewed()
    return 0 if answer.good else 1


def _table(title: str, rows: Sequence[Row]) -> Table:
    """Return rows as a table that folds long texts; columns of numbers are right-aligned."""
    table = Table(title=title, title_justify="left", show_edge=False, pad_edge=False)
    for name in rows[0]:
        numeric = all(isinstance(row[name], int | float | None) for row in rows)
        table.add_column(name, overflow="fold", justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(Text(_text(value)) for value in row.values()))
    return table


def _text(value: object) -> str:
    """Return a value for people: numbers with four significant digits, an empty text for None."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and abs(value) < _LARGE:
        return f"{value:.4g}"
    if isinstance(value, int | float):
        return f"{value:,.0f}"
    if isinstance(value, list | tuple | set):
        return ", ".join(map(_text, value))
    return "" if value is None else str(value)


def markdown_table(rows: Sequence[Row]) -> str:
    """Return rows as a Markdown table, with their keys as headings."""
    return markdown([*rows[0]], *(map(_text, row.values()) for row in rows)) if rows else ""


def markdown(head: Sequence[str], *rows: Iterable[str]) -> str:
    """Return texts as a Markdown table, in which signs and breaks of a text end no cell."""
    lines = [
        [text.replace("|", r"\|").replace("\n", " ") for text in cells]
        for cells in (head, ["---"] * len(head), *rows)
    ]
    return "".join(f"| {' | '.join(cells)} |\n" for cells in lines)


def rows_of(tuples: Iterable[Any]) -> list[dict[str, Any]]:
    """Return named tuples as rows."""
    return [row._asdict() for row in tuples]
