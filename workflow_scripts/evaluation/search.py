"""Semantic search for duplicate questions, by cosine, with FAISS on the CPU.

A query is a distinct question1 of a pair marked as duplicate. The corpus to search consists of the distinct question2
of all pairs, duplicate or not. A text is relevant if a pair marks it and the query as duplicates, in either order. The
query's own text is removed from its hits and never relevant; queries without a relevant text are ignored. The first ten
hits other than the query itself are kept. Texts with the same vector, such as those that differ only in case for an
uncased tokeniser, tie: they rank in the order of the corpus, however FAISS sums, and also if their vectors differ by
rounding errors of the batches in which they were encoded (on a CPU, one such text in nine of MiniLM's does).

The setting is that of LayerAttPooler (Table 3), which refers to the search script of BERT-whitening-pytorch. The
script reads the first 100,000 pairs of Quora's file (0.25 GB of vectors 768 wide) and searches each question1 among all
question2 in an inverted file with 1,024 lists (``index``), probing 5 of them, and times one batch of all queries.
This module departs from the script in three points: questions are identified by text rather than id, pairs count in
either order, and a query is not among its own hits.

With ``readout``, the encoder has only this readout, as in LayerAttPooler, without layers trained on top. Without
``index``, a query is compared with all texts. FAISS uses one thread: no rank depends on the number of processors, and a
time is the work of one query.

Shape suffixes: Q queries, K hits, N corpus texts, D width.
"""

import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import faiss
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits

from workflow_scripts.arrays import Vectors
from workflow_scripts.columns import LABELLED
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation.base import Score, Task, not_scored, score_table
from workflow_scripts.models.devices import granted_device
from workflow_scripts.models.loading import load_encoder
from workflow_scripts.provenance.artefacts import read_table
from workflow_scripts.provenance.job import Job
from workflow_scripts.settings.suites import InvertedIndex, Search

Config = Search

HITS = 10
_ROUNDING = 1e-5
"""Distance of vectors of length 1 below which they are the same but for rounding errors, which are about 3e-6."""
_BLOCK_QUERIES = 1000
_SEED = 1234


class Questions(NamedTuple):
    """Queries, the corpus to search, and the relevant texts."""

    queries: list[str]
    corpus: list[str]
    relevant: list[frozenset[int]]
    """Positions of each query's duplicates in the corpus; never empty."""

    positions: list[int]
    """Position of each query itself in the corpus; -1 if it is not in the corpus."""


def load(task: str, table: pa.Table, config: Config) -> Task:
    """Return a task of queries and the corpus to search.

    Its scores are ``mrr@10``, ``recall@1`` and ``recall@10``, whose ``n`` counts queries, and the ``index_bytes`` of an
    inverted index, whose ``n`` counts texts.

    Raises:
        DataError: if a label is neither 0 nor 1, or if the index has more lists than texts or distinct vectors.
    """
    if other := sorted({*table["label"].to_pylist()} - {"0", "1"}):
        problem = f"label {other[0]!r}, but labels must be 1 for duplicates and 0 for other pairs"
        raise DataError(f"{task}: {problem}. Correct the labels of the dataset.")
    questions = questions_of(table, config.max_pairs)
    if not questions.queries:
        return not_scored(task, "no pair is marked as duplicates")
    _check_lists(task, f"{len(questions.corpus)} texts", len(questions.corpus), config.index)

    def score(queries_QD: Vectors, corpus_ND: Vectors) -> list[Score]:
        same = equal_vectors(corpus_ND)
        _check_lists(task, f"{len(same)} distinct vectors", len(same), config.index)
        distinct_VD = corpus_ND[[texts[0] for texts in same]]
        found_QK = nearest(queries_QD, index_of(distinct_VD, config.index), 2 * HITS)
        hits = without_own(found_QK, ties(found_QK, distinct_VD), same, questions.positions)
        values, n = quality(hits, questions.relevant), len(questions.queries)
        scores = [Score(task, "", metric, value, n) for metric, value in values.items()]
        if config.index:
            scores.append(
                Score(task, "", "index_bytes", index_bytes(corpus_ND, config.index), len(corpus_ND))
            )
        return scores

    return Task([questions.queries, questions.corpus], score)


