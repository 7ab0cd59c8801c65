"""Semantic textual similarity: correlation of cosines with human judgements.

A task with several subsets is summarised in three ways, which differ by points and are often confused (SimCSE issue
4): ``all`` is the correlation over the concatenated pairs, ``mean`` the average of the subsets' correlations, ``wmean``
their average weighted by the number of pairs.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import geometry
from workflow_scripts.evaluation.base import Task
from workflow_scripts.evaluation.correlation import Vectors, cosine, pearson, ranks
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.evaluation.senteval_text import as_fed
from workflow_scripts.settings.suites.sts import Config as Config

SIDES = ("sentence1", "sentence2")


def load(task: str, table: pa.Table, config: Config) -> Task:
    """Both sides of scored pairs, or the sentences whose geometry is measured."""
    table = in_text(config.tasks[task], table, config.text)
    if task in config.measures:
        return geometry.load(task, table, config.measures[task])
    judged = Judged(task, table["subset"].to_numpy(), table["score"].to_numpy())

    def score(left_PD: Vectors, right_PD: Vectors) -> list[Score]:
        return judged.scores(cosine(left_PD, right_PD))

    def pairs(left_PD: Vectors, right_PD: Vectors) -> pa.Table:
        similarity = pa.array(cosine(left_PD, right_PD))
        columns = [pa.array([task] * len(table)), table["subset"], table["score"], similarity]
        return pa.table(columns, schema=SIMILARITIES)

    groups = [subset or "" for subset in table["subset"].to_pylist()]
    return Task([table[side].to_pylist() for side in SIDES], score, pairs, groups)


def in_text(dataset: str, table: pa.Table, text: str) -> pa.Table:
    """Pairs with their sentences as ``Config.text`` says; SentEval lower-cases all sets but SICK."""
    if text == "release" or SIDES[0] not in table.column_names:
        return table
    lower = not dataset.startswith("sick")
    for side in SIDES:
        sentences = [as_fed(sentence, lower=lower) for sentence in table[side].to_pylist()]
        place = table.schema.get_field_index(side)
        table = table.set_column(place, table.schema.field(side), pa.array(sentences))
    return table


class Judged:
    """The judgements of one task, whose ranks are computed once for any number of encoders.

    Args:
        task: Its name.
        subset_P: The subset of every pair. If the source does not distinguish subsets (None), there is only ``all``:
            ``wmean`` and ``mean`` would repeat it.
        gold_P: The judgement of every pair.

    Raises:
        DataError: if all judgements are equal.
    """

    def __init__(self, task: str, subset_P: NDArray[np.object_], gold_P: NDArray[np.float64]) -> None:
        if len(gold_P) and gold_P.min() == gold_P.max():
            found = f"all {len(gold_P)} judgements are {gold_P[0]:g}, and nothing correlates with them"
            raise DataError(f"{task}: {found}. Check the column of scores.")
        rows = {name: np.flatnonzero(subset_P == name) for name in dict.fromkeys(subset_P)}
        self._task = task
        self._told_apart = None not in rows
        self._parts = rows if len(rows) > 1 else {}
        self._gold_P = gold_P
        self._ranks_P = ranks(gold_P)
        self._ranks = {name: ranks(gold_P[rows]) for name, rows in self._parts.items()}

    def scores(self, cosine_P: NDArray[np.float64]) -> list[Score]:
        """Spearman and Pearson: ``all``, ``wmean`` and ``mean``, and each of several subsets."""
        by_rank = {
            name: pearson(self._ranks[name], ranks(cosine_P[rows])) for name, rows in self._parts.items()
        }
        by_value = {name: pearson(self._gold_P[rows], cosine_P[rows]) for name, rows in self._parts.items()}
        return [
            *self._summarised("spearman", pearson(self._ranks_P, ranks(cosine_P)), by_rank),
            *self._summarised("pearson", pearson(self._gold_P, cosine_P), by_value),
        ]

    def _summarised(self, metric: str, overall: float, parts: Mapping[str | None, float]) -> Iterator[Score]:
        pairs = len(self._gold_P)
        sizes = [len(rows) for rows in self._parts.values()]
        summaries = {"all": overall}
        if self._told_apart:
            values = list(parts.values()) or [overall]
            weighted = np.average(values, weights=sizes or [pairs])
            summaries |= {"wmean": float(weighted), "mean": float(np.mean(values))}
        for name, value in summaries.items():
            yield Score(self._task, name, metric, value, pairs)
        for (part, value), size in zip(parts.items(), sizes, strict=True):
            yield Score(self._task, f"subset:{part}", metric, value, size)
