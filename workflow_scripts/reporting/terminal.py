"""Tables and scores in the terminal, as LaTeX, and as CSV with the same bytes every time."""

import csv
import io
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import Console, ConsoleOptions, JustifyMethod, RenderableType, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.layout import Cell, Line, Sheet, View
from workflow_scripts.reporting.numbers import GAP
from workflow_scripts.reporting.records import split_labels

_ENDLESS = 100_000  # characters: what a table needs where nothing is folded


class Printed(NamedTuple):
    """A table as rich prints it; if it is too wide, it is continued below, never truncated."""

    sheet: Sheet

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Its parts in the width that there is, with as many columns as fit, at least one."""
        sheet, start = self.sheet, 0
        yield Text.assemble((sheet.view.title, "bold"), f"\n{sheet.view.source}")
        unfolded = options.update(max_width=_ENDLESS)
        for end in range(1, len(sheet.heads) + 1):
            wider = Measurement.get(console, unfolded, _table(sheet, start, end + 1)).maximum
            if end == len(sheet.heads) or wider > options.max_width:
                yield _table(sheet, start, end)
                start = end
        yield from (Text(line, style="dim") for line in footnotes(sheet))


def _table(sheet: Sheet, start: int, end: int) -> Table:
    """All rows of some columns."""
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    table.add_column("run", overflow="fold")
    if _has_bases(sheet):
        table.add_column("base", no_wrap=True)
    heads = [_marked(sheet, head.text, head.marks, head.notes) for head in sheet.heads[start:end]]
    for text in (*sheet.facts, *heads):
        table.add_column(Text(text), justify="right", no_wrap=True)
    for line in sheet.lines:
        run = Text(_marked(sheet, line.run, line.marks), style="italic" if line.baseline else "")
        base = [_base_text(sheet, line)] if _has_bases(sheet) else []
        table.add_row(run, *base, *line.facts.values(), *map(_cell_text, line.cells[start:end]))
    return table


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
        yield (
            "*",
            f"p < {sheet.level}, two-sided t-test over seeds, not corrected for the number of comparisons",
        )
    yield from ((f"[{number}]", note) for number, note in enumerate(sheet.notes, start=1))
    yield from ((f"({letter})", f"substitution: {label}") for label, letter in sheet.substitutions.items())
    yield from (("", f"gap: {gap}") for gap in sheet.gaps)


def _has_bases(sheet: Sheet) -> bool:
    """Whether rows are compared with different runs, so that each must say with which."""
    return sheet.any_difference and sheet.only_baseline is None


def _base_text(sheet: Sheet, line: Line) -> str:
    """Letter of the run that a row is compared with; in brackets, its own, if it is only a baseline of others."""
    if line.against:
        return sheet.baselines[line.against]
    return f"({sheet.baselines[line.run]})" if line.baseline else ""


def _cell_text(cell: Cell) -> Text:
    star = "*" if cell.significant else " "
    lines = [f"{cell.score}{_numbers(cell.notes)}" + (star if cell.score != GAP else "")]
    if cell.difference:
        lines.append(f"{cell.difference}{f', {cell.p}' if cell.p else ''} ")
    if cell.published:
        lines.append(f"paper {cell.published} ")
    return Text("\n".join(lines))


def _marked(sheet: Sheet, name: str, marks: Sequence[str], notes: Sequence[int] = ()) -> str:
    """A run or heading as readers see it, with its substitutions and notes."""
    return sheet.named(name) + (f" ({','.join(marks)})" if marks else "") + _numbers(notes)


def _numbers(notes: Sequence[int]) -> str:
    return "".join(f" [{note}]" for note in notes)


def scores_shown(scores: pa.Table, labels: Iterable[str]) -> list[RenderableType]:
    """A row for each score, unscaled, with six significant digits, and the labels of their files.

    Columns of text are continued below where the terminal is narrow.
    """
    rows = scores.to_pylist()
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    columns = [name for name in SCORES.names if name != "note" or any(row["note"] for row in rows)]
    for name in columns:
        justify: JustifyMethod = "right" if name in ("seed", "value", "n") else "left"
        long = name in ("run", "task", "note")
        table.add_column(name, justify=justify, overflow="fold", no_wrap=not long)
    for row in rows:
        shown = row | {"value": _value_text(row["value"]), "n": f"{row['n']:,}", "note": row["note"] or ""}
        table.add_row(*(Text(str(shown[name])) for name in columns))
    return [table, *(Text(label, style="dim") for label in split_labels(labels).sentences())]


def _value_text(value: float | None) -> str:
    """Six digits; a count whole, such as one of parameters."""
    if value is None:
        return GAP
    return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1000 else f"{value:.6g}"


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
    bases = _has_bases(sheet)
    rows = [["run", *(["base"] if bases else []), *sheet.facts]]
    rows[0] += [_in_latex(sheet.named(head.text)) + _raised(*head.marks, *head.notes) for head in sheet.heads]
    for line in sheet.lines:
        run = _in_latex(sheet.named(line.run)) + _raised(*line.marks)
        base = [_base_text(sheet, line)] if bases else []
        rows.append([rf"\textit{{{run}}}" if line.baseline else run, *base, *line.facts.values()])
        rows[-1] += [
            _in_latex(cell.score)
            + _raised(*(["{*}"] if cell.significant else []), *cell.notes)
            + (f" ({_in_latex(cell.difference)})" if cell.difference else "")
            for cell in line.cells
        ]
    head, *body = (rf"{' & '.join(row)} \\" for row in rows)
    # Paragraphs of a small box, because a footnote of a floating table would be lost.
    return "\n".join(
        [
            f"% {' '.join(command.split())}",
            r"\begin{table}",
            r"\centering",
            rf"\caption{{{_in_latex(f'{sheet.view.title} ({sheet.view.source})')}}}",
            rf"\label{{tab:{sheet.view.name}}}",
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
    """Text that LaTeX prints as it is, in one line; letters of any alphabet stay, as UTF-8."""
    return " ".join(text.split()).translate(_IN_LATEX)


def _raised(*signs: object) -> str:
    shown = ",".join(map(str, filter(None, signs)))
    return rf"\textsuperscript{{{shown}}}" if shown else ""


_CSV_FIELDS = (
    "experiment", "run", "heading", "task", "aggregation", "metric", "mean", "sd", "seeds", "n", "baseline",
    "difference", "p_value", "detectable", "published", "note", "labels",
)  # fmt: skip
_ROUNDED = ("mean", "sd", "difference", "detectable", "published")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def to_csv(views: Iterable[View]) -> str:
    """Tables one after another, rounded to the printed digits; a gap is in the note of its row, not in labels."""
    return _csv(_CSV_FIELDS, (_in_csv(view.name, row) for view in views for row in view.rows))


def scores_csv(tables: Iterable[pa.Table]) -> str:
    """Scores one after another, values as they are."""
    return _csv(SCORES.names, (row for table in tables for row in table.to_pylist()))


def _in_csv(name: str, row: Row) -> Row:
    rounded = {key: _rounded(row[key], row["digits"]) for key in _ROUNDED}
    p = None if row["p_value"] is None else f"{row['p_value']:.2g}"
    labels = "; ".join(split_labels(row["labels"]).substitutions)
    return row | rounded | {"experiment": name, "labels": labels, "p_value": p}


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else float(f"{value:.{digits}f}") + 0.0  # -0.0 becomes 0.0


def _csv(fields: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(fields)
    writer.writerows([_harmless(row[field]) for field in fields] for row in rows)
    return out.getvalue()


def _harmless(value: object) -> object:
    """Text with an apostrophe in front if a spreadsheet would otherwise evaluate it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
