import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from workflow_scripts.apis.answer_checks import text_fault
from workflow_scripts.apis.ledger import ApiRequest, Row
from workflow_scripts.columns import ROUND_TRIPS, SENTENCES, TRIP_COSINES, TRIPLES
from workflow_scripts.data.round_trip_corpora import to_train_on
from workflow_scripts.data.round_trips import round_trips, shard_rows
from workflow_scripts.data.tables import table_of
from workflow_scripts.errors import DataError
from workflow_scripts.jobs.compare_round_trips import CHUNK, compare
from workflow_scripts.settings.corpora import Limits, Shape, Thresholds

LIMITS = Limits(shards=4, untranslated_share=0.8, shortened_ratio=0.66, refused_share=0.01)
SENTENCE = "The old king built a new town by the river."
PIVOT = "El rey viejo construyó una ciudad nueva por el río."
BACK = "The old king constructed a new city by the river."


def base_of(sentences):
    """A corpus of sentences, in one document."""
    places = pa.array(range(len(sentences)), pa.int32())
    return pa.table([sentences, pa.array([0] * len(sentences), pa.int32()), places], schema=SENTENCES)


def row_of(text, answer):
    """A row as an engine and the door leave it."""
    request = ApiRequest("toy", "", "en", "es", text)
    if answer is None:
        return Row(request, None, "refused")
    fault = text_fault(answer, text)
    return Row(request, answer, "rejected" if fault else "usable", fault or "")


def trips(*rows):
    sentences, pivots, backs = map(list, zip(*rows, strict=True))
    there = [row_of(*pair) for pair in zip(sentences, pivots, strict=True)]
    usable = [row.status == "usable" for row in there]
    back = [row_of(*pair) if kept else None for *pair, kept in zip(pivots, backs, usable, strict=True)]
    return round_trips(range(len(rows)), sentences, there, back, LIMITS)


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
    table = trips((SENTENCE, pivot, back))
    assert table.schema == ROUND_TRIPS
    assert table["outcome"].to_pylist() == [found]


@given(st.integers(0, 60), st.integers(1, 9))
def test_shards_take_every_row_once_in_order_and_equal_parts(rows, shards):
    parts = [shard_rows(rows, f"{number}-of-{shards}") for number in range(1, shards + 1)]
    assert [row for part in parts for row in part] == list(range(rows))
    assert max(map(len, parts)) - min(map(len, parts)) <= 1


BASE = pa.table(
    [["a b c d e", SENTENCE, "f g h i j", "a b c n o"], pa.array([0, 0, 1, 1], pa.int32()), pa.array([0, 1, 0, 4], pa.int32())],
    schema=SENTENCES,
)  # fmt: skip
TRIPS = [
    ("a b c d e", "p q r s t", "a b x y z"), (SENTENCE, PIVOT, SENTENCE),
    ("f g h i j", None, None), ("a b c n o", "u v w s t", "a b x y z"),
]  # fmt: skip


