"""Tables of the extraction study: rows are variants and columns models, or rows are models and columns measures.

A model is a representation, mixing weight and layers. A variant is a weighting and post-processing. A measure lists the
tasks and metrics to average. The mean over tasks is computed for each draw; a model without draws has one value.

A paper's mean over tasks is comparable only if the study averages the same tasks. If a study lacks some tasks, its
number is compared with the paper's mean over the tasks that the study has, computed from the paper's tables of single
tasks. The paper's tables agree with each other to .06 (O-87).
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from pathlib import Path
from statistics import fmean
from types import MappingProxyType
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.columns import EXTRACTION, TABLE
from workflow_scripts.data.printed import Printed, look_up
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.record import Label
from workflow_scripts.reporting.cells import CellValues, Row, cell
from workflow_scripts.reporting.records import record_of, wildcard
from workflow_scripts.settings.extraction import ExtractionTable, Measure, Model, Names, Variants

STATIC = "static"
"""Name of the input embeddings among the layers of an encoder: the paper's layer -1."""
NOT_ASKED = "not in the study's grid"
"""Note of a cell that is in no block of the study, unlike a gap."""

Numbers = Mapping[tuple[str, ...], Printed]
"""Numbers of a paper, by group, row and column."""


class Variant(NamedTuple):
    """Weighting of token vectors and post-processing of sentence vectors."""

    weighting: str
    postprocess: str

    def text(self, names: Names) -> str:
        """Return the variant in the paper's notation: ``idf^T + quantile-u``."""
        parts = [names.weightings[self.weighting], names.postprocessings[self.postprocess]]
        return " + ".join(filter(None, parts))


def variants_of(blocks: Iterable[Variants]) -> list[Variant]:
    """Return the distinct variants of some blocks, in order."""
    pairs = (pair for block in blocks for pair in product(block.weightings, block.postprocessings))
    return list(dict.fromkeys(Variant(*pair) for pair in pairs))


class Scores:
    """Scores read from tables with the columns of ``columns.EXTRACTION``, indexed once."""

    @classmethod
    def read(cls, files: Sequence[Path], names: Names) -> "Scores":
        """Return the scores in some files, of the measures that ``names`` defines."""
        scores = cls((read_table(path, EXTRACTION) for path in files), names.measures.values())
        for path in files:
            scores.labels[wildcard(path, "representation")].update(record_of(path).labels)
        return scores

    def __init__(self, tables: Iterable[pa.Table], measures: Iterable[Measure]) -> None:
        self.labels: dict[str, set[Label]] = defaultdict(set)
        """Labels of the substitutions that affect each representation."""
        wanted = list(measures)
        metrics = [metric for measure in wanted for metric in measure.metrics]
        kept = pc.field("aggregation").isin([measure.aggregation for measure in wanted])
        kept &= pc.field("metric").isin(metrics)
        self._rows: dict[tuple[Any, ...], dict[int, Row]] = defaultdict(dict)
        self._tasks: dict[str, dict[str, None]] = defaultdict(dict)
        self._layers: dict[str, dict[str, None]] = defaultdict(dict)
        self._gaps: dict[tuple[str, str, str], str] = {}
        for table in tables:
            for row in table.filter(kept | pc.field("value").is_null()).to_pylist():
                self._tasks[row["kind"]][row["task"]] = None
                if row["value"] is not None:
                    self._rows[*(row[name] for name in _PLACE)][row["draw"]] = row
                elif not row["weighting"]:
                    self._gaps[row["representation"], row["kind"], row["task"]] = row["note"]
                    continue
                self._layers[row["representation"]][row["layers"]] = None

    def layers(self, representation: str) -> list[str]:
        """Return the scored layers of a representation: layer -1, the others, then combinations by their length."""
        return sorted(
            self._layers[representation],
            key=lambda name: (name != STATIC, not name.isdigit(), name.count("+"), len(name), name),
        )

    def tasks(self, measure: Measure) -> list[str]:
        """Return the tasks over which a measure averages."""
        return measure.tasks or list(self._tasks[measure.kind])

    def cell(self, model: Model, variant: Variant, measure: Measure) -> CellValues:
        """Return the value of one cell, times the measure's scale; a gap in any of its tasks makes the cell a gap."""
        scored = {task: self._task_scores(model, variant, measure, task) for task in self.tasks(measure)}
        lacking = [task for task, rows in scored.items() if not rows]
        if lacking or not scored:
            gaps = {task: self._gaps.get((model.representation, measure.kind, task)) for task in lacking}
            return CellValues(
                {}, 0, tuple(f"{task}: {gap}" for task, gap in gaps.items() if gap) or (NOT_ASKED,)
            )
        draws = sorted(set.intersection(*(set(rows) for rows in scored.values())))
        if not draws:
            return CellValues({}, 0, ("no draw has all of its tasks",))
        values = {
            task: [rows[draw]["value"] * measure.scale for draw in draws] for task, rows in scored.items()
        }
        firsts = {task: rows[min(rows)] for task, rows in scored.items()}
        return CellValues(
            by_seed=dict(zip(draws, map(fmean, zip(*values.values(), strict=True)), strict=True)),
            by_task={task: fmean(of_draws) for task, of_draws in values.items()},
            n=sum(first["n"] for first in firsts.values()),
            notes=_notes({task: first["note"] for task, first in firsts.items()}),
        )

    def _task_scores(self, model: Model, variant: Variant, measure: Measure, task: str) -> Mapping[int, Row]:
        """Return the scores of one task by draw, of the first metric that the task has."""
        prefix = (model.representation, model.mixing_weight, model.layers, *variant)
        keys = ((*prefix, measure.kind, task, measure.aggregation, metric) for metric in measure.metrics)
        return next((self._rows[key] for key in keys if key in self._rows), {})


