"""Wikitext's sentences: their document frequencies, and the IsoScore of their vectors.

ASSUME: on Wikitext, idf^T is idf^W. Figures 1 and 2 of the paper give every weighting one IsoScore, so it cannot
depend on a task; post-processings marked ^W are fitted to the same vectors.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from workflow_scripts.columns.extraction import TOKEN_DOCUMENTS
from workflow_scripts.evaluation.base import Task, Vectors
from workflow_scripts.evaluation.geometry import isoscore
from workflow_scripts.evaluation.scores import Score
from workflow_scripts.extraction.weighting import Counts
from workflow_scripts.settings.extraction.wikitext import Wikitext


def sentences_of(table: pa.Table, wikitext: Wikitext) -> list[str]:
    """The corpus's distinct sentences, in order."""
    return list(dict.fromkeys(table["sentence"].slice(0, wikitext.max_sentences).to_pylist()))


def isotropy(name: str, sentences: Sequence[str]) -> Task:
    """The task of measuring the IsoScore of the sentences' vectors."""

    def score(vectors_UD: Vectors) -> list[Score]:
        return [Score(name, "", "isoscore", isoscore(vectors_UD), len(vectors_UD))]

    return Task([sentences], score)


def counts_table(counts: Counts, tokens: Sequence[str]) -> pa.Table:
    """Document frequencies as a table with the columns of ``columns.extraction.TOKEN_DOCUMENTS``."""
    ids = np.flatnonzero(counts.documents_V).tolist()
    columns = [
        ids,
        [tokens[number] for number in ids],
        counts.documents_V[ids],
        np.full(len(ids), counts.documents),
        np.full(len(ids), counts.tokens),
    ]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, TOKEN_DOCUMENTS, strict=True)]
    return pa.table(arrays, schema=TOKEN_DOCUMENTS)


def read_counts(table: pa.Table, vocabulary: int) -> Counts:
    """The frequencies that ``counts_table`` wrote."""
    documents_V = np.zeros(vocabulary, dtype=np.int64)
    documents_V[table["token_id"].to_numpy()] = table["documents"].to_numpy()
    first: Mapping[str, int] = table.slice(0, 1).to_pylist()[0]
    return Counts(first["all_documents"], first["all_tokens"], documents_V)
