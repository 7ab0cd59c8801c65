from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.data.words import count_words
from workflow_scripts.schemas import WORD_COUNTS


def rows(sentences):
    table = count_words(sentences)
    assert table.schema == WORD_COUNTS
    return [tuple(row.values()) for row in table.to_pylist()]


def test_the_most_frequent_word_comes_first_and_ties_are_alphabetical():
    assert rows(["b a b", "c  a\tb", "York york"]) == [
        (1, "b", 3),
        (2, "a", 2),
        (3, "York", 1),
        (4, "c", 1),
        (5, "york", 1),
    ]


def test_punctuation_stays_with_its_word():
    assert [word for _, word, _ in rows(["King, the King."])] == ["King,", "King.", "the"]


def test_no_sentences_have_no_words():
    assert rows([]) == rows(["", " "]) == []


@given(st.lists(st.lists(st.sampled_from("abcde"), max_size=6).map(" ".join), max_size=8))
def test_counts_add_up_in_any_order_of_sentences(sentences):
    counted = rows(sentences)
    assert sum(count for _, _, count in counted) == sum(len(sentence.split()) for sentence in sentences)
    assert counted == rows(reversed(sentences))
    assert [rank for rank, _, _ in counted] == list(range(1, len(counted) + 1))
