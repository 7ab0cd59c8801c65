import faiss
import numpy as np
import pyarrow as pa
import pytest

from workflow_scripts.columns.corpora import LABELLED
from workflow_scripts.evaluation.search import (
    evaluate,
    flat_index,
    index_bytes,
    inverted_file,
    mean_reciprocal_rank,
    pairs_to_task,
    quality,
    unit_length,
    without_own,
)
from workflow_scripts.settings.suites.search import Config

CONFIG = Config(
    datasets=["toy"], max_tokens=64, corpus="all", max_pairs=None, nlist=1, nprobe=1, readout=None
)


def pairs(*rows):
    named = [{"split": "", "text1": one, "text2": two, "label": label} for one, two, label in rows]
    return pa.Table.from_pylist(named, schema=LABELLED)


@pytest.fixture
def questions():
    """Forty pairs of questions about forty topics, every second marked as duplicates, and their vectors."""
    random = np.random.default_rng(0)
    topics = random.normal(size=(40, 16))
    table = pairs(*((f"one {n}", f"two {n}", "10"[n % 2]) for n in range(40)))
    vectors = {
        f"{side} {n}": topics[n] + 0.01 * random.normal(size=16) for n in range(40) for side in ("one", "two")
    }
    return table, vectors


def encoder(vectors):
    return lambda texts: np.array([vectors[text] for text in texts], dtype=np.float32)


def named(scores):
    return {(s.aggregation, s.metric): s.value for s in scores}


def test_mrr_counts_the_first_hit_within_ten():
    """O-15."""
    assert mean_reciprocal_rank([1, 2, 4, 11]) == 0.4375
    assert mean_reciprocal_rank([None, 10]) == pytest.approx(0.05)


def test_recall_is_the_share_of_the_relevant_that_was_found():
    hits = [[5, 1, 2], [9, 8, 7]]
    relevant = [frozenset({1, 5, 4, 3}), frozenset({0})]
    assert quality(hits, relevant) == {"mrr@10": 0.5, "recall@1": 0.125, "recall@10": 0.25}


def test_the_query_itself_is_taken_out_of_its_hits():
    hits = np.array([[3, *range(10, 20)], [*range(11)], [1, -1, -1, *[-1] * 8]])
    assert without_own(hits, [3, -1, 7]) == [list(range(10, 20)), list(range(10)), [1]]


def test_a_task_searches_every_question2_or_every_question():
    table = pairs(("a", "b", "1"), ("a", "c", "0"), ("d", "a", "1"), ("e", "f", "0"))
    narrow = pairs_to_task(table, "question2", None)
    assert narrow.queries == ["a", "d"]
    assert narrow.corpus == ["b", "c", "a", "f"]
    assert narrow.relevant == [{0}, {2}]
    assert narrow.own == [2, -1]
    wide = pairs_to_task(table, "all", None)
    assert wide.corpus == ["a", "d", "e", "b", "c", "f"]
    assert wide.relevant == [{3, 1}, {0}]
    assert wide.own == [0, 1]


def test_a_question_paired_with_itself_is_no_duplicate_to_find():
    task = pairs_to_task(pairs(("a", "a", "1"), ("b", "c", "1")), "question2", None)
    assert task.queries == ["b"]
    assert task.corpus == ["a", "c"]


def test_only_the_first_pairs_are_read_where_that_is_asked_for():
    task = pairs_to_task(pairs(("a", "b", "1"), ("c", "d", "1")), "all", 1)
    assert (task.queries, task.corpus) == (["a"], ["a", "b"])


def test_near_duplicates_are_found_first_by_both_indexes(questions):
    table, vectors = questions
    scores, times = evaluate({"toy": table}, encoder(vectors), CONFIG)
    assert named(scores) == {
        (kind, metric): value
        for kind, size in {"flat": 80 * 16 * 4, "ivf": 80 * (16 * 4 + 8) + 16 * 4}.items()
        for metric, value in {"mrr@10": 1.0, "recall@1": 1.0, "recall@10": 1.0, "index_bytes": size}.items()
    }
    assert {s.metric: s.n for s in scores} == {
        "mrr@10": 20,
        "recall@1": 20,
        "recall@10": 20,
        "index_bytes": 80,
    }
    assert {(s.aggregation, s.metric) for s in times} == {("flat", "retrieval_ms"), ("ivf", "retrieval_ms")}
    assert all(s.value > 0 for s in times)


def test_the_cosine_decides_and_not_the_length(questions):
    table, vectors = questions
    lengths = np.random.default_rng(2).uniform(0.01, 100, len(vectors))
    stretched = {
        text: length * vector for (text, vector), length in zip(vectors.items(), lengths, strict=True)
    }
    assert named(evaluate({"toy": table}, encoder(stretched), CONFIG)[0])["flat", "mrr@10"] == 1.0


def test_scores_do_not_change_from_run_to_run(questions):
    table, vectors = questions
    random = np.random.default_rng(1)
    noisy = {text: vector + random.normal(size=16) for text, vector in vectors.items()}
    first, second = (evaluate({"toy": table}, encoder(noisy), CONFIG)[0] for _ in range(2))
    assert first == second
    assert named(first)["flat", "mrr@10"] < 1


def test_a_corpus_too_small_for_its_lists_is_a_gap_for_the_inverted_file_only(questions):
    table, vectors = questions
    scores, times = evaluate({"toy": table}, encoder(vectors), CONFIG.model_copy(update={"nlist": 3}))
    for found in (scores, times):
        notes = [s.note for s in found if s.aggregation == "ivf"]
        assert notes == ["80 texts; 3 lists of FAISS need 117"]
    assert named(scores)["flat", "mrr@10"] == 1.0


def test_a_dataset_without_duplicates_is_a_gap(questions):
    scores, times = evaluate(
        {"lost": LABELLED.empty_table(), "toy": questions[0]}, encoder(questions[1]), CONFIG
    )
    for found in (scores, times):
        assert [(s.value, s.n) for s in found if s.task == "lost"] == [(None, 0)]


@pytest.mark.parametrize("probes", [1, 8])
def test_an_inverted_file_that_looks_into_every_list_is_exact(probes):
    vectors = unit_length(np.random.default_rng(0).normal(size=(400, 12)))
    exact = flat_index(vectors).search(vectors[:50], 10)[1]
    found = inverted_file(vectors, nlist=8, nprobe=probes).search(vectors[:50], 10)[1]
    assert np.array_equal(found, exact) == (probes == 8)


@pytest.mark.parametrize("make", [flat_index, lambda vectors: inverted_file(vectors, nlist=8, nprobe=1)])
def test_the_bytes_of_an_index_are_those_that_faiss_would_write(make):
    index = make(unit_length(np.random.default_rng(0).normal(size=(400, 12))))
    assert index_bytes(index) == pytest.approx(len(faiss.serialize_index(index)), abs=400)


def test_a_zero_vector_stays_zero():
    assert np.array_equal(
        unit_length(np.array([[0, 0], [3, 4]])), np.array([[0, 0], [0.6, 0.8]], dtype=np.float32)
    )
