"""Round trips of translation: which of them are paraphrases, and the two forms they are trained on in.

A translator may give a text back as it was, lose half of it or answer nothing. Every row has an outcome:

    refused       the engine gave no translation, forth or back
    empty         no letter or digit came back
    untranslated  most words of a text came out of one leg as they went in
    unchanged     the round trip ends in the words it began with
    shortened     much of it is lost
    paraphrase    anything else

Only paraphrases are positives; ``unchanged`` rows are kept or dropped as the corpus says, since a rule-based
engine changes nothing in one sentence of thirty, and the rest is always dropped. Drops are counted.
"""

from collections import Counter
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pydantic import Field

from workflow_scripts.config import Slice
from workflow_scripts.schemas import ROUND_TRIPS, SENTENCES, TRIPLES

Outcome = Literal["refused", "empty", "untranslated", "unchanged", "shortened", "paraphrase"]


class Translation(Slice):
    """What is translated, by what and through which language."""

    corpus: str = Field(pattern="^[a-z0-9_]+$", description="Corpus of sentences to start from.")
    translator: str = Field(pattern="^[a-z0-9_]+$", description="Block of translators.")
    source: str = Field(
        pattern="^[A-Za-z-]{2,12}$", description="Language of the corpus, as the engine writes it."
    )
    via: str = Field(
        pattern="^[A-Za-z-]{2,12}$", description="Language to go through, as the engine writes it."
    )
    max_sentences: int | None = Field(gt=0, description="The first so many sentences; null for all.")


class Shape(Slice):
    """How round trips become text to train on."""

    form: Literal["pairs", "corpus"] = Field(
        description="pairs: a sentence and its round trip; corpus: round trips in the place of the sentences."
    )
    unchanged: Literal["keep", "drop"] = Field(
        description="Round trips that end in the words they began with."
    )


class RoundTrip(Translation, Shape):
    """The whole block ``round_trip`` of a corpus."""


class Limits(Slice):
    """Where a translation stops being one."""

    shards: int = Field(gt=0, description="Jobs that one corpus is translated in.")
    untranslated_share: float = Field(
        gt=0, le=1, description="Share of the words of a text that come out of one leg as they went in."
    )
    shortened_ratio: float = Field(
        gt=0, lt=1, description="Words of a round trip to words of its sentence, below it."
    )
    refused_share: float = Field(ge=0, lt=1, description="Sentences of a shard that an engine may refuse.")


def outcome_of(sentence: str, pivot: str | None, back: str | None, limits: Limits) -> Outcome:
    """What became of one sentence; ``pivot`` is its translation, ``back`` that one's."""
    if pivot is None or back is None:
        return "refused"
    if not (_says_something(pivot) and _says_something(back)):
        return "empty"
    if max(_left(sentence, pivot), _left(pivot, back)) >= limits.untranslated_share:
        return "untranslated"
    words, returned = sentence.casefold().split(), back.casefold().split()
    if words == returned:
        return "unchanged"
    return "shortened" if len(returned) < limits.shortened_ratio * len(words) else "paraphrase"


def _says_something(text: str) -> bool:
    return any(map(str.isalnum, text))


def _left(before: str, after: str) -> float:
    """Share of the words of ``before`` that stand in ``after``, each as often as it does there.

    ASSUME: two languages share names and numbers, and seldom four words in five. Of 4,000 sentences of Wikipedia two
    do through Spanish and one through Catalan (Apertium); half share one word in six.
    """
    words = Counter(before.casefold().split())
    return (words & Counter(after.casefold().split())).total() / words.total() if words else 0.0


def rows_of_shard(rows: int, shard: str) -> range:
    """Rows of shard "n-of-N", n from 1: equal parts, in order, the larger ones first."""
    number, shards = map(int, shard.split("-of-"))
    part = np.array_split(np.arange(rows), shards)[number - 1]
    return range(int(part[0]), int(part[-1]) + 1) if len(part) else range(0)


def round_trips(
    rows: range, sentences: list[str], pivots: list[str | None], backs: list[str | None], limits: Limits
) -> pa.Table:
    """Columns of ``schemas.ROUND_TRIPS``; the lists run parallel to ``rows``."""
    outcomes = [outcome_of(*trip, limits) for trip in zip(sentences, pivots, backs, strict=True)]
    columns = [list(rows), sentences, pivots, backs, outcomes]
    return pa.table(
        [pa.array(c, field.type) for c, field in zip(columns, ROUND_TRIPS, strict=True)], schema=ROUND_TRIPS
    )


def to_train_on(trips: pa.Table, base: pa.Table, shape: Shape) -> tuple[pa.Table, Counter[str]]:
    """Keep the rows that may be trained on, in the form asked for.

    Args:
        trips: Columns of ``schemas.ROUND_TRIPS``.
        base: The corpus they started from, columns of ``schemas.SENTENCES``.
        shape: Form, and what to do with unchanged rows.

    Returns:
        ``schemas.TRIPLES`` without negatives, or ``schemas.SENTENCES`` with the places of the base sentences; and
        how many rows each outcome dropped. A corpus holds each sentence once, so that of equal ones the first stays.
    """
    kept = ["paraphrase", "unchanged"] if shape.unchanged == "keep" else ["paraphrase"]
    usable = trips.filter(pc.is_in(trips["outcome"], pa.array(kept)))
    dropped = Counter(trips["outcome"].to_pylist())
    for outcome in kept:
        del dropped[outcome]
    if shape.form == "pairs":
        negatives = pa.nulls(len(usable), pa.string())
        return pa.table([usable["sentence"], usable["back"], negatives], schema=TRIPLES), dropped
    first = pc.index_in(usable["back"], pc.unique(usable["back"])).to_numpy()
    usable = usable.take(np.sort(np.unique(first, return_index=True)[1]))
    if repeated := len(first) - len(usable):
        dropped["repeated"] = repeated
    places = base.take(usable["row"])
    return pa.table([usable["back"], places["document"], places["position"]], schema=SENTENCES), dropped
