"""Semantic textual similarity: correlation of cosines with human judgements.

A task of several subsets is summed up in three ways, which differ by points and are often confused
(SimCSE issue 4): ``all`` correlates the concatenated pairs, ``mean`` averages the subsets' correlations,
``wmean`` averages them weighted by their number of pairs.
"""

from collections.abc import Mapping
from itertools import chain

import numpy as np
import pyarrow as pa
from pydantic import Field

from workflow_scripts.config import Slice
from workflow_scripts.evaluation.correlation import cosine, pearson, spearman
from workflow_scripts.evaluation.embeddings import Embeddings, Encode, embed
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.schemas import SIMILARITIES


class Config(Slice):
    """A suite of scored pairs."""

    datasets: list[str] = Field(min_length=1, description="Datasets of the form pairs, one task each.")
    max_tokens: int = Field(
        gt=2, description="Longer sentences are cut to this many tokens, [CLS] and [SEP] included."
    )


def evaluate(datasets: Mapping[str, pa.Table], encode: Encode) -> tuple[list[Score], pa.Table]:
    """Score an encoder on every task from one forward pass over their unique sentences.

    Args:
        datasets: Task name to a table with the columns of ``schemas.PAIRS``.
        encode: Sentences to vectors.

    Returns:
        The scores, and the cosine of every pair beside its judgement (``schemas.SIMILARITIES``).
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
    """Spearman and Pearson of one task: each subset, and ``all``, ``wmean``, ``mean`` over them.

    A source that does not tell its subsets apart (null) gives ``all`` alone: the others would repeat it.
    """
    rows = pairs.filter(pa.compute.equal(pairs["task"], task))
    subset, gold, predicted = (rows[name].to_numpy() for name in ("subset", "gold", "cosine"))
    parts = {name: subset == name for name in dict.fromkeys(subset)}
    sizes = [int(part.sum()) for part in parts.values()]
    scores = []
    for metric, correlate in {"spearman": spearman, "pearson": pearson}.items():
        values = [correlate(gold[part], predicted[part]) for part in parts.values()]
        summaries = {"all": correlate(gold, predicted)}
        if None not in parts:
            summaries |= {"wmean": float(np.average(values, weights=sizes)), "mean": float(np.mean(values))}
        scores += [Score(task, name, metric, value, len(gold)) for name, value in summaries.items()]
        if len(parts) > 1:
            named = zip(parts, values, sizes, strict=True)
            scores += [Score(task, f"subset:{name}", metric, value, size) for name, value, size in named]
    return scores
