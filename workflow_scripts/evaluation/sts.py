"""Semantic textual similarity: correlation of cosines with human judgements.

A task with several subsets is summarised in three ways, which differ by points and are often confused (SimCSE issue
4): ``all`` is the correlation over the concatenated pairs, ``mean`` the average of the subsets' correlations, ``wmean``
their average weighted by the number of pairs.
"""

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Literal, Self

import numpy as np
import pyarrow as pa
from pydantic import Field
from transformers import PreTrainedTokenizerBase

from workflow_scripts.columns.scores import SIMILARITIES
from workflow_scripts.config import Settings
from workflow_scripts.evaluation.correlation import cosine, pearson, spearman
from workflow_scripts.evaluation.embeddings import Embeddings, Encode, embed
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.evaluation.senteval_text import as_fed

SENTEVAL = ("sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sick")
"""How the names of its sets begin."""
RELEASED = (
    "STS sentences as released, while the numbers beside them are of SentEval's, lower-cased and tokenised, "
    "which a cased tokeniser sees"
)


class Config(Settings):
    """A suite of scored pairs."""

    datasets: list[str] = Field(min_length=1, description="Datasets of the form pairs, one task each.")
    max_tokens: int = Field(
        gt=2, description="Longer sentences are truncated to this many tokens, including [CLS] and [SEP]."
    )
    text: Literal["release", "senteval"] = Field(
        default="release",
        description="Sentences as released, or tokenised and lower-cased as SentEval has them.",
    )

    def labels(self, tokenizer: PreTrainedTokenizerBase) -> Sequence[str]:
        """That a tokeniser sees other words of SentEval's sets than their published numbers are computed on."""
        cased = tokenizer.tokenize("Town") != tokenizer.tokenize("town")
        of_senteval = any(name.startswith(SENTEVAL) for name in self.datasets)
        return [RELEASED] if cased and of_senteval and self.text == "release" else []

    def of_task(self, task: str) -> Self:
        """What decides the scores of one task: all but the list of others."""
        return self.model_copy(update={"datasets": [task]})


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
    """Spearman and Pearson of one task: each subset, and ``all``, ``wmean``, ``mean`` over them.

    If the source does not distinguish subsets (null), there is only ``all``: the others would repeat it.
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
