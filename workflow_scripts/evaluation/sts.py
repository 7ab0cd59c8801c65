"""Semantic textual similarity: correlation of cosines with human judgements.

A task with several subsets is summarised in three ways, which differ by points and are often confused (SimCSE issue
4): ``all`` is the correlation over the concatenated pairs, ``mean`` the average of the subsets' correlations, ``wmean``
their average weighted by the number of pairs.
"""

from collections.abc import Iterator, Mapping
from itertools import chain

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.correlation import cosine, pearson, ranks
from workflow_scripts.evaluation.embeddings import Embeddings, Encode, embed
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.evaluation.senteval_text import as_fed


def in_text(task: str, table: pa.Table, text: str) -> pa.Table:
    """A task's pairs with their sentences as ``Config.text`` says; SentEval lower-cases all sets but SICK."""
    if text == "release":
        return table
    lower = not task.startswith("sick")
    for side in ("sentence1", "sentence2"):
        sentences = [as_fed(sentence, lower=lower) for sentence in table[side].to_pylist()]
        table = table.set_column(
            table.schema.get_field_index(side), table.schema.field(side), pa.array(sentences)
        )
    return table


def evaluate(datasets: Mapping[str, pa.Table], encode: Encode) -> tuple[list[Score], pa.Table]:
    """Score an encoder on every task from one forward pass over their unique sentences.

    Args:
        datasets: Task name to a table with the columns of ``columns.corpora.PAIRS``.
        encode: Sentences to vectors.

    Returns:
        The scores, and the cosine and judgement of every pair (``columns.scores.SIMILARITIES``).
    """
    columns = [table[side].to_pylist() for table in datasets.values() for side in ("sentence1", "sentence2")]
    embeddings = embed(encode, *columns)
    parts = [_similarities(task, table, embeddings) for task, table in datasets.items()]
    pairs = pa.concat_tables([SIMILARITIES.empty_table(), *parts])
    return list(chain.from_iterable(correlations(pairs, task) for task in datasets)), pairs


def _similarities(task: str, table: pa.Table, embeddings: Embeddings) -> pa.Table:
    left, right = (embeddings[table[side].to_pylist()] for side in ("sentence1", "sentence2"))
    columns = [pa.array([task] * len(table)), table["subset"], table["score"], pa.array(cosine(left, right))]
    return pa.table(columns, schema=SIMILARITIES)


def correlations(pairs: pa.Table, task: str) -> list[Score]:
    """What ``Judged`` scores of one task, whose pairs have the columns of ``columns.scores.SIMILARITIES``."""
    rows = pairs.filter(pa.compute.equal(pairs["task"], task))
    subset, gold, predicted = (rows[name].to_numpy() for name in ("subset", "gold", "cosine"))
    return Judged(task, subset, gold).scores(predicted)


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
