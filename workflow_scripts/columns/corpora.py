"""Columns of datasets, corpora and what is made from them before training."""

import pyarrow as pa

SENTENCES = pa.schema([("sentence", pa.string()), ("document", pa.int32()), ("position", pa.int32())])
"""Training text: a sentence per row, with the number of its document and its position there."""

PAIRS = pa.schema(
    [("subset", pa.string()), ("sentence1", pa.string()), ("sentence2", pa.string()), ("score", pa.float64())]
)
"""Scored pairs with human (or substitute) judgements of similarity; higher is more similar."""

LABELLED = pa.schema(
    [("split", pa.string()), ("text1", pa.string()), ("text2", pa.string()), ("label", pa.string())]
)
"""Texts with a class: ``split`` is train, dev, test, or empty if a task is cross-validated; ``text2`` is null for
single texts; a graded label is a number written as text."""

TRIPLES = pa.schema([("anchor", pa.string()), ("positive", pa.string()), ("negative", pa.string())])
"""Training text with positives: a sentence, one with the same meaning, and one with another; ``negative`` is null in
all rows of a dataset without hard negatives."""

FORMS = {"sentences": SENTENCES, "pairs": PAIRS, "labelled": LABELLED, "triples": TRIPLES}
"""The forms of datasets; every reader returns rows in one of them."""

WORD_COUNTS = pa.schema(
    [
        ("rank", pa.int32()),
        ("word", pa.string()),
        ("count", pa.int64()),
        ("change_rate", pa.float64()),
        ("peak", pa.bool_()),
    ]
)
"""Word frequencies of a corpus, most frequent first, ranks from 1. ``change_rate`` says by how much the preceding word
is more frequent, null for the first; ``peak`` marks where a list of frequent words may end (3R, Table 5)."""

DROPPED = pa.schema([("reason", pa.string()), ("count", pa.int64())])
"""How many rows a reader dropped, and why."""

ROUND_TRIPS = pa.schema(
    [
        ("row", pa.int32()),
        ("sentence", pa.string()),
        ("pivot", pa.string()),
        ("back", pa.string()),
        ("outcome", pa.string()),
    ]
)
"""Round trips of sentences: row in the corpus, sentence, its translation, the translation back, and the outcome
(``data.round_trips``). A translation that is not usable is null."""

EXEMPLARS = pa.schema(
    [
        ("sentence", pa.string()),
        ("tokens", pa.int32()),
        ("words", pa.int32()),
        ("listed_words", pa.int32()),
        ("source", pa.string()),
        ("place", pa.int32()),
    ]
)
"""A pool of redundant exemplars (3R): number of tokens including special ones, of words, and of listed words.
``source`` is the language model's id, or the corpus; ``place`` the number of the call, or the row in the corpus."""

USAGE = pa.schema(
    [
        ("model", pa.string()),
        ("calls", pa.int64()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("note", pa.string()),
        ("asked_from", pa.string()),
        ("asked_to", pa.string()),
    ]
)
"""What the calls behind an artefact cost, a row per model; null is unknown, and the note says why. ``asked_from`` and
``asked_to`` are the days (UTC) of the first and last answer: a name may serve another model later."""

CONTAMINATION = pa.schema(
    [
        ("task", pa.string()),
        ("match", pa.string()),
        ("texts", pa.int64()),
        ("shared_texts", pa.int64()),
        ("share", pa.float64()),
        ("rows", pa.int64()),
        ("rows_with_any", pa.int64()),
        ("rows_with_all", pa.int64()),
        ("examples", pa.list_(pa.string())),
    ]
)
"""Evaluation texts that also occur in training text, three rows per task: ``match`` is exact, normalised or contained.
``texts`` counts distinct texts, ``share`` is the fraction of them that is shared; ``rows_with_any`` and
``rows_with_all`` count rows in which at least one text, or every text, is shared. A text without a letter or digit is
never shared."""
