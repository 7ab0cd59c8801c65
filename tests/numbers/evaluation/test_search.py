import numpy as np
import pyarrow as pa
import pytest

from tests.support.scored_tasks import scores_of
from workflow_scripts.columns import LABELLED
from workflow_scripts.errors import DataError
from workflow_scripts.evaluation import search
from workflow_scripts.evaluation.search import (
    index_bytes,
    index_of,
    nearest,
    quality,
    questions_of,
    without_own,
)
from workflow_scripts.settings.suites import InvertedIndex
from workflow_scripts.settings.suites import Search as Config

CONFIG = Config(datasets=["toy"], max_tokens=64, max_pairs=None)


def pairs(*rows):
    named = [{"split": "", "text1": one, "text2": two, "label": label} for one, two, label in rows]
    return pa.Table.from_pylist(named, schema=LABELLED)


def test_the_query_itself_is_taken_out_of_its_hits():
    hits = np.array([[3, *range(10, 20)], [*range(11)], [1, -1, -1, *[-1] * 8]])
    alone = [[text] for text in range(20)]
    places = np.tile(np.arange(11), (3, 1))
    assert without_own(hits, places, alone, [3, -1, 7]) == [list(range(10, 20)), list(range(10)), [1]]


@pytest.mark.parametrize("noise", [0, 1e-7])
@pytest.mark.parametrize("size", [3, 40])
def test_texts_of_one_vector_rank_as_the_corpus_has_them(size, noise):
    """The relevant one is the third of those that are equal but for their length, and perhaps for rounding errors that
    batches make: its reciprocal rank is 1/3.
    """
    random = np.random.default_rng(0)
    topics = random.normal(size=(size, 384))
    table = pairs(
        *((f"ask {n}", f"{word} {n}", str(int(word == "c"))) for n in range(size) for word in "abcd")
    )

    def encode(texts):
        scale = {"ask": 1, "a": 1, "b": 2, "c": 0.5, "d": 1}
        vectors = np.array([scale[text.split()[0]] * topics[int(text.split()[1])] for text in texts])
        return (vectors * (1 + noise * random.normal(size=vectors.shape))).astype(np.float32)

    values = {score.metric: score.value for score in scores_of(search.load("toy", table, CONFIG), encode)}
    assert values == {"mrr@10": pytest.approx(1 / 3), "recall@1": 0.0, "recall@10": 1.0}


def test_labels_that_name_no_duplicates_are_refused():
    """Labels that do not say which pairs are duplicates are refused."""
    with pytest.raises(
        DataError, match="toy: label '2', but labels must be 1 for duplicates and 0 for other pairs"
    ):
        search.load("toy", pairs(("a", "b", "1"), ("c", "d", "2"), ("e", "f", "0")), CONFIG)


def test_a_duplicate_is_relevant_in_both_directions():
    """Text c is marked as a duplicate of a, and a text to search because of another pair."""
    found = questions_of(pairs(("a", "b", "1"), ("c", "a", "1"), ("d", "c", "0")), None)
    relevant = {
        query: {found.corpus[row] for row in rows}
        for query, rows in zip(found.queries, found.relevant, strict=True)
    }
    assert relevant == {"a": {"b", "c"}, "c": {"a"}}


def test_a_task_searches_every_question2():
    table = pairs(("a", "b", "1"), ("a", "c", "0"), ("d", "a", "1"), ("e", "f", "0"))
    assert questions_of(table, None) == (["a", "d"], ["b", "c", "a", "f"], [{0}, {2}], [2, -1])
    # Of the first two pairs; nothing repeats itself.
    few = questions_of(pairs(("a", "a", "1"), ("b", "c", "1"), ("c", "d", "1")), 2)
    assert few == (["b"], ["a", "c"], [{1}], [-1])


def test_near_duplicates_come_first_whatever_the_lengths():
    """Forty pairs of questions about forty topics, every second marked as duplicates."""
    random = np.random.default_rng(0)
    topics = random.normal(size=(40, 16))
    table = pairs(*((f"one {n}", f"two {n}", "10"[n % 2]) for n in range(40)))

    def encode(texts):
        vectors = np.array([topics[int(text.split()[1])] for text in texts])
        vectors += 0.01 * random.normal(size=vectors.shape)
        return (vectors * random.uniform(0.01, 100, (len(texts), 1))).astype(np.float32)

    scores = scores_of(search.load("toy", table, CONFIG), encode)
    assert {(score.metric, score.value, score.n) for score in scores} == {
        ("mrr@10", 1.0, 20), ("recall@1", 1.0, 20), ("recall@10", 1.0, 20)
    }  # fmt: skip


def test_the_nearest_have_the_largest_cosines():
    """As a search by sorting every cosine."""
    vectors = np.random.default_rng(0).normal(size=(400, 12)).astype(np.float32)
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    vectors[7] = unit[7] = 0
    before = vectors.copy()
    assert np.array_equal(
        nearest(vectors[20:70], index_of(vectors, None), 10), (-unit[20:70] @ unit.T).argsort(axis=1)[:, :10]
    )
    assert np.array_equal(vectors, before)
    assert nearest(vectors[:1], index_of(vectors[:2], None), 4).tolist() == [[0, 1, -1, -1]]


def test_an_inverted_index_finds_the_nearest_of_probed_lists():
    """An inverted index finds the nearest of the lists that it probes the same every time."""
    vectors = np.random.default_rng(0).normal(size=(600, 12)).astype(np.float32)
    exact = nearest(vectors[:50], index_of(vectors, None), 10)
    found = {}
    for probes in (1, 4, 16):
        built = [index_of(vectors, InvertedIndex(nlist=16, nprobe=probes)) for _ in range(2)]
        hits, again = (nearest(vectors[:50], index, 10) for index in built)
        assert np.array_equal(hits, again)
        found[probes] = np.mean([len({*one} & {*other}) / 10 for one, other in zip(hits, exact, strict=True)])
    assert found[1] < found[4] < found[16] == 1
    assert index_bytes(vectors, InvertedIndex(nlist=16, nprobe=1)) == 4 * 12 * (600 + 16) + 8 * 600


def test_an_index_with_more_lists_than_texts_is_refused():
    table = pairs(("a", "b", "1"), ("c", "d", "1"))
    config = CONFIG.model_copy(update={"index": InvertedIndex(nlist=5, nprobe=1)})
    with pytest.raises(
        DataError, match=r"toy: 2 texts for 5 lists of the index\. Set index.nlist to 2 or less"
    ):
        search.load("toy", table, config)
    assert len(search.load("toy", table, CONFIG).columns) == 2
    settings = {"datasets": ["toy"], "max_tokens": 64, "index": {"nlist": 9, "nprobe": 2}}
    with pytest.raises(ValueError, match=r"index\.nlist: 9 lists for at most 8 texts"):
        Config(**settings, max_pairs=8)
    assert Config(**settings, max_pairs=9).timed() == {"toy": {("", "retrieval_ms")}}
    with pytest.raises(ValueError, match="nprobe: 3 of 2 lists"):
        InvertedIndex(nlist=2, nprobe=3)


def test_quality_counts_the_first_hit_and_the_share_found():
    """O-15."""
    hits = [[1], [9, 1], [9, 8, 7, 1], [9]]
    assert quality(hits, [frozenset({1})] * 4)["mrr@10"] == 0.4375
    hits = [[5, 1, 2], [9, 8, 7]]
    relevant = [frozenset({1, 5, 4, 3}), frozenset({0})]
    assert quality(hits, relevant) == {"mrr@10": 0.5, "recall@1": 0.125, "recall@10": 0.25}
