"""What the figures of the extraction study share."""

from typing import Any

import pyarrow as pa
from pydantic import Field

from workflow_scripts.columns.extraction import EXTRACTION
from workflow_scripts.config import Settings
from workflow_scripts.figures.base import Request
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.extraction_cells import Names, Scores

POINTS = pa.schema(
    [
        ("panel", pa.string()),
        ("series", pa.string()),
        ("point", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("spread", pa.float64()),
        ("tasks", pa.int32()),
    ]
)
"""Points of one figure of the extraction study: what each panel and series shows at ``point``. ``spread`` is the
standard deviation over so many ``tasks``, null where y is no mean of tasks."""
UNITS = "Means over tasks; correlations and accuracies are times 100."


class Drawing(Settings):
    """What every figure of the study says of itself."""

    title: str
    below: str = Field(description="Table of the page below which the figure is placed.")


def names_and_scores(request: Request[Any]) -> tuple[Names, Scores]:
    """What a figure's block names, and the scores that it reads."""
    names = Names.parse(dict(request.names), "extraction")
    tables = (read_table(path, EXTRACTION) for path in request.inputs["scores"])
    return names, Scores(tables, names.measures.values())


def measured(request: Request[Any], names: Names, measure: str) -> str:
    """The label of an axis: a measure, and the data it was taken on where that is one set."""
    definition = names.measures[measure]
    scored = {path.stem for path in request.inputs["scores"] if path.parts[-3:-2] == (definition.kind,)}
    sets = {names.datasets.get(task, task) for task in definition.tasks or ()}
    sets = sets or {names.datasets.get(task, "") for task in scored}
    named = sets.pop() if len(sets) == 1 else ""
    return measure if named.lower().startswith(measure.lower()) or not named else f"{measure} on {named}"
