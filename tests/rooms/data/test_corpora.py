import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.columns import PAIRS, SENTENCES, TRIPLES
from workflow_scripts.data.corpora import adjacency_pairs, split, with_pair_sentences
from workflow_scripts.errors import DataError
from workflow_scripts.settings.base import ConfigError
from workflow_scripts.settings.corpora import Corpus


def corpus(dev_sentences=0, max_sentences=None):
    return Corpus(dataset="toy", dev_sentences=dev_sentences, max_sentences=max_sentences)


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


@given(
    sizes=st.lists(st.integers(1, 6), min_size=2, max_size=8),
    wanted=st.integers(1, 30),
    limit=st.none() | st.integers(1, 20),
)
def test_the_parts_share_no_document_and_hold_out_enough(sizes, wanted, limit):
    table = sentences(sizes)
    if wanted > sum(sizes[1:]):
        with pytest.raises(
            DataError, match=rf"leaves no document for training\. Set it to {sum(sizes[1:])} or less"
        ):
            split(table, corpus(wanted, limit))
        return
    train, held_out = split(table, corpus(wanted, limit))
    assert len(held_out) >= wanted
    assert not set(train["document"].to_pylist()) & set(held_out["document"].to_pylist())
    whole = len(table) - len(held_out)
    assert len(train) == min(whole, limit or whole)
    assert texts(table)[: len(train)] == texts(train)
    assert texts(table)[whole:] == texts(held_out)
    documents = held_out["document"].to_pylist()
    assert len(held_out) - documents.count(documents[0]) < wanted  # no document more than needed


# Pairs without human judgements


def test_neighbours_follow_each_other_and_strangers_do_not():
    """Neighbours follow each other and strangers are of other documents."""
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


def test_strangers_are_drawn_by_the_seed():
    held_out = sentences([3, 2, 4])
    assert adjacency_pairs(held_out, seed=1).equals(adjacency_pairs(held_out, seed=1))
    assert not adjacency_pairs(held_out, seed=1).equals(adjacency_pairs(held_out, seed=2))


def test_sentences_of_pairs_join_a_corpus_once_each():
    """JTCSE, Table VIII; a corpus that takes in test sentences says so."""
    train = pa.table({"sentence": ["One.", "Two."], "document": [0, 1], "position": [0, 0]}, schema=SENTENCES)
    columns = {
        "subset": [""] * 3,
        "sentence1": ["A.", "B.", ""],
        "sentence2": ["B.", "C.", " "],
        "score": [1.0] * 3,
    }
    table = with_pair_sentences(train, pa.table(columns, schema=PAIRS), "sick_r_all")
    rows = [tuple(row.values()) for row in table.to_pylist()]
    assert rows == [("One.", 0, 0), ("Two.", 1, 0), ("A.", 2, 0), ("B.", 2, 1), ("C.", 2, 2)]
    assert corpus().labels == []
    assert "transductive" in corpus().model_copy(update={"add_sentences_of": "sick_r_all"}).labels[0]


def test_an_addition_without_sentences_is_refused():
    with pytest.raises(
        DataError, match=r"add_sentences_of: sick_r_all has no sentences to add.* or remove the key"
    ):
        with_pair_sentences(sentences([2]), PAIRS.empty_table(), "sick_r_all")


def test_triples_are_cut_and_take_no_sentences():
    """Triples are cut to length, hold nothing out and take no sentences."""
    triples = pa.table([["a", "b", "c"], ["d", "e", "f"], pa.nulls(3, pa.string())], schema=TRIPLES)
    train, held_out = split(triples, corpus(max_sentences=2))
    assert train.equals(triples.slice(0, 2))
    assert split(triples, corpus())[0].equals(triples)
    assert len(adjacency_pairs(held_out, 0)) == len(adjacency_pairs(sentences([5]), 0)) == 0
    with pytest.raises(ConfigError, match="has no documents"):
        split(triples, corpus(dev_sentences=1))
    with pytest.raises(ConfigError, match="cannot be added to triples"):
        with_pair_sentences(triples, PAIRS.empty_table(), "toy")
    with pytest.raises(DataError, match="dataset toy has no sentences"):
        split(SENTENCES.empty_table(), corpus())
