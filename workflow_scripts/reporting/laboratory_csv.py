"""Tables as CSV for the repository: rounded to the printed digits, with the same bytes every time."""

import csv
import io
from collections.abc import Iterable

from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.labels import split_labels
from workflow_scripts.reporting.views import View

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


def to_csv(views: Iterable[View]) -> str:
    """Write tables one after another; a gap appears in the note of its row, not in labels."""
    out = io.StringIO()
    writer = csv.DictWriter(out, FIELDS, lineterminator="\n")
    writer.writeheader()
    for view in views:
        writer.writerows(_shown(view.name, row) for row in view.rows)
    return out.getvalue()


def _shown(name: str, row: Row) -> Row:
    rounded = {key: _rounded(row[key], row["digits"]) for key in _ROUNDED}
    texts = {
        "experiment": name,
        "labels": "; ".join(split_labels(row["labels"]).substitutions),
        "p_value": None if row["p_value"] is None else f"{row['p_value']:.2g}",
    }
    return {field: harmless((row | rounded | texts)[field]) for field in FIELDS}


def _rounded(value: float | None, digits: int) -> float | None:
    return None if value is None else float(f"{value:.{digits}f}") + 0.0  # -0.0 becomes 0.0


def harmless(value: object) -> object:
    """Text with an apostrophe in front if a spreadsheet would otherwise evaluate it."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
