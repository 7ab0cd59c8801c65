"""Columns of Parquet artefacts.

A job's code includes only the tables that it names, so a new column of a table reruns only jobs that read or write it.
"""

import pyarrow as pa

# Datasets, corpora and tables made from them before training

SENTENCES = pa.schema([("sentence", pa.string()), ("document", pa.int32()), ("position", pa.int32())])
"""Training text: a sentence per row, with the number of its document and its position there."""

PAIRS = pa.schema(
    [("subset", pa.string()), ("sentence1", pa.string()), ("sentence2", pa.string()), ("score", pa.float64())]
)
"""Scored pairs with human (or substitute) judgements of similarity; higher is more similar."""

SIDES = ("sentence1", "sentence2")
"""The sentences of a pair."""

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
"""Word frequencies of a corpus, most frequent first, ranks from 1. ``change_rate`` is (count of the preceding word -
count) / count, null for the first; ``peak`` marks a possible end of a list of frequent words (3R, Table 5)."""

DROPPED = pa.schema([("reason", pa.string()), ("count", pa.int64())])
"""Number of rows that a reader dropped, by reason."""

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

TRIP_COSINES = pa.schema([("row", pa.int32()), ("own", pa.float32()), ("other", pa.float32())])
"""Comparison of round trips that may be trained on: row in the corpus, cosine with its own sentence, and the largest
cosine with another sentence of its chunk (``jobs.compare_round_trips``)."""

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
"""Cost of the calls behind an artefact, a row per model; null is unknown, with the reason in the note. ``asked_from``
and ``asked_to`` are the days (UTC) of the first and last answer: a name may serve another model later."""

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


# Inputs and outputs of training

TEACHER = pa.schema([("vector", pa.list_(pa.float32())), ("encoders", pa.int32())])
"""A teacher's vectors, one per row of its corpus, and the number of encoders that each is summed over."""

HISTORY = pa.schema(
    [
        ("step", pa.int32()),
        ("loss", pa.float64()),
        ("learning_rate", pa.float64()),
        ("gradient_norm", pa.float64()),
        ("dev_score", pa.float64()),
    ]
)
"""Training history, one optimiser step per row; ``dev_score`` is null between evaluations."""

METRICS = pa.schema([("step", pa.int32()), ("metric", pa.string()), ("value", pa.float64())])
"""A method's own metrics during training, such as a threshold or the terms of its loss; many methods have none."""


# Outputs of evaluations, for each run

SIMILARITIES = pa.schema(
    [("task", pa.string()), ("subset", pa.string()), ("gold", pa.float64()), ("cosine", pa.float64())]
)
"""Scored pairs, one per row: the human judgement and an encoder's cosine."""

