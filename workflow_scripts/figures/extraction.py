"""What the figures of the extraction study share."""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import pyarrow as pa

from workflow_scripts.columns.extraction import EXTRACTION
from workflow_scripts.figures.base import Request
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.reporting.cells import Row
from workflow_scripts.reporting.extraction import Scores
from workflow_scripts.settings.extraction.cells import Names

POINTS = pa.schema(
    [
        ("panel", pa.string()),
        ("series", pa.string()),
        ("point", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("spread", pa.float64()),
        ("tasks", pa.int32()),
        ("note", pa.string()),
    ]
)
"""Points of one figure of the extraction study: what each panel and series shows at ``point``. ``spread`` is the
standard deviation over so many ``tasks``, null where y is no mean of tasks; ``note`` says why there is no y."""
HUNDRED = "Correlations and accuracies are times 100."
UNITS = f"Means over tasks; {HUNDRED[0].lower()}{HUNDRED[1:]}"


def lacking(rows: Sequence[Row], part: Callable[[Row], str]) -> list[str]:
    """A note that names the parts of a figure which have no scores, with the reasons; none where all have."""
    points = Counter(map(part, rows))
    gaps = Counter((part(row), row["note"]) for row in rows if row["note"])
    said = [
        f"{name if gone == points[name] else f'{gone} of {points[name]} of {name}'} ({note})"
        for (name, note), gone in gaps.items()
    ]
    return [f"Not drawn, for want of scores: {'; '.join(said)}."] if said else []


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
