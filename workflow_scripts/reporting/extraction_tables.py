"""Tables of the extraction study: rows are variants and columns models, or rows are models and columns measures.

A paper's mean over tasks is comparable only where the study averages the same tasks. Where a study lacks some, its
number is compared with the mean over the tasks that it has, computed from the paper's tables of single tasks; the
paper's tables agree with each other to .06 (O-87).
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import NamedTuple

import pyarrow as pa

from workflow_scripts.columns.extraction import EXTRACTION
from workflow_scripts.columns.tables import TABLE
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.cells import cell
from workflow_scripts.reporting.extraction_cells import Scores, Variant, variants_of
from workflow_scripts.reporting.published import Printed, look_up
from workflow_scripts.reporting.records import record_of, wildcard
from workflow_scripts.settings.extraction.cells import Names
from workflow_scripts.settings.extraction.tables import ExtractionTable


class Material(NamedTuple):
    """Scores of the extraction study, and the substitutions that affect each representation."""

    scores: Scores
    labels: Mapping[str, set[str]]

    @classmethod
    def of(cls, files: Sequence[Path], names: Names) -> "Material":
        """What some files of scores hold of the measures that ``names`` defines."""
        labels: dict[str, set[str]] = {}
        for path in files:
            labels.setdefault(wildcard(path, "representation"), set()).update(record_of(path).labels)
        tables = (read_table(path, EXTRACTION) for path in files)
        return cls(Scores(tables, names.measures.values()), labels)


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


Numbers = Mapping[tuple[str, str, str], Printed]
"""Group, row and column to a paper's number."""


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
    material: Material,
    printed: Numbers = MappingProxyType({}),
    of_tasks: Mapping[str, Numbers] = MappingProxyType({}),
) -> pa.Table:
    """Build one table with the columns of ``columns.tables.TABLE``.

    Args:
        table: Which cells to show.
        names: Definitions and labels behind its rows and columns.
        material: All scores that it needs.
        printed: The paper's numbers for this table.
        of_tasks: The paper's numbers from each task's own table.
    """
    groups, scores = {place.group for place in places(table, names)}, material.scores
    rows = []
    for place in places(table, names):
        model, measure = names.models[place.model], names.measures[place.measure]
        values = scores.cell(model, place.variant, measure)
        number = _published(place, scores.tasks(measure), measure.paper_tasks, printed, of_tasks)
        shows = {
            "suite": measure.kind,
            "task": ", ".join(scores.tasks(measure)),
            "aggregation": measure.aggregation,
            "metric": " or ".join(measure.metrics),
            "scale": measure.scale,
            "digits": table.digits,
        }
        run = place.run(several=len(groups) > 1)
        rows.append(
            cell(run, place.column, values, shows, material.labels.get(model.representation, ()), number)
        )
    return pa.Table.from_pylist(rows, schema=TABLE)


def _published(
    place: Place, tasks: list[str], paper_tasks: int | None, printed: Numbers, of_tasks: Mapping[str, Numbers]
) -> Printed | None:
    at = (place.group, place.row, place.column)
    if paper_tasks in (None, len(tasks)):
        return look_up(printed, *at)
    parts = [part for task in tasks if (part := look_up(of_tasks.get(task, {}), *at))]
    if not parts or len(parts) < len(tasks):
        return None
    mean = fmean(part.value for part in parts if part.value is not None)
    return parts[0]._replace(value=mean, source=f"mean of {len(tasks)} tables of single tasks")
