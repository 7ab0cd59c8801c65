"""Tables of the extraction study: rows are variants and columns models, or rows are models and columns measures.

A paper's mean over tasks is comparable only where the study averages the same tasks. Where a study lacks some, its
number is compared with the mean over the tasks that it has, computed from the paper's tables of single tasks; the
paper's tables agree with each other to .06 (O-87).
"""

from collections.abc import Iterable, Mapping
from itertools import product
from statistics import fmean
from typing import Any, NamedTuple

import pyarrow as pa

from workflow_scripts.columns.tables import TABLE
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.significance import summarise
from workflow_scripts.reporting.extraction_cells import Scores, Values, Variant, variants_of
from workflow_scripts.reporting.published import read_rows
from workflow_scripts.settings.extraction.cells import Names
from workflow_scripts.settings.extraction.tables import ExtractionTable

Row = dict[str, Any]

_PRINTED = ("group", "row", "column", "value", "source")


class Place(NamedTuple):
    """One cell: its group, row and column as the paper names them, and what it holds."""

    group: str
    row: str
    column: str
    model: str
    variant: Variant
    measure: str

    def run(self, *, several: bool) -> str:
        """What a table calls the row; the group is named where there are several."""
        return f"{self.group}: {self.row}" if several else self.row


Printed = Mapping[tuple[str, str, str], tuple[float, str]]
"""Group, row and column to a paper's number and its citation."""


def places(table: ExtractionTable, names: Names) -> list[Place]:
    """Every cell in order."""
    variants = variants_of(table.variants)
    if table.columns == "models":
        return [
            Place(measure, variant.text(names), model, model, variant, measure)
            for measure, variant, model in product(table.measures, variants, table.models)
        ]
    return [
        Place(variant.text(names), model, measure, model, variant, measure)
        for variant, model, measure in product(variants, table.models, table.measures)
    ]


def shown(table: ExtractionTable, names: Names) -> dict[str, str]:
    """Rows and columns that readers see under another name than the paper's."""
    several = len({place.group for place in places(table, names)}) > 1
    words = {model: names.model(model) for model in table.models}
    if table.columns == "models":
        return {model: word for model, word in words.items() if word != model}
    return {
        place.run(several=several): place._replace(row=words[place.model]).run(several=several)
        for place in places(table, names)
        if words[place.model] != place.model
    }


def build(
    table: ExtractionTable,
    names: Names,
    scores: Scores,
    printed: Printed,
    of_tasks: Mapping[str, Printed],
    labels: Mapping[str, Iterable[str]],
) -> pa.Table:
    """Build one table with the columns of ``columns.tables.TABLE``.

    Args:
        table: Which cells to show.
        names: Definitions and labels behind its rows and columns.
        scores: All scores that it needs.
        printed: The paper's numbers for this table.
        of_tasks: The paper's numbers from each task's own table.
        labels: Labels of the substitutions that affect each representation.
    """
    groups = {place.group for place in places(table, names)}
    rows = []
    for place in places(table, names):
        model, measure = names.models[place.model], names.measures[place.measure]
        values = scores.cell(model, place.variant, measure)
        number = _published(place, scores.tasks(measure), measure.paper_tasks, printed, of_tasks)
        rows.append(
            {
                "run": place.run(several=len(groups) > 1),
                "heading": place.column,
                "suite": measure.kind,
                "task": ", ".join(scores.tasks(measure)),
                "aggregation": measure.aggregation,
                "metric": " or ".join(measure.metrics),
                "labels": sorted(labels.get(model.representation, ())),
            }
            | _summary(values)
            | number
        )
    return pa.Table.from_pylist(rows, schema=TABLE)


def read_printed(content: bytes, place: str) -> dict[tuple[str, str, str], tuple[float, str]]:
    """Read the paper's numbers; where a file has a single group, its name is dropped and matches any.

    Raises:
        DataError: if a column is missing, or a cell has no value or two rows.
    """
    rows = read_rows(content, place, _PRINTED)
    single = len({row["group"] for row in rows}) == 1
    numbers: dict[tuple[str, str, str], tuple[float, str]] = {}
    for row in rows:
        cell = ("" if single else row["group"], row["row"], row["column"])
        if row["value"] is None or cell in numbers:
            what = "has no value" if row["value"] is None else "occurs twice"
            where = f"{place}: {row['group']}, {row['row']}, {row['column']}"
            raise DataError(f"{where}: {what}. Correct the row.")
        numbers[cell] = row["value"], row["source"]
    return numbers


def _published(
    place: Place, tasks: list[str], paper_tasks: int | None, printed: Printed, of_tasks: Mapping[str, Printed]
) -> Row:
    number = _look_up(printed, place)
    if paper_tasks is not None and len(tasks) != paper_tasks:
        parts = [_look_up(of_tasks.get(task, {}), place) for task in tasks]
        present = [part for part in parts if part]
        number = None
        if present and len(present) == len(parts):
            number = fmean(value for value, _ in present), f"mean of {len(tasks)} tables of single tasks"
    return {"published": number[0], "published_source": number[1]} if number else {}


def _look_up(printed: Printed, place: Place) -> tuple[float, str] | None:
    return printed.get((place.group, place.row, place.column)) or printed.get(("", place.row, place.column))


def _summary(values: Values) -> Row:
    shown: Row = {"n": values.n, "note": "; ".join(values.notes) or None}
    if not values.by_draw:
        return shown | {"mean": None, "sd": None, "seeds": 0}
    summary = summarise(list(values.by_draw.values()))
    return shown | {"mean": summary.mean, "sd": summary.sd, "seeds": summary.n}
