import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.columns.corpora import PAIRS, SENTENCES, TRIPLES
from workflow_scripts.config import ConfigError
from workflow_scripts.data.corpora import adjacency_pairs, split, with_sentences_of
from workflow_scripts.errors import DataError
from workflow_scripts.settings.corpora import Corpus


def corpus(dev_sentences=0, max_sentences=None):
    block = {"dataset": "toy", "dev_sentences": dev_sentences, "max_sentences": max_sentences}
    return Corpus.parse(block, "corpora.toy")


def sentences(sizes, gaps=()):
    """Documents of ``sizes`` sentences; ``gaps`` are (document, position) that a reader dropped."""
    rows = [
        {"sentence": f"d{document} s{position}", "document": document, "position": position}
        for document, size in enumerate(sizes)
        for position in range(size)
        if (document, position) not in gaps
    ]
    return pa.Table.from_pylist(rows, schema=SENTENCES)


def texts(table):
    return table["sentence"].to_pylist()


def test_whole_documents_from_the_end_are_held_out():
    parts = split(sentences([3, 3, 4]), corpus(dev_sentences=5))
    assert texts(parts.train) == ["d0 s0", "d0 s1", "d0 s2"]
    assert len(parts.held_out) == 7
    assert split(sentences([3, 3, 4]), corpus(dev_sentences=4)).train.num_rows == 6


@given(
    sizes=st.lists(st.integers(1, 6), min_size=2, max_size=8),
    wanted=st.integers(1, 30),
    limit=st.none() | st.integers(1, 20),
)
def test_the_parts_share_no_document_and_hold_out_enough(sizes, wanted, limit):
    table = sentences(sizes)
    if wanted > sum(sizes[1:]):
        with pytest.raises(DataError, match="leaves none to train on"):
            split(table, corpus(wanted, limit))
        return
    parts = split(table, corpus(wanted, limit))
    assert len(parts.held_out) >= wanted
    assert not set(parts.train["document"].to_pylist()) & set(parts.held_out["document"].to_pylist())
    whole = len(table) - len(parts.held_out)
    assert len(parts.train) == min(whole, limit or whole)
    assert texts(table)[: len(parts.train)] == texts(parts.train)
    assert texts(table)[whole:] == texts(parts.held_out)
    documents = parts.held_out["document"].to_pylist()
    assert len(parts.held_out) - documents.count(documents[0]) < wanted  # no document more than needed


def test_an_empty_corpus_is_an_error_that_names_its_dataset():
    with pytest.raises(DataError, match="dataset toy has no sentences"):
        split(SENTENCES.empty_table(), corpus())


# Pairs without human judgements


def test_neighbours_follow_each_other_and_strangers_are_of_other_documents():
    pairs = adjacency_pairs(sentences([3, 2, 4], gaps={(2, 1)}), seed=0)
    assert pairs.schema == PAIRS
    rows = [tuple(row.values()) for row in pairs.to_pylist()]
    near, far = rows[: len(rows) // 2], rows[len(rows) // 2 :]
    assert near == [
        ("neighbours", "d0 s0", "d0 s1", 1.0),
        ("neighbours", "d0 s1", "d0 s2", 1.0),
        ("neighbours", "d1 s0", "d1 s1", 1.0),
        ("neighbours", "d2 s2", "d2 s3", 1.0),  # a dropped sentence lay between s0 and s2
    ]
    assert [row[1] for row in far] == [row[1] for row in near]
    for subset, first, second, score in far:
        assert (subset, score) == ("strangers", 0.0)
        assert first.split()[0] != second.split()[0]


def test_as_many_strangers_as_neighbours_a_function_of_the_seed():
    table = sentences([9] * 12)
    one, again, other = (adjacency_pairs(table, seed) for seed in (0, 0, 1))
    assert one == again
    assert one != other
    assert one["score"].to_pylist() == [1.0] * 96 + [0.0] * 96
    assert len(set(one["sentence2"].to_pylist()[96:])) > 40


def test_one_document_alone_has_no_strangers_and_gives_no_pairs():
    assert len(adjacency_pairs(sentences([5]), 0)) == 0


def test_a_table_in_several_chunks_gives_the_same_pairs():
    table = sentences([4, 5, 3])
    chunked = pa.concat_tables([table.slice(0, 1), table.slice(1, 6), table.slice(7)])
    assert chunked["sentence"].num_chunks == 3
    assert adjacency_pairs(chunked, 3) == adjacency_pairs(table, 3)
    assert texts(split(chunked, corpus(4)).train) == texts(split(table, corpus(4)).train)
    assert np.array_equal(adjacency_pairs(chunked, 3)["score"].to_numpy(), adjacency_pairs(table, 3)["score"])


def scored(*rows):
    columns = ([""] * len(rows), [r[0] for r in rows], [r[1] for r in rows], [1.0] * len(rows))
    return pa.table([pa.array(c, f.type) for c, f in zip(columns, PAIRS, strict=True)], schema=PAIRS)


def test_sentences_of_pairs_join_a_corpus_once_each_and_without_scores():
    """JTCSE, Table VIII."""
    train = pa.table({"sentence": ["One.", "Two."], "document": [0, 1], "position": [0, 0]}, schema=SENTENCES)
    table = with_sentences_of(train, scored(("A.", "B."), ("B.", "C.")))
    assert table["sentence"].to_pylist() == ["One.", "Two.", "A.", "B.", "C."]
    assert table["document"].to_pylist() == [0, 1, 2, 2, 2]
    assert table["position"].to_pylist() == [0, 0, 0, 1, 2]
    assert table.column_names == SENTENCES.names


def test_a_corpus_that_takes_in_test_sentences_says_so():
    plain = Corpus(dataset="wiki", dev_sentences=0, max_sentences=None)
    assert plain.labels == []
    assert "transductive" in plain.model_copy(update={"also": "sick_r_all"}).labels[0]
    assert plain.model_copy(update={"label": "stands in"}).labels == ["stands in"]


def test_sentences_cannot_join_triples():
    triples = pa.table({"anchor": ["a"], "positive": ["b"], "negative": ["c"]})
    with pytest.raises(ConfigError, match="cannot be added to triples"):
        with_sentences_of(triples, scored(("A.", "B.")))


def test_triples_are_cut_to_length_and_hold_nothing_out():
    triples = pa.table([["a", "b", "c"], ["d", "e", "f"], pa.nulls(3, pa.string())], schema=TRIPLES)
    parts = split(triples, corpus(max_sentences=2))
    assert parts.train.equals(triples.slice(0, 2))
    assert parts.held_out.schema == SENTENCES
    assert len(adjacency_pairs(parts.held_out, 0)) == 0
    assert split(triples, corpus()).train.equals(triples)
    with pytest.raises(ConfigError, match="has no documents"):
        split(triples, corpus(dev_sentences=1))
