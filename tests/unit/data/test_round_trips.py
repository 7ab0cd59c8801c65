import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.apis.door import text_fault
from workflow_scripts.apis.ledger import Request, Row
from workflow_scripts.columns.corpora import ROUND_TRIPS, SENTENCES, TRIPLES
from workflow_scripts.data.round_trips import (
    outcome_of,
    round_trips,
    rows_of_shard,
    to_train_on,
)
from workflow_scripts.settings.round_trips import Limits, Shape

LIMITS = Limits(shards=4, untranslated_share=0.8, shortened_ratio=0.5, refused_share=0.01)
SENTENCE = "The old king built a new town by the river."
PIVOT = "El rey viejo construyó una ciudad nueva por el río."
BACK = "The old king constructed a new city by the river."


def row_of(text, answer):
    """A row as an engine and the door leave it."""
    request = Request("toy", "", "en", "es", text)
    if answer is None:
        return Row(request, None, "refused")
    fault = text_fault(answer, text)
    return Row(request, answer, "rejected" if fault else "usable", fault or "")


def outcome(sentence, pivot, back):
    there = row_of(sentence, pivot)
    return outcome_of(sentence, there, row_of(pivot, back) if there.status == "usable" else None, LIMITS)


@pytest.mark.parametrize(
    ("pivot", "back", "found"),
    [
        (PIVOT, BACK, "paraphrase"),
        (PIVOT, SENTENCE, "unchanged"),
        (PIVOT, f"  {SENTENCE.upper()} ", "unchanged"),
        (None, None, "refused"),
        (PIVOT, None, "refused"),
        ("", "", "rejected: empty"),
        (PIVOT, " ... ", "rejected: empty"),
        (SENTENCE, BACK, "untranslated"),
        (f"{SENTENCE} *", SENTENCE, "untranslated"),
        (PIVOT, PIVOT, "untranslated"),
        (PIVOT, "The old king.", "shortened"),
        (PIVOT, f"{BACK} {BACK} And more.", "lengthened"),
        (f"The old king built {PIVOT}", BACK, "paraphrase"),  # languages share names and numbers
    ],
)
def test_every_round_trip_has_the_outcome_that_its_texts_show(pivot, back, found):
    assert outcome(SENTENCE, pivot, back) == found


@given(st.integers(0, 60), st.integers(1, 9))
def test_shards_take_every_row_once_in_order_and_equal_parts(rows, shards):
    parts = [rows_of_shard(rows, f"{number}-of-{shards}") for number in range(1, shards + 1)]
    assert [row for part in parts for row in part] == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


def trips(*rows):
    sentences, pivots, backs = map(list, zip(*rows, strict=True))
    there = [row_of(*pair) for pair in zip(sentences, pivots, strict=True)]
    usable = [row.status == "usable" for row in there]
    back = [row_of(*pair) if kept else None for *pair, kept in zip(pivots, backs, usable, strict=True)]
    table = round_trips(range(len(rows)), sentences, there, back, LIMITS)
    assert table.schema == ROUND_TRIPS
    return table


BASE = pa.table(
    [["a b c d e", SENTENCE, "f g h i j", "a b c n o"], pa.array([0, 0, 1, 1], pa.int32()), pa.array([0, 1, 0, 4], pa.int32())],
    schema=SENTENCES,
)  # fmt: skip
TRIPS = [
    ("a b c d e", "p q r s t", "a b x y z"), (SENTENCE, PIVOT, SENTENCE),
    ("f g h i j", None, None), ("a b c n o", "u v w x y", "a b x y z"),
]  # fmt: skip


def test_pairs_have_no_negative_and_what_is_no_paraphrase_is_counted():
    pairs, dropped = to_train_on(trips(*TRIPS), BASE, Shape(form="pairs", unchanged="drop"))
    assert pairs.schema == TRIPLES
    assert pairs.to_pylist() == [
        {"anchor": "a b c d e", "positive": "a b x y z", "negative": None},
        {"anchor": "a b c n o", "positive": "a b x y z", "negative": None},
    ]
    assert dropped == {"unchanged": 1, "refused": 1}


def test_one_answer_to_two_different_sentences_of_the_whole_corpus_is_no_positive():
    canned = [("a b c d e", "p q r s t", "v w x y k"), TRIPS[1], ("f g h i j", "l m n o p", "v w x y k")]
    pairs, dropped = to_train_on(trips(*canned), BASE, Shape(form="pairs", unchanged="keep"))
    assert [row["anchor"] for row in pairs.to_pylist()] == [SENTENCE]
    assert dropped == {"rejected: given to several different sentences": 2}


def test_unchanged_round_trips_are_kept_where_the_corpus_says_so():
    pairs, dropped = to_train_on(trips(*TRIPS), BASE, Shape(form="pairs", unchanged="keep"))
    assert [row["anchor"] for row in pairs.to_pylist()] == ["a b c d e", SENTENCE, "a b c n o"]
    assert dropped == {"refused": 1}


def test_a_corpus_has_the_places_of_its_base_and_each_sentence_once():
    text, dropped = to_train_on(trips(*TRIPS), BASE, Shape(form="corpus", unchanged="keep"))
    assert text.schema == SENTENCES
    assert text.to_pylist() == [
        {"sentence": "a b x y z", "document": 0, "position": 0}, {"sentence": SENTENCE, "document": 0, "position": 1},
    ]  # fmt: skip
    assert dropped == {"refused": 1, "repeated": 1}


def test_an_expanded_corpus_has_every_sentence_and_what_came_back_once_at_its_place():
    """A sentence stays whose round trip is none, and a round trip that says what a sentence says adds nothing."""
    text, dropped = to_train_on(trips(*TRIPS), BASE, Shape(form="expanded", unchanged="keep"))
    assert text.schema == SENTENCES
    assert [tuple(row.values()) for row in text.to_pylist()] == [
        ("a b c d e", 0, 0), (SENTENCE, 0, 1), ("f g h i j", 1, 0), ("a b c n o", 1, 4), ("a b x y z", 0, 0),
    ]  # fmt: skip
    assert dropped == {"refused": 1, "repeated": 2}


@given(
    st.lists(st.tuples(*[st.sampled_from(["a b", "c d", "e f", "", "a c"])] * 3), min_size=1, max_size=12),
    st.sampled_from(["pairs", "corpus"]),
)
def test_kept_and_dropped_rows_add_up_and_nothing_unchanged_or_empty_is_a_pair(rows, form):
    base = pa.table(
        [[row[0] for row in rows], *[pa.array(np.arange(len(rows)), pa.int32())] * 2], schema=SENTENCES
    )
    kept, dropped = to_train_on(trips(*rows), base, Shape(form=form, unchanged="drop"))
    assert len(kept) + dropped.total() == len(rows)
    if form == "pairs":
        assert all(row["positive"].strip() and row["positive"] != row["anchor"] for row in kept.to_pylist())
