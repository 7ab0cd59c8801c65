"""Semantic search for duplicate questions, by cosine, with FAISS on the CPU.

A query is a distinct question1 of a pair marked as duplicate. It is searched in a corpus of distinct texts: every
question2 (``question2``), or every question of all pairs, duplicate or not (``all``, which is harder). A text is
relevant if a pair marks it and the query as duplicates, in either order. The query's own text is removed from its hits
and never relevant; queries without a relevant text are ignored. A search requests eleven hits and keeps the first ten
that are not the query itself.

The setting is that of LayerAttPooler (Table 3), which refers to the search script of BERT-whitening-pytorch. The
script reads the first 100,000 pairs of Quora's file (0.25 GB of vectors 768 wide), searches each question1 among all
question2 in an inverted file with 1,024 lists, of which it probes 5, and times one batch of all queries. This module
departs from the script in three points: questions are identified by text rather than id, pairs count in either order,
and a query is not among its own hits.

FAISS uses one thread, so that a time is the work of one query, and no rank depends on how a machine divides the work.
With ``readout``, the encoder is used with this readout only, as in LayerAttPooler, without what was trained on top of
it. ``flat`` is exact; ``ivf`` is the inverted file, which is built only if the corpus has 39 texts per list, as
FAISS requires.

Shape suffixes: Q queries, K hits, N corpus texts, D width.
"""

import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Literal, NamedTuple

import faiss
import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from workflow_scripts.evaluation.embeddings import Embeddings, Encode, Vectors, embed
from workflow_scripts.evaluation.scores import Score, gap
from workflow_scripts.settings.suites.search import Config as Config

HITS = 10
TEXTS_PER_LIST = 39
"""FAISS warns below this number of training points per list (``ClusteringParameters.min_points_per_centroid``)."""

_FLOAT_BYTES, _ID_BYTES = 4, 8
_TRAINING_SEED = 0


class Task(NamedTuple):
    """Queries, the corpus that is searched, and the relevant texts."""

    queries: list[str]
    corpus: list[str]
    relevant: list[frozenset[int]]
    """For each query, the positions of its duplicates in the corpus; never empty."""

    own: list[int]
    """For each query, its own position in the corpus; -1 if it is not in the corpus."""


def evaluate(
    datasets: Mapping[str, pa.Table], encode: Encode, config: Config
) -> tuple[list[Score], list[Score]]:
    """Score an encoder on every task from one forward pass over their distinct questions.

    Args:
        datasets: Task name to a table with the columns of ``columns.corpora.LABELLED``; an empty one is a gap.
        encode: Texts to vectors.
        config: What is searched, and how.

    Returns:
        Scores that are the same on every run, per index (``flat``, ``ivf``) as aggregation: ``mrr@10``,
        ``recall@1``, ``recall@10`` with ``n`` queries, and ``index_bytes`` with ``n`` texts. And times, which
        are not: ``retrieval_ms``, the mean over queries. An index that cannot be made is a gap in both.
    """
    tasks = {name: pairs_to_task(table, config.corpus, config.max_pairs) for name, table in datasets.items()}
    embeddings = embed(encode, *(texts for task in tasks.values() for texts in (task.queries, task.corpus)))
    scores: list[Score] = []
    times: list[Score] = []
    for name, task in tasks.items():
        if not task.queries:
            missing = gap(name, "no duplicates: no source of the dataset is available")
            scores.append(missing)
            times.append(missing)
            continue
        for kind in ("flat", "ivf"):
            found, taken = _search(name, kind, task, embeddings, config)
            scores += found
            times += taken
    return scores, times


def pairs_to_task(pairs: pa.Table, corpus: Literal["question2", "all"], max_pairs: int | None) -> Task:
    """Make a search task from labelled pairs, with texts in order of first appearance.

    Args:
        pairs: Columns of ``columns.corpora.LABELLED``; label ``1`` marks a duplicate.
        corpus: The texts to search.
        max_pairs: Read the first so many pairs; None for all.
    """
    table = pairs.slice(0, max_pairs)
    first, second, labels = (table[name].to_pylist() for name in ("text1", "text2", "label"))
    duplicates: defaultdict[str, set[str]] = defaultdict(set)
    for one, two, label in zip(first, second, labels, strict=True):
        if label == "1":
            duplicates[one].add(two)
            duplicates[two].add(one)
    texts = list(dict.fromkeys(second if corpus == "question2" else [*first, *second]))
    place = {text: number for number, text in enumerate(texts)}
    queries = dict.fromkeys(one for one, label in zip(first, labels, strict=True) if label == "1")
    wanted = {
        query: frozenset(place[text] for text in duplicates[query] - {query} if text in place)
        for query in queries
    }
    kept = [query for query in queries if wanted[query]]
    return Task(kept, texts, [wanted[query] for query in kept], [place.get(query, -1) for query in kept])


