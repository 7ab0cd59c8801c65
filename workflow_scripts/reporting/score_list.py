"""Files of scores as they are: a row for each number, in the terminal and as CSV."""

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import pyarrow as pa
from rich.box import SIMPLE_HEAD
from rich.console import JustifyMethod, RenderableType
from rich.table import Table
from rich.text import Text

from workflow_scripts.columns.scores import SCORES
from workflow_scripts.reporting.labels import split_labels
from workflow_scripts.reporting.laboratory_csv import harmless
from workflow_scripts.reporting.layout import GAP

_NUMBERS = ("seed", "value", "n")
_LONG = ("run", "task", "note")
"""Columns that are continued below where the terminal is narrow."""


def scores_shown(scores: pa.Table, labels: Iterable[str]) -> list[RenderableType]:
    """Scores, unscaled and unrounded but for their sixth digit, and the labels of their files."""
    rows = scores.to_pylist()
    columns = [name for name in SCORES.names if name != "note" or any(row["note"] for row in rows)]
    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        justify: JustifyMethod = "right" if name in _NUMBERS else "left"
        table.add_column(name, justify=justify, overflow="fold", no_wrap=name not in _LONG)
    for row in rows:
        table.add_row(*(Text(_shown(row, name)) for name in columns))
    return [table, *(Text(label, style="dim") for label in split_labels(labels).sentences())]


def scores_csv(tables: Sequence[pa.Table]) -> str:
    """Scores one after another, values as they are."""
    out = io.StringIO()
    writer = csv.DictWriter(out, SCORES.names, lineterminator="\n")
    writer.writeheader()
    for table in tables:
        writer.writerows({name: harmless(value) for name, value in row.items()} for row in table.to_pylist())
    return out.getvalue()


def _shown(row: Mapping[str, Any], name: str) -> str:
    value = row[name]
    if name == "value":
        return GAP if value is None else _number(value)
    return f"{value:,}" if name == "n" else str("" if value is None else value)


def _number(value: float) -> str:
    """Six digits; a count whole, such as one of parameters."""
    return f"{value:,.0f}" if value.is_integer() and abs(value) >= 1000 else f"{value:.6g}"
