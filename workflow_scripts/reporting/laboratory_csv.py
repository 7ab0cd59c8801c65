"""Tables as CSV for the repository: rounded to the printed digits, with the same bytes every time."""

import csv
import io
from collections.abc import Iterable, Iterator
from typing import Any

import pyarrow as pa

from workflow_scripts.reporting.labels import split_labels
from workflow_scripts.settings.experiment import Experiment

FIELDS = (
    "experiment",
    "run",
    "heading",
    "task",
    "aggregation",
    "metric",
    "mean",
    "sd",
    "seeds",
    "n",
    "baseline",
    "difference",
    "p_value",
    "detectable",
    "published",
    "note",
    "labels",
)
_ROUNDED = ("mean", "sd", "difference", "detectable", "published")
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def to_csv(tables: Iterable[tuple[str, pa.Table, Experiment]]) -> str:
    """Write tables (``columns.tables.TABLE``) one after another; a gap appears in the note of its row, not in labels.

    Args:
        tables: Names of experiments, with their tables and grids.
    """
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
    writer.writeheader()
    for name, table, experiment in tables:
        writer.writerows(_rows(name, table, experiment))
    return out.getvalue()


def _rows(name: str, table: pa.Table, experiment: Experiment) -> Iterator[dict[str, Any]]:
    digits = {column.heading: column.digits for column in experiment.columns}
    for row in table.to_pylist():
        rounded = {key: _rounded(row[key], digits[row["heading"]]) for key in _ROUNDED}
        texts = {
            "experiment": name,
            "labels": "; ".join(split_labels(row["labels"]).substitutions),
            "p_value": _p(row["p_value"]),
        }
        shown = row | rounded | texts
        yield {field: harmless(shown[field]) for field in FIELDS}


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else float(f"{value:.{digits}f}") + 0.0  # -0.0 becomes 0.0


def _p(value: float | None) -> str | None:
    return None if value is None else f"{value:.2g}"


def harmless(value: object) -> object:
    """Text with an apostrophe in front if a spreadsheet would otherwise evaluate it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
