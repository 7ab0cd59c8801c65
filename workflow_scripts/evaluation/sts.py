"""Semantic textual similarity: correlation of cosines with human judgements.

A task with several subsets is summarised in three ways, which differ by points and are often confused (SimCSE issue 4):
``all`` is the correlation over the concatenated pairs, ``mean`` the average of the subsets' correlations, ``wmean``
their average weighted by the number of pairs. A subset of one pair, or with only equal judgements, has no correlation:
``mean`` and ``wmean`` exclude it, with a note.
"""

from collections.abc import Iterator, Mapping

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from workflow_scripts.arrays import Vectors
from workflow_scripts.columns import SIDES, SIMILARITIES
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import geometry
from workflow_scripts.evaluation.base import Score, Task
from workflow_scripts.evaluation.correlation import cosine, pearson, ranks
from workflow_scripts.evaluation.senteval_text import as_fed
from workflow_scripts.settings.suites import Sts

Config = Sts


def load(task: str, table: pa.Table, config: Config) -> Task:
    """Return a task of scored pairs, or of sentences whose geometry is measured."""
    table = in_text(config.tasks[task], table, config.text_version)
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
    """Return pairs with sentences in the form ``Config.text_version``; SentEval lower-cases all sets except SICK."""
    if text == "release" or SIDES[0] not in table.column_names:
        return table
    lower = not dataset.startswith("sick")
    fed = {side: [as_fed(sentence, lower=lower) for sentence in table[side].to_pylist()] for side in SIDES}
    return pa.table({**{name: table[name] for name in table.column_names}, **fed}, schema=table.schema)


class Judged:
    """The judgements of one task and their ranks, which are computed once for any number of encoders.

    Args:
        task: Name of the task.
        subset_P: Subset of every pair. If the source has no subsets (None), there is only ``all``: ``wmean`` and
            ``mean`` would equal it.
        gold_P: Judgement of every pair.

    Raises:
        DataError: if all judgements are equal.
    """

    def __init__(self, task: str, subset_P: NDArray[np.object_], gold_P: NDArray[np.float64]) -> None:
        if len(gold_P) and gold_P.min() == gold_P.max():
            problem = f"all {len(gold_P)} judgements are {gold_P[0]:g}, so no correlation is defined"
            raise DataError(f"{task}: {problem}. Check the column of scores.")
        self._task = task
        subsets = dict.fromkeys(subset_P)
        self._has_subsets = None not in subsets
        self._rows = {"all": np.arange(len(gold_P))}
        rows = {f"subset:{name}": np.flatnonzero(subset_P == name) for name in subsets if len(subsets) > 1}
        self._rows |= {part: indices for part, indices in rows.items() if np.ptp(gold_P[indices]) > 0}
        without = [part.removeprefix("subset:") for part in rows if part not in self._rows]
        self._note = None
        if without:
            problem = f"without {len(without)} of {len(rows)} subsets, such as {without[0]}"
            self._note = f"{problem}: one pair or equal judgements, and no correlation"
        self._gold = {part: gold_P[rows] for part, rows in self._rows.items()}
        self._ranks = {part: ranks(gold) for part, gold in self._gold.items()}

    def scores(self, cosine_P: NDArray[np.float64]) -> list[Score]:
        """Return Spearman and Pearson: ``all``, ``wmean`` and ``mean``, and each of several subsets."""
        cosines = {part: cosine_P[rows] for part, rows in self._rows.items()}
        by_rank = {part: pearson(self._ranks[part], ranks(values)) for part, values in cosines.items()}
        by_value = {part: pearson(self._gold[part], values) for part, values in cosines.items()}
        return [*self._summarised("spearman", by_rank), *self._summarised("pearson", by_value)]

    def _summarised(self, metric: str, by_part: Mapping[str, float]) -> Iterator[Score]:
        sizes = {part: len(rows) for part, rows in self._rows.items()}
        subsets = [part for part in by_part if part != "all"]
        yield Score(self._task, "all", metric, by_part["all"], sizes["all"])
        averaged = subsets or ([] if self._note else ["all"])
        values, weights = [by_part[part] for part in averaged], [sizes[part] for part in averaged]
        for name, factors in (("wmean", weights), ("mean", None)) if self._has_subsets else ():
            value = float(np.average(values, weights=factors)) if averaged else None
            yield Score(self._task, name, metric, value, sum(weights), self._note)
        for part in subsets:
            yield Score(self._task, part, metric, by_part[part], sizes[part])
