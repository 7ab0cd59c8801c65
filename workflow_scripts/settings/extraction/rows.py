"""Rows and columns of the extraction study's tables by the names that the paper gives them.

A row is a variant, as in ``idf^T + quantile-u``, and a column a model, or a row is a model and a column a measure.
Where a table has several groups, a row begins with its group: ``STS: avg.``. ``reporting.extraction`` makes the
same names of the same settings; a test holds both against each other. A figure that sets two measures of the same cells
against each other is read as a table of both.
"""

from collections.abc import Mapping
from itertools import product
from typing import Any

_GROUPED = ": "


def tables_of(extraction: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Tables of the study, and its scatter plots as the tables that they are drawn from, by name."""
    drawn = {
        name: scattered(block)
        for name, block in extraction["figures"].items()
        if block["kind"] == "variant_scatter"
    }
    return {**extraction["tables"], **drawn}


def scattered(figure: Mapping[str, Any]) -> dict[str, Any]:
    """What a scatter plot shows, in the keys of a table."""
    shown = {key: figure[key] for key in ("title", "models", "variants")}
    return shown | {"source": "", "columns": "models", "measures": [figure["x"], figure["y"]], "digits": 2}


def definable_rows(extraction: Mapping[str, Any], table: str) -> tuple[set[str], set[str]]:
    """Rows and headings that a table of this form could show of what the study defines, shown or not."""
    weightings, posts = (
        [block["label"] for block in extraction[axis].values()] for axis in ("weightings", "postprocessings")
    )
    variants = {" + ".join(filter(None, pair)) for pair in product(weightings, posts)}
    if tables_of(extraction)[table]["columns"] == "models":
        rows, groups, headings = variants, set(extraction["measures"]), set(extraction["models"])
    else:
        rows, groups, headings = set(extraction["models"]), variants, set(extraction["measures"])
    return rows | {f"{group}{_GROUPED}{row}" for group, row in product(groups, rows)}, headings
