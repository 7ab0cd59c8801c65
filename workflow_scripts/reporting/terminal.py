"""Print a table in the terminal."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from workflow_scripts.reporting.layout import GAP, Cell, Head, Line, Sheet

_PADDING = 2  # blanks that rich puts around a column


class _Strip(NamedTuple):
    """Headings that fit side by side, and the index of the first of them."""

    start: int
    heads: Sequence[Head]


class Printed(NamedTuple):
    """A table as rich prints it; if it is too wide, it is continued below, never truncated."""

    sheet: Sheet

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its parts in the width that there is."""
        yield from _parts(self.sheet, options.max_width)


def _parts(sheet: Sheet, width: int) -> Iterator[RenderableType]:
    yield Text.assemble((sheet.title, "bold"), f"\n{sheet.source}")
    for strip in _strips(sheet, width):
        yield _table(sheet, strip)
    yield from (Text(line, style="dim") for line in footnotes(sheet))


def footnotes(sheet: Sheet) -> Iterator[str]:
    """The lines below a table: how to read its signs, notes, and all labels."""
    to = sheet.only_baseline or "the run that column base names"
    yield "mean ± standard deviation over seeds" + (
        f"; below it the difference to {to}" if sheet.any_difference else ""
    )
    if _has_bases(sheet):
        yield "base: " + ", ".join(f"{letter} is {run}" for run, letter in sheet.baselines.items())
    if sheet.any_significant:
        yield f"* p < {sheet.level}, two-sided t-test over seeds, not corrected for the number of comparisons"
    yield from (f"[{number}] {note}" for number, note in enumerate(sheet.notes, start=1))
    for letter, label in sheet.substitutions:
        yield f"({letter}) substitution: {label}"
    yield from (f"gap: {gap}" for gap in sheet.gaps)


def _strips(sheet: Sheet, width: int) -> Iterator[_Strip]:
    room = width - _run_width(sheet) - len("seeds") - 3 * _PADDING
    if _has_bases(sheet):
        room -= len("base") + _PADDING
    start = end = used = 0
    for index, head in enumerate(sheet.heads):
        lines = [
            _head_text(sheet, head).plain,
            *(_cell_text(line.cells[index]).plain for line in sheet.lines),
        ]
        needed = max(len(part) for line in lines for part in line.split("\n")) + _PADDING
        if used + needed > room and end > start:
            yield _Strip(start, sheet.heads[start:end])
            start, used = end, 0
        end, used = index + 1, used + needed
    yield _Strip(start, sheet.heads[start:end])


def _run_width(sheet: Sheet) -> int:
    return max(len(_run_text(sheet, line).plain) for line in sheet.lines)


def _table(sheet: Sheet, strip: _Strip) -> Table:
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    if _has_bases(sheet):
        table.add_column("base", no_wrap=True)
    table.add_column("seeds", justify="right", no_wrap=True)
    for head in strip.heads:
        table.add_column(_head_text(sheet, head), justify="right", no_wrap=True)
    for line in sheet.lines:
        cells = line.cells[strip.start : strip.start + len(strip.heads)]
        base = [_base_text(sheet, line)] if _has_bases(sheet) else []
        table.add_row(_run_text(sheet, line), *base, line.seeds, *map(_cell_text, cells))
    return table


def _has_bases(sheet: Sheet) -> bool:
    """Whether rows are compared with different runs, so that each must say with which."""
    return sheet.any_difference and sheet.only_baseline is None


def _base_text(sheet: Sheet, line: Line) -> str:
    """Letter of the run that a row is compared with; in brackets, that of a baseline that is compared with none."""
    if line.against:
        return sheet.baselines[line.against]
    return f"({sheet.baselines[line.run]})" if line.baseline else ""


def _head_text(sheet: Sheet, head: Head) -> Text:
    marks = f" ({','.join(head.marks)})" if head.marks else ""
    return Text(sheet.named(head.text) + marks + _numbers(head.notes))


def _run_text(sheet: Sheet, line: Line) -> Text:
    marks = f" ({','.join(line.marks)})" if line.marks else ""
    return Text(sheet.named(line.run) + marks, style="italic" if line.baseline else "")


def _cell_text(cell: Cell) -> Text:
    star = "*" if cell.significant else " "
    lines = [f"{cell.score}{_numbers(cell.notes)}" + (star if cell.score != GAP else "")]
    if cell.difference:
        lines.append(f"{cell.difference}{f', {cell.p}' if cell.p else ''} ")
    if cell.published:
        lines.append(f"paper {cell.published} ")
    return Text("\n".join(lines))


def _numbers(notes: Sequence[int]) -> str:
    return "".join(f" [{note}]" for note in notes)