def _search(
    name: str, kind: Literal["flat", "ivf"], task: Task, embeddings: Embeddings, config: Config
) -> tuple[list[Score], list[Score]]:
    needed = TEXTS_PER_LIST * config.nlist
    if kind == "ivf" and len(task.corpus) < needed:
        reason = f"{len(task.corpus)} texts; {config.nlist} lists of FAISS need {needed}"
        missing = Score(name, kind, "", None, 0, reason)
        return [missing], [missing]
    queries_QD, corpus_ND = (unit_length(embeddings[texts]) for texts in (task.queries, task.corpus))
    with _one_thread():
        index = (
            flat_index(corpus_ND) if kind == "flat" else inverted_file(corpus_ND, config.nlist, config.nprobe)
        )
        index.search(queries_QD[:HITS], HITS + 1)  # warm-up: the first search of a process also loads code
        start = time.perf_counter()
        _, hits_QK = index.search(queries_QD, HITS + 1)
        milliseconds = (time.perf_counter() - start) * 1000
    count = len(task.queries)
    values = quality(without_own(hits_QK, task.own), task.relevant)
    scores = [Score(name, kind, metric, value, count) for metric, value in values.items()]
    scores.append(Score(name, kind, "index_bytes", float(index_bytes(index)), len(task.corpus)))
    return scores, [Score(name, kind, "retrieval_ms", milliseconds / count, count)]


@contextmanager
def _one_thread() -> Iterator[None]:
    before = faiss.omp_get_max_threads()
    faiss.omp_set_num_threads(1)
    try:
        yield
    finally:
        faiss.omp_set_num_threads(before)


def unit_length(vectors_ND: Vectors) -> Vectors:
    """Scale every vector to length 1, so that inner products are cosines; a zero vector stays zero."""
    scaled_ND = np.ascontiguousarray(vectors_ND, dtype=np.float32)
    faiss.normalize_L2(scaled_ND)
    return scaled_ND


def flat_index(corpus_ND: Vectors) -> faiss.Index:
    """An exact index for inner products."""
    index = faiss.IndexFlatIP(corpus_ND.shape[1])
    index.add(corpus_ND)
    return index


def inverted_file(corpus_ND: Vectors, nlist: int, nprobe: int) -> faiss.Index:
    """An inverted file for inner products, whose lists are trained on the corpus itself."""
    width = corpus_ND.shape[1]
    index = faiss.IndexIVFFlat(faiss.IndexFlatIP(width), width, nlist, faiss.METRIC_INNER_PRODUCT)
    index.cp.seed = _TRAINING_SEED
    index.train(corpus_ND)
    index.add(corpus_ND)
    index.nprobe = nprobe
    return index


def index_bytes(index: faiss.Index) -> int:
    """Memory used by the vectors of an index, and by the ids and list centres of an inverted file."""
    vector = index.d * _FLOAT_BYTES
    if isinstance(index, faiss.IndexIVFFlat):
        return int(index.ntotal * (vector + _ID_BYTES) + index.nlist * vector)
    return int(index.ntotal * vector)


def without_own(hits_QK: NDArray[np.int64], own: Sequence[int]) -> list[list[int]]:
    """The first ten hits of each query that are not the query itself; FAISS pads with -1."""
    return [
        [hit for hit in hits if hit not in (mine, -1)][:HITS]
        for hits, mine in zip(hits_QK.tolist(), own, strict=True)
    ]


def quality(hits: Sequence[Sequence[int]], relevant: Sequence[frozenset[int]]) -> dict[str, float]:
    """MRR@10, recall@1 and recall@10, means over the queries.

    Args:
        hits: For each query, the texts found, best first.
        relevant: For each query, the relevant texts; not empty.
    """
    pairs = list(zip(hits, relevant, strict=True))
    ranks = [
        next((rank for rank, hit in enumerate(found, start=1) if hit in wanted), None)
        for found, wanted in pairs
    ]
    recalls = {
        f"recall@{depth}": float(
            np.mean([len(wanted & set(found[:depth])) / len(wanted) for found, wanted in pairs])
        )
        for depth in (1, HITS)
    }
    return {f"mrr@{HITS}": mean_reciprocal_rank(ranks), **recalls}


def mean_reciprocal_rank(ranks: Sequence[int | None], depth: int = HITS) -> float:
    """Mean of 1 / rank of the first relevant hit, ranks from 1; 0 if there is none among the first ``depth``."""
    return float(np.mean([1 / rank if rank is not None and rank <= depth else 0.0 for rank in ranks]))
