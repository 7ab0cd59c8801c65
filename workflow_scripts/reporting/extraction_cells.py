"""Cells of the extraction study's tables and figures: a model, a variant and a measure select the scores of a cell.

A model is a representation, mixing weight and layers; a variant a weighting and post-processing; a measure says which
scores of which tasks are averaged. The mean over tasks is taken for each draw; a model without draws has one.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from statistics import fmean
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from workflow_scripts.reporting.cells import Row, Values
from workflow_scripts.settings.extraction.cells import Measure, Model, Names, Variants

NOT_ASKED = "not in the study's grid"
"""The note of a cell that no block of the study asks for, and that is no gap."""


class Variant(NamedTuple):
    """A weighting of token vectors and a post-processing of sentence vectors."""

    weighting: str
    postprocess: str

    def text(self, names: Names) -> str:
        """As the paper prints it: ``idf^T + quantile-u``."""
        parts = [names.weightings[self.weighting], names.postprocessings[self.postprocess]]
        return " + ".join(filter(None, parts))


def variants_of(blocks: Iterable[Variants]) -> list[Variant]:
    """Every variant of some blocks in order, each once."""
    found = [
        Variant(weighting, postprocess)
        for block in blocks
        for weighting in block.weightings
        for postprocess in block.postprocessings
    ]
    return list(dict.fromkeys(found))


class Scores:
    """Scores read from tables with the columns of ``columns.extraction.EXTRACTION``, indexed once."""

    def __init__(self, tables: Iterable[pa.Table], measures: Iterable[Measure]) -> None:
        wanted = {(measure.aggregation, metric) for measure in measures for metric in measure.metrics}
        aggregations, metrics = ({pair[place] for pair in wanted} for place in (0, 1))
        self._rows: dict[tuple[Any, ...], dict[int, Row]] = defaultdict(dict)
        self._tasks: dict[str, dict[str, None]] = defaultdict(dict)
        self._gaps: dict[tuple[str, str, str], str] = {}
        self._layers: dict[str, dict[str, None]] = defaultdict(dict)
        for table in tables:
            kept = pc.or_(
                pc.and_(
                    pc.is_in(table["aggregation"], pa.array(sorted(aggregations), pa.string())),
                    pc.is_in(table["metric"], pa.array(sorted(metrics), pa.string())),
                ),
                pc.is_null(table["value"]),
            )
            for row in table.filter(kept).to_pylist():
                self._add(row)

    def _add(self, row: Row) -> None:
        self._tasks[row["kind"]][row["task"]] = None
        if row["value"] is None and not row["weighting"]:
            self._gaps[row["representation"], row["kind"], row["task"]] = row["note"]
            return
        self._layers[row["representation"]][row["layers"]] = None
        place = [
            row[key]
            for key in (
                "representation",
                "mixing_weight",
                "layers",
                "weighting",
                "postprocess",
                "kind",
                "task",
            )
        ]
        self._rows[*place, row["aggregation"], row["metric"]][row["draw"]] = row

    def layers(self, representation: str) -> list[str]:
        """Layers that a representation was scored with: single layers first, then combinations by their length."""
        return sorted(
            self._layers[representation],
            key=lambda name: (not name.isdigit(), name.count("+"), len(name), name),
        )

    def tasks(self, measure: Measure) -> list[str]:
        """Tasks that a measure averages over."""
        return measure.tasks or list(self._tasks[measure.kind])

    def cell(self, model: Model, variant: Variant, measure: Measure) -> Values:
        """The value of one cell, times the measure's scale; a gap in any of its tasks makes the cell a gap."""
        found = {task: self._of_task(model, variant, measure, task) for task in self.tasks(measure)}
        lacking = [task for task, rows in found.items() if not rows]
        if lacking or not found:
            return Values({}, 0, self._reasons(model, measure, lacking))
        draws = set.intersection(*(set(rows) for rows in found.values()))
        if not draws:
            return Values({}, 0, ("no draw has all of its tasks",))
        values = {
            draw: {task: rows[draw]["value"] * measure.scale for task, rows in found.items()}
            for draw in sorted(draws)
        }
        first, *others = found.values()
        note = first[min(first)]["note"]
        return Values(
            by_seed={draw: fmean(of_task.values()) for draw, of_task in values.items()},
            by_task={task: fmean(of[task] for of in values.values()) for task in found},
            n=sum(rows[min(rows)]["n"] for rows in found.values()),
            notes=(note,) if note and not others else (),
        )

    def _of_task(self, model: Model, variant: Variant, measure: Measure, task: str) -> Mapping[int, Row]:
        place = (
            model.representation,
            model.mixing_weight,
            model.layers,
            *variant,
            measure.kind,
            task,
            measure.aggregation,
        )
        for metric in measure.metrics:
            rows = self._rows.get((*place, metric), {})
            present = {draw: row for draw, row in rows.items() if row["value"] is not None}
            if present:
                return present
        return {}

    def _reasons(self, model: Model, measure: Measure, lacking: Sequence[str]) -> tuple[str, ...]:
        gaps = {task: self._gaps.get((model.representation, measure.kind, task)) for task in lacking}
        known = [f"{task}: {gap}" for task, gap in gaps.items() if gap]
        return tuple(known) or (NOT_ASKED,)