def _check_lists(task: str, counted: str, count: int, inverted: InvertedIndex | None) -> None:
    if inverted and count < inverted.nlist:
        problem = f"{counted} for {inverted.nlist} lists of the index"
        raise DataError(f"{task}: {problem}. Set index.nlist to {count} or less.")


def questions_of(pairs: pa.Table, max_pairs: int | None) -> Questions:
    """Return the queries and the corpus of labelled pairs, in the order of first occurrence.

    Args:
        pairs: Columns of ``columns.LABELLED``; label ``1`` marks a duplicate.
        max_pairs: Number of pairs to read, from the first; None for all.
    """
    table = pairs.slice(0, max_pairs)
    first, second, labels = (table[name].to_pylist() for name in ("text1", "text2", "label"))
    duplicates: defaultdict[str, set[str]] = defaultdict(set)
    for left, right, label in zip(first, second, labels, strict=True):
        if label == "1":
            duplicates[left].add(right)
            duplicates[right].add(left)
    texts = list(dict.fromkeys(second))
    row = {text: number for number, text in enumerate(texts)}
    queries = dict.fromkeys(text for text, label in zip(first, labels, strict=True) if label == "1")
    relevant = {
        query: frozenset(row[text] for text in duplicates[query] - {query} if text in row)
        for query in queries
    }
    kept = [query for query in queries if relevant[query]]
    return Questions(kept, texts, [relevant[query] for query in kept], [row.get(query, -1) for query in kept])


def index_of(corpus_ND: Vectors, inverted: InvertedIndex | None) -> Any:
    """Return the FAISS index of all texts, by cosine; an inverted index is trained on the texts themselves."""
    width, unit_ND = corpus_ND.shape[1], _unit_length(corpus_ND)
    index: Any = faiss.IndexFlatIP(width)
    with threadpool_limits(limits=1):
        if inverted:
            index = faiss.IndexIVFFlat(index, width, inverted.nlist, faiss.METRIC_INNER_PRODUCT)
            index.nprobe, index.cp.seed = inverted.nprobe, _SEED
            index.train(unit_ND)
        index.add(unit_ND)
    return index


def index_bytes(corpus_ND: Vectors, inverted: InvertedIndex) -> float:
    """Return the bytes of an inverted index of all texts: vectors and centres in float32, and ids of 8 bytes."""
    texts, width = corpus_ND.shape
    return float((texts + inverted.nlist) * width * 4 + texts * 8)


def equal_vectors(corpus_ND: Vectors) -> list[list[int]]:
    """Return the texts of each distinct direction of a vector, in the order of the corpus."""
    texts: defaultdict[bytes, list[int]] = defaultdict(list)
    for text, unit_D in enumerate(_unit_length(corpus_ND) + 0):  # -0 becomes 0
        texts[unit_D.tobytes()].append(text)
    return list(texts.values())


def nearest(queries_QD: Vectors, index: faiss.Index, hits: int) -> NDArray[np.int64]:
    """Return the rows of the texts with the largest cosines, best first, shape (Q, K); -1 beyond the last text.

    A zero vector has cosine 0 with all texts.
    """
    with threadpool_limits(limits=1):
        rows_QK: NDArray[np.int64] = index.search(_unit_length(queries_QD), hits)[1]
    return rows_QK


def _unit_length(vectors_ND: Vectors) -> Vectors:
    scaled_ND = np.array(vectors_ND, dtype=np.float32, order="C")
    faiss.normalize_L2(scaled_ND)
    return scaled_ND