CANNED = [("a b c d e", "p q r s t", "v w x y k"), TRIPS[1], ("f g h i j", "l m n o p", "v w x y k")]
FIRST, SAME, LAST = (
    ("a b c d e", "a b x y z", None),
    (SENTENCE, SENTENCE, None),
    ("a b c n o", "a b x y z", None),
)
SHAPES = {
    "pairs without other outcomes": (TRIPS, "pairs", "drop", [FIRST, LAST], {"unchanged": 1, "refused": 1}),
    "pairs with unchanged ones": (TRIPS, "pairs", "keep", [FIRST, SAME, LAST], {"refused": 1}),
    "one answer to two different sentences of the whole corpus": (
        CANNED, "pairs", "keep", [SAME], {"rejected: given to several different sentences": 2},
    ),
    "one translation of two different sentences, though they come back apart": (
        [TRIPS[0], ("f g h i j", "p q r s t", "f g k l m")], "pairs", "keep", [],
        {"rejected: given to several different sentences": 2},
    ),
    "a corpus at the places of its base, each sentence once": (
        TRIPS, "corpus", "keep", [("a b x y z", 0, 0), (SENTENCE, 0, 1)], {"refused": 1, "repeated": 1},
    ),
    "expanded: sentences without a paraphrase stay, and repeated ones add nothing": (
        TRIPS, "expanded", "keep",
        [("a b c d e", 0, 0), (SENTENCE, 0, 1), ("f g h i j", 1, 0), ("a b c n o", 1, 4), ("a b x y z", 0, 0)],
        {"refused": 1, "repeated": 2},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("made", "form", "unchanged", "rows", "dropped"), SHAPES.values(), ids=SHAPES)
def test_rows_for_training_and_dropped_rows_by_reason(made, form, unchanged, rows, dropped):
    table, counted = to_train_on(
        trips(*made), BASE, Shape(training_text=form, unchanged=unchanged), None, None
    )
    assert table.schema == (TRIPLES if form == "pairs" else SENTENCES)
    assert [tuple(row.values()) for row in table.to_pylist()] == rows
    assert counted == dropped


@given(
    st.lists(st.tuples(*[st.sampled_from(["a b", "c d", "e f", "", "a c"])] * 3), min_size=1, max_size=12),
    st.sampled_from(["pairs", "corpus"]),
)
def test_kept_and_dropped_rows_add_up(rows, form):
    """Kept and dropped rows add up and nothing unchanged or empty is a pair."""
    base = pa.table(
        [[row[0] for row in rows], *[pa.array(np.arange(len(rows)), pa.int32())] * 2], schema=SENTENCES
    )
    kept, dropped = to_train_on(trips(*rows), base, Shape(training_text=form, unchanged="drop"), None, None)
    assert len(kept) + dropped.total() == len(rows)
    if form == "pairs":
        assert all(row["positive"].strip() and row["positive"] != row["anchor"] for row in kept.to_pylist())


# Comparison with the sentences


def bags(texts):
    """Vectors of texts that count their letters; cosines can be worked by hand."""
    return np.array([[text.count(letter) + 1e-9 for letter in "abcd"] for text in texts], np.float32)


def test_cosines_are_with_the_own_sentence_and_the_nearest():
    """Cosines are with the own sentence and the nearest other of a chunk."""
    sentences = ["a b", "c d", "A  b", "a a c"] + ["d"] * CHUNK
    backs = ["a b", "a b", "b", "c"] + ["d"] * CHUNK
    own, other = compare(sentences, backs, lambda texts: bags(map(str.casefold, texts)))
    # By hand: (a b)(b) = 1/sqrt(2), (a a c)(c) = 1/sqrt(5), (a b)(a a c) = 2/sqrt(10), (c d)(c) = 1/sqrt(2).
    assert own[:4] == pytest.approx([1, 0, 2**-0.5, 5**-0.5], abs=1e-6)
    assert other[:4] == pytest.approx([2 * 10**-0.5, 1, 0, 2**-0.5], abs=1e-6)
    assert own[4:] == pytest.approx(1)
    assert other[-1] == -1


KEPT = Thresholds(minimum=0.5, rejected_share=0.5)


def test_unlike_round_trips_are_dropped_and_counted():
    """Round trips unlike their sentence or nearer to another are dropped and counted."""
    made = trips(*[(f"a b c {n}", f"p q r {n}", f"a b x {n}") for n in range(6)])
    base = base_of([f"a b c {n}" for n in range(6)])
    rows = [(0, 0.9, 0.2), (1, 0.49, 0.1), (2, 0.6, 0.61), (3, 0.5, 0.5), (4, 0.2, 0.9), (5, 1.0, -1.0)]
    cosines = table_of(rows, TRIP_COSINES)
    shape = Shape(training_text="pairs", unchanged="keep")
    pairs, dropped = to_train_on(made, base, shape, cosines, KEPT)
    assert pairs["anchor"].to_pylist() == ["a b c 0", "a b c 3", "a b c 5"]
    assert dropped == {"rejected: unlike its sentence": 2, "rejected: nearer to another sentence": 1}
    fewer = Thresholds(minimum=0.5, rejected_share=0.49)
    with pytest.raises(DataError, match=r"3 of 6 round trips are unlike.*'a b c 4' came back as 'a b x 4'"):
        to_train_on(made, base, shape, cosines, fewer)
    assert len(to_train_on(made, base, shape, None, None)[0]) == 6