SCORES = pa.schema(
    [
        ("run", pa.string()),
        ("seed", pa.int32()),
        ("suite", pa.string()),
        ("task", pa.string()),
        ("aggregation", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("n", pa.int64()),
        ("note", pa.string()),
    ]
)
"""Scores in long form. ``n`` counts what the value was computed from; a gap has a null value, n 0 and a note."""

ATTENTION = pa.schema(
    [
        ("sentence", pa.string()),
        ("layer", pa.int32()),
        ("head", pa.int32()),
        ("query_position", pa.int32()),
        ("query_token", pa.string()),
        ("key_position", pa.int32()),
        ("key_token", pa.string()),
        ("weight", pa.float64()),
    ]
)
"""Attention weights in long form. Layers count from 1, heads and positions from 0; a query's weights sum to 1."""


# Tables

TABLE = pa.schema(
    [
        ("run", pa.string()),
        ("heading", pa.string()),
        ("suite", pa.string()),
        ("task", pa.string()),
        ("aggregation", pa.string()),
        ("metric", pa.string()),
        ("scale", pa.float64()),
        ("digits", pa.int32()),
        ("mean", pa.float64()),
        ("sd", pa.float64()),
        ("seeds", pa.int32()),
        ("n", pa.int64()),
        ("repeats", pa.list_(pa.int32())),
        ("values", pa.list_(pa.float64())),
        ("of_tasks", pa.list_(pa.float64())),
        ("baseline", pa.string()),
        ("difference", pa.float64()),
        ("p_value", pa.float64()),
        ("detectable", pa.float64()),
        ("published", pa.float64()),
        ("published_source", pa.string()),
        ("note", pa.string()),
        ("labels", pa.list_(pa.string())),
    ]
)
"""Cells of one table, of an experiment, of the extraction study or of statistics of datasets, in the order of its rows.

A row ``run`` and a column ``heading`` name the cell. Numbers are multiplied by ``scale``, null if a column is computed
from others, and are printed with ``digits`` decimals. Mean and sd are over ``values``, of as many seeds (or draws of
random vectors) as ``seeds`` counts and ``repeats`` names; a gap has a null mean and a note. ``of_tasks`` are the parts
of a mean over tasks, in the order of ``task``. ``difference`` is the difference to ``baseline``, the run with which
this one is compared (null without one), ``detectable`` the smallest true difference that these seeds could detect;
``n`` counts what one seed's value was computed from. ``published_source`` is the citation of the published value.
"""


# The table of claims

NOT_RUN = "not run"
"""Verdict on a claim that a study does not compare."""

CLAIMS = pa.schema(
    [
        ("paper", pa.string()),
        ("claim", pa.string()),
        ("place", pa.string()),
        ("says", pa.string()),
        ("expects", pa.string()),
        ("margin", pa.float64()),
        ("printed_ours", pa.float64()),
        ("printed_theirs", pa.float64()),
        ("verdict", pa.string()),
        ("reason", pa.string()),
        ("table", pa.string()),
        ("run", pa.string()),
        ("heading", pa.string()),
        ("baseline", pa.string()),
        ("baseline_heading", pa.string()),
        ("ours", pa.float64()),
        ("theirs", pa.float64()),
        ("difference", pa.float64()),
        ("low", pa.float64()),
        ("high", pa.float64()),
        ("over", pa.string()),
        ("n", pa.int64()),
        ("detectable", pa.float64()),
        ("p_value", pa.float64()),
        ("corrected_p", pa.float64()),
        ("labels", pa.list_(pa.string())),
    ]
)
"""A row per claim, in the order of the papers' files. ``verdict`` is supported, contradicted, undecided or not run.
Values are in the table's units: ``ours`` of ``run`` and ``heading`` is compared with ``theirs`` of ``baseline``.
``difference`` is ours minus theirs over ``n`` repetitions, whose unit is ``over`` (seeds, draws, tasks or pairs), with
its interval from ``low`` to ``high``. ``p_value`` is that of a test of only this claim, ``corrected_p`` Holm's for all
claims of the study, and ``detectable`` the smallest true difference that a test of only this claim would mostly find.
These are null for a claim that is not run. ``printed_ours`` and ``printed_theirs`` are the paper's numbers, null if it
draws them and does not print them."""


# The extraction study

TOKEN_DOCUMENTS = pa.schema(
    [
        ("token_id", pa.int32()),
        ("token", pa.string()),
        ("documents", pa.int64()),
        ("all_documents", pa.int64()),
        ("all_tokens", pa.int64()),
    ]
)
"""Number of documents of a corpus with each token, for tokens that occur, ids ascending. The last two columns
count the whole corpus and are the same in every row."""

TOKEN_AVERAGES = pa.schema(
    [
        ("token_id", pa.int32()),
        ("layer", pa.int32()),
        ("count", pa.int64()),
        ("vector", pa.large_list(pa.float32())),
    ]
)
"""Means of a token's states over a corpus, for every layer, and the number of its occurrences there."""

WORD_VECTORS = pa.schema(
    [("rank", pa.int32()), ("word", pa.string()), ("vector", pa.large_list(pa.float32()))]
)
"""Static vectors of whole words in the order of their file, ranks from 1."""

FITTED = pa.schema(
    [
        ("mixing_weight", pa.float64()),
        ("draw", pa.int32()),
        ("layers", pa.string()),
        ("weighting", pa.string()),
        ("postprocess", pa.string()),
        ("part", pa.string()),
        ("columns", pa.int32()),
        ("values", pa.large_list(pa.float32())),
    ]
)
"""Post-processings fitted on Wikitext: one array per row, in row-major order; ``columns`` is 0 for a vector."""

EXTRACTION = pa.schema(
    [
        ("representation", pa.string()),
        ("mixing_weight", pa.float64()),
        ("draw", pa.int32()),
        ("layers", pa.string()),
        ("weighting", pa.string()),
        ("postprocess", pa.string()),
        ("kind", pa.string()),
        ("task", pa.string()),
        ("aggregation", pa.string()),
        ("metric", pa.string()),
        ("value", pa.float64()),
        ("n", pa.int64()),
        ("note", pa.string()),
    ]
)
"""Scores of untrained sentence vectors in long form: the token representation, the weight of static averages in it,
the draw of random vectors, and how the vectors were averaged and post-processed. A gap has a null value and a note."""


# Data that are fetched for evaluations through mteb

TASKS = pa.schema(
    [
        ("task", pa.string()),
        ("repository", pa.string()),
        ("revision", pa.string()),
        ("sha256", pa.string()),
        ("missing", pa.string()),
    ]
)
"""A task of mteb per row, with the dataset and commit that it reads, the hash of the files that the Hub's client keeps
of it (of all names and hashes), or why there are none."""
