"""Round-trip translations: their outcomes, and their forms as training text.

A translator may return a text unchanged, lose half of it or return nothing. Every row has an outcome:

    refused       the engine will not translate it in one of the directions
    failed        the engine sent no translation, or an error instead
    rejected: ... the translation is unusable for this reason (``apis.answer_checks``)
    untranslated  most words of a text are the same after one direction
    unchanged     the round trip returns the same words
    shortened     much of the text is lost
    lengthened    as much is added
    paraphrase    anything else

Paraphrases are positives. ``unchanged`` rows are kept or dropped as configured for the corpus, since a rule-based
engine leaves one sentence in thirty unchanged. All other rows are dropped and counted, as are rows with a translation
that several different sentences got.
"""

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pandas as pd
import pyarrow as pa

from workflow_scripts.apis.answer_checks import repeated
from workflow_scripts.apis.ledger import Row
from workflow_scripts.columns import ROUND_TRIPS, SENTENCES, TRIPLES
from workflow_scripts.data.tables import table_of
from workflow_scripts.settings.corpora import Limits, Shape


def classify_trip(sentence: str, pivot: Row, back: Row | None, limits: Limits) -> str:
    """The outcome of one sentence; ``pivot`` is its translation, ``back`` the translation of the pivot."""
    for row in (pivot, back):
        if row is not None and row.status != "usable":
            return f"rejected: {row.reason}" if row.status == "rejected" else row.status
    assert pivot.answer is not None and back is not None and back.answer is not None
    if max(_left(sentence, pivot.answer), _left(pivot.answer, back.answer)) >= limits.untranslated_share:
        return "untranslated"
    words, returned = sentence.casefold().split(), back.answer.casefold().split()
    if words == returned:
        return "unchanged"
    if len(returned) < limits.shortened_ratio * len(words):
        return "shortened"
    return "lengthened" if len(words) < limits.shortened_ratio * len(returned) else "paraphrase"


def _left(before: str, after: str) -> float:
    """The fraction of the words of ``before`` that occur in ``after``, counting repetitions.

    ASSUME: two languages have names and numbers in common, but rarely four words in five. Of 4,000 sentences of
    Wikipedia, two do through Spanish and one through Catalan (Apertium); half have one word in six in common.
    """
    words = Counter(before.casefold().split())
    return (words & Counter(after.casefold().split())).total() / words.total() if words else 0.0


def shard_rows(rows: int, shard: str) -> range:
    """Rows of shard "n-of-N", n from 1: parts of nearly equal size, in order, the larger ones first."""
    number, shards = map(int, shard.split("-of-"))
    part = np.array_split(np.arange(rows), shards)[number - 1]
    return range(int(part[0]), int(part[-1]) + 1) if len(part) else range(0)


def round_trips(
    rows: range,
    sentences: list[str],
    pivots: Sequence[Row | None],
    backs: Sequence[Row | None],
    limits: Limits,
) -> pa.Table:
    """A table with the columns of ``columns.ROUND_TRIPS``; the lists are parallel to ``rows``."""
    outcomes = [
        classify_trip(sentence, pivot, back, limits)
        for sentence, pivot, back in zip(sentences, pivots, backs, strict=True)
        if pivot is not None  # always true; for the type checker
    ]
    columns = (rows, sentences, usable_answers(pivots), usable_answers(backs), outcomes)
    return table_of(zip(*columns, strict=True), ROUND_TRIPS)


def usable_answers(rows: Sequence[Row | None]) -> list[str | None]:
    """The answers of usable rows; None for all others."""
    return [row.answer if row is not None and row.status == "usable" else None for row in rows]


def to_train_on(trips: pa.Table, base: pa.Table, shape: Shape) -> tuple[pa.Table, Counter[str]]:
    """Select the rows for training, in the requested form.

    Args:
        trips: Columns of ``columns.ROUND_TRIPS``.
        base: The corpus that was translated, columns of ``columns.SENTENCES``.
        shape: The form, and the treatment of unchanged rows.

    Returns:
        Triples without negatives, or sentences at the positions of the base sentences (``columns``); and the
        number of dropped rows by outcome. Of equal sentences, the first is kept.
    """
    rows = trips.to_pandas()
    wanted = ["paraphrase", "unchanged"] if shape.unchanged == "keep" else ["paraphrase"]
    usable = rows[rows["outcome"].isin(wanted)]
    dropped = Counter(rows["outcome"].drop(usable.index))
    forth, back = (repeated(zip(usable["sentence"], usable[leg], strict=True)) for leg in ("pivot", "back"))
    own = usable[~usable["pivot"].isin(forth) & ~usable["back"].isin(back)]
    dropped["rejected: given to several different sentences"] += len(usable) - len(own)
    if shape.form == "pairs":
        negatives = pa.nulls(len(own), pa.string())
        return pa.table([own["sentence"], own["back"], negatives], schema=TRIPLES), +dropped
    texts = pd.concat([rows["sentence"], own["back"]]) if shape.form == "expanded" else own["back"]
    distinct = texts.drop_duplicates()
    dropped["repeated"] += len(texts) - len(distinct)
    origins = base.take(pa.array(rows["row"][distinct.index]))
    return pa.table([distinct, origins["document"], origins["position"]], schema=SENTENCES), +dropped