def ties(hits_QK: NDArray[np.int64], distinct_VD: Vectors) -> NDArray[np.int64]:
    """Return the place of each hit, shape (Q, K): hits that are the same but for rounding errors share one."""
    unit_VD = _unit_length(distinct_VD)
    places_QK = np.zeros_like(hits_QK)
    for start in range(0, len(hits_QK), _BLOCK_QUERIES):
        found_BKD = unit_VD[hits_QK[start : start + _BLOCK_QUERIES]]
        apart_BK = np.linalg.norm(np.diff(found_BKD, axis=1), axis=2) > _ROUNDING
        places_QK[start : start + _BLOCK_QUERIES, 1:] = apart_BK.cumsum(axis=1)
    return places_QK


def without_own(
    hits_QK: NDArray[np.int64],
    places_QK: NDArray[np.int64],
    same: Sequence[Sequence[int]],
    positions: Sequence[int],
) -> list[list[int]]:
    """Return the first ten texts for each query, without the query itself.

    Args:
        hits_QK: Distinct vectors, best first; FAISS pads with -1.
        places_QK: Places of the hits (``ties``).
        same: The texts of each distinct vector.
        positions: Position of each query itself in the corpus; -1 if it is not in the corpus.
    """
    kept = []
    for hits, places, mine in zip(hits_QK.tolist(), places_QK.tolist(), positions, strict=True):
        found = zip(places, hits, strict=True)
        texts = sorted((place, text) for place, hit in found if hit >= 0 for text in same[hit])
        kept.append([text for _, text in texts if text != mine][:HITS])
    return kept


def quality(hits: Sequence[Sequence[int]], relevant: Sequence[frozenset[int]]) -> dict[str, float]:
    """Return MRR@10, recall@1 and recall@10, averaged over the queries.

    Args:
        hits: Ten hits of each query, best first; MRR averages 1 / the rank of the first relevant hit.
        relevant: Relevant texts of each query; not empty.
    """
    correct = [
        [hit in wanted for hit in query_hits] for query_hits, wanted in zip(hits, relevant, strict=True)
    ]
    reciprocals = [1 / (1 + row.index(True)) if any(row) else 0.0 for row in correct]
    recalls = {
        depth: [sum(row[:depth]) / len(wanted) for row, wanted in zip(correct, relevant, strict=True)]
        for depth in (1, HITS)
    }
    means = {f"recall@{depth}": float(np.mean(values)) for depth, values in recalls.items()}
    return {f"mrr@{HITS}": float(np.mean(reciprocals)), **means}


def query_time(task: str, queries_QD: Vectors, corpus_ND: Vectors, inverted: InvertedIndex | None) -> Score:
    """Return ``retrieval_ms`` of a query, the mean over one batch of all queries; it differs between runs."""
    index = index_of(corpus_ND, inverted)
    nearest(queries_QD[:HITS], index, HITS + 1)  # warm-up: the first search of a process also loads code
    start = time.perf_counter()
    nearest(queries_QD, index, HITS + 1)
    milliseconds = 1000 * (time.perf_counter() - start)
    return Score(task, "", "retrieval_ms", milliseconds / len(queries_QD), len(queries_QD), "cpu, 1 thread")


def time_search(job: Job) -> None:
    """Time the queries of one run on one suite of search (rule time_search)."""
    config = Config.parse(job.settings["suite"], f"suites.search.{job.wildcards['suite']}")
    encoder = load_encoder(job.input("model").parent, config.readout)
    encoder.to(granted_device(job.operational["gpu"]))
    times: list[Score] = []
    for path in job.inputs("datasets"):
        task = load(path.stem, read_table(path, LABELLED), config)
        sides = [encoder.encode(texts, config.max_tokens) for texts in task.columns]
        if sides:
            queries_QD, corpus_ND = sides
            times.append(query_time(path.stem, queries_QD, corpus_ND, config.index))
        else:
            times += task.score()
    job.write({"table": score_table(times, **job.wildcards)})