def _notes(by_task: Mapping[str, str | None]) -> tuple[str, ...]:
    """Return the note of a cell: that of its tasks, or the first of several with the number of tasks that have one."""
    noted = {task: note for task, note in by_task.items() if note}
    different = {*by_task.values()}
    if len(different) > 1 and noted:
        task, note = next(iter(noted.items()))
        return (f"{len(noted)} of {len(by_task)} tasks have notes, such as {task}: {note}",)
    return tuple(filter(None, different))


_PLACE = (
    "representation", "mixing_weight", "layers", "weighting", "postprocess", "kind", "task", "aggregation", "metric",
)  # fmt: skip
"""Columns that identify a score, without the draw."""


class CellPlace(NamedTuple):
    """One cell: row and column in the paper's words, and its model, variant and measure."""

    group: str
    row: str
    column: str
    model: str
    variant: Variant
    measure: str
    several: bool
    """Whether the table has more than one group."""

    @property
    def run(self) -> str:
        """Return the name of the row in a table, with its group if the table has several."""
        return f"{self.group}: {self.row}" if self.several else self.row


def positions(table: ExtractionTable, names: Names) -> list[CellPlace]:
    """Return the cells of a table in order."""
    variants = variants_of(table.variants)
    if table.columns == "models":
        several = len(set(table.measures)) > 1
        return [
            CellPlace(measure, variant.text(names), model, model, variant, measure, several)
            for measure, variant, model in product(table.measures, variants, table.models)
        ]
    several = len({variant.text(names) for variant in variants}) > 1
    return [
        CellPlace(variant.text(names), model, measure, model, variant, measure, several)
        for variant, model, measure in product(variants, table.models, table.measures)
    ]


def shown(table: ExtractionTable, names: Names) -> dict[str, str]:
    """Return the display names of rows and columns that differ from the paper's names."""
    words = {model: names.model(model) for model in table.models}
    if table.columns == "measures":
        named = {
            position.run: position._replace(row=words[position.model]).run
            for position in positions(table, names)
        }
    else:
        named = words
    return {name: word for name, word in named.items() if word != name}


def build(
    table: ExtractionTable,
    names: Names,
    scores: Scores,
    printed: Numbers = MappingProxyType({}),
    of_tasks: Mapping[str, Numbers] = MappingProxyType({}),
) -> pa.Table:
    """Return one table with the columns of ``columns.TABLE``.

    Args:
        table: The cells to show.
        names: Definitions and labels of its rows and columns.
        scores: The scores of its cells.
        printed: The paper's numbers for this table.
        of_tasks: The paper's numbers from each task's own table.
    """
    rows = []
    for position in positions(table, names):
        model, measure = names.models[position.model], names.measures[position.measure]
        tasks = scores.tasks(measure)
        shows = {
            "suite": measure.kind,
            "task": ", ".join(tasks),
            "aggregation": measure.aggregation,
            "metric": " or ".join(measure.metrics),
            "scale": measure.scale,
            "digits": table.digits,
        }
        values = scores.cell(model, position.variant, measure)
        labels = scores.labels[model.representation]
        number = _published(position, tasks, measure.paper_tasks, printed, of_tasks)
        rows.append(cell(position.run, position.column, values, shows, labels, number))
    return pa.Table.from_pylist(rows, schema=TABLE)


def _published(
    position: CellPlace,
    tasks: list[str],
    paper_tasks: int | None,
    printed: Numbers,
    of_tasks: Mapping[str, Numbers],
) -> Printed | None:
    at = (position.group, position.row, position.column)
    if paper_tasks in (None, len(tasks)):
        return look_up(printed, *at)
    parts = [part for task in tasks if (part := look_up(of_tasks.get(task, {}), *at))]
    if not parts or len(parts) < len(tasks):
        return None
    mean = fmean(part.value for part in parts if part.value is not None)
    return parts[0]._replace(value=mean, source=f"mean of {len(tasks)} tables of single tasks")
