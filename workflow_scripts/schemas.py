"""Columns of every kind of Parquet artefact."""

import pyarrow as pa

SENTENCES = pa.schema([("sentence", pa.string()), ("document", pa.int32()), ("position", pa.int32())])
"""Training text: one sentence a row, with the number of its document and its place there."""

PAIRS = pa.schema(
    [("subset", pa.string()), ("sentence1", pa.string()), ("sentence2", pa.string()), ("score", pa.float64())]
)
"""Scored pairs: human (or stand-in) judgements of similarity, higher is more similar."""

LABELLED = pa.schema(
    [("split", pa.string()), ("text1", pa.string()), ("text2", pa.string()), ("label", pa.string())]
)
"""Texts with a class: ``split`` is train, dev, test, or empty where a task is cross-validated; ``text2`` is null
for single texts; a graded label is its number as text."""

TRIPLES = pa.schema([("anchor", pa.string()), ("positive", pa.string()), ("negative", pa.string())])
"""Training text with positives: a sentence, one that means the same, and one that does not; ``negative`` is null
throughout where a set has none."""

FORMS = {"sentences": SENTENCES, "pairs": PAIRS, "labelled": LABELLED, "triples": TRIPLES}
"""The forms a dataset can have; readers of every source bring their rows into one of them."""

SIMILARITIES = pa.schema(
    [("task", pa.string()), ("subset", pa.string()), ("gold", pa.float64()), ("cosine", pa.float64())]
)
"""An encoder's cosine beside the judgement, one scored pair a row."""

WORD_COUNTS = pa.schema(
    [
        ("rank", pa.int32()),
        ("word", pa.string()),
        ("count", pa.int64()),
        ("change_rate", pa.float64()),
        ("peak", pa.bool_()),
    ]
)
"""Word frequencies of a corpus, most frequent first, ranks from 1. ``change_rate`` is how much more frequent the word
before it is, null for the first; ``peak`` marks where a list of frequent words may end (3R, table 5)."""

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
"""Every sentence that was sent on a round trip: its row in the corpus, its translation, what came back, and what that
is (``data.round_trips``). A translation that the engine refused is null."""

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
"""A pool of redundant exemplars (3R): tokens with special ones, words, and how many of them are on the list. ``source``
is the language model as its server names it, or the corpus; ``place`` the number of the call, or the row."""

USAGE = pa.schema(
    [
        ("model", pa.string()),
        ("calls", pa.int64()),
        ("prompt_tokens", pa.int64()),
        ("completion_tokens", pa.int64()),
        ("cost_usd", pa.float64()),
        ("note", pa.string()),
    ]
)
"""What the calls behind an artefact took, a row a model; a null is unknown, and the note says why."""

TEACHER = pa.schema([("vector", pa.list_(pa.float32())), ("encoders", pa.int32())])
"""A teacher's vectors, one a row of its corpus, and over how many encoders each is summed."""

HISTORY = pa.schema(
    [
        ("step", pa.int32()),
        ("loss", pa.float64()),
        ("learning_rate", pa.float64()),
        ("gradient_norm", pa.float64()),
        ("dev_score", pa.float64()),
    ]
)
"""Training history, one optimiser step a row; ``dev_score`` is null between evaluations."""

WATCHED = pa.schema([("step", pa.int32()), ("quantity", pa.string()), ("value", pa.float64())])
"""What a method watches of its own while it trains, such as a threshold or the terms of its loss; many have nothing."""

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

ATTENTION_MAPS = pa.schema(
    [
        ("run", pa.string()),
        ("layer", pa.int32()),
        ("query_position", pa.int32()),
        ("query_token", pa.string()),
        ("key_position", pa.int32()),
        ("key_token", pa.string()),
        ("weight", pa.float64()),
    ]
)
"""Attention weights of one sentence, means over heads and seeds."""

TABLE = pa.schema(
    [
        ("run", pa.string()),
        ("heading", pa.string()),
        ("suite", pa.string()),
        ("task", pa.string()),
        ("aggregation", pa.string()),
        ("metric", pa.string()),
        ("mean", pa.float64()),
        ("sd", pa.float64()),
        ("seeds", pa.int32()),
        ("n", pa.int64()),
        ("difference", pa.float64()),
        ("p_value", pa.float64()),
        ("detectable", pa.float64()),
        ("published", pa.float64()),
        ("published_source", pa.string()),
        ("note", pa.string()),
        ("labels", pa.list_(pa.string())),
    ]
)
"""Cells of one experiment's table, run by run, values times the column's scale. Mean and sd are over ``seeds`` seeds;
a gap has a null mean and a note. ``difference`` is to the baseline, ``detectable`` the smallest true difference
that so many seeds would have shown; ``n`` counts what one seed's value was computed from."""

LEARNING_CURVES = pa.schema(
    [
        ("run", pa.string()),
        ("seed", pa.int32()),
        ("quantity", pa.string()),
        ("step", pa.float64()),
        ("value", pa.float64()),
    ]
)
"""Points of the learning curves: ``loss`` is the mean of a block of steps at its middle, ``dev_score`` as measured."""

COSINE_DENSITY = pa.schema(
    [
        ("run", pa.string()),
        ("lower", pa.float64()),
        ("upper", pa.float64()),
        ("pairs", pa.int64()),
        ("seeds", pa.int32()),
        ("cosine", pa.float64()),
        ("density", pa.float64()),
    ]
)
"""Density of the cosines of the pairs whose judgement lies above ``lower`` and up to ``upper``, all seeds pooled;
``pairs`` counts them once. A group without pairs has one row with a null cosine and density."""

ALIGNMENT_UNIFORMITY = pa.schema(
    [
        ("run", pa.string()),
        ("seeds", pa.int32()),
        ("alignment", pa.float64()),
        ("alignment_sd", pa.float64()),
        ("uniformity", pa.float64()),
        ("uniformity_sd", pa.float64()),
        ("score", pa.float64()),
        ("note", pa.string()),
    ]
)
"""One point of the alignment-uniformity plane per run, means and standard deviations over seeds; the note says what
was measured, or why there is no point. ``score`` is the mean of the grid's headline column, times its scale."""

SWEEP = pa.schema(
    [
        ("setting", pa.string()),
        ("series", pa.string()),
        ("value", pa.string()),
        ("place", pa.int32()),
        ("run", pa.string()),
        ("heading", pa.string()),
        ("mean", pa.float64()),
        ("sd", pa.float64()),
        ("seeds", pa.int32()),
    ]
)
"""Headline scores over the values of swept settings, a row for each run and setting. ``series`` is the run's name
without its sweep, ``place`` the value's rank on the axis; where other settings are swept too, a value has several
runs."""

LAYER_ATTENTION = pa.schema(
    [
        ("run", pa.string()),
        ("seed", pa.int32()),
        ("sentence", pa.string()),
        ("query_layer", pa.int32()),
        ("key_layer", pa.int32()),
        ("weight", pa.float64()),
    ]
)
"""Weights of LayerAttPooler's attention over layers; 0 is the embedding output. A query's weights sum to 1 under a
softmax."""

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
"""Evaluation texts that also stand in training text, two rows a task: ``match`` is exact or normalised. ``texts`` are
distinct, ``share`` is the part of them that is shared; ``rows_with_any`` and ``rows_with_all`` count the task's rows of
which one or every text is shared. A text without a letter or digit is never shared."""

TOKEN_DOCUMENTS = pa.schema(
    [
        ("token_id", pa.int32()),
        ("token", pa.string()),
        ("documents", pa.int64()),
        ("all_documents", pa.int64()),
        ("all_tokens", pa.int64()),
    ]
)
"""In how many documents of a corpus each token stands, ids ascending, those that occur; the last two columns are
those of the whole corpus and the same in every row."""

TOKEN_SUMS = pa.schema(
    [
        ("token_id", pa.int32()),
        ("layer", pa.int32()),
        ("count", pa.int64()),
        ("sums", pa.large_list(pa.float64())),
    ]
)
"""Exact sums of a token's states in every layer over one shard of a corpus, tokens that occur, layers from 0."""

TOKEN_AVERAGES = pa.schema(
    [
        ("token_id", pa.int32()),
        ("layer", pa.int32()),
        ("count", pa.int64()),
        ("vector", pa.large_list(pa.float32())),
    ]
)
"""Mean of a token's states in every layer over a corpus, and how often it occurs there."""

WORD_VECTORS = pa.schema(
    [("rank", pa.int32()), ("word", pa.string()), ("vector", pa.large_list(pa.float32()))]
)
"""Static vectors of whole words in the order of their file, ranks from 1."""

SHAPING = pa.schema(
    [
        ("share", pa.float64()),
        ("draw", pa.int32()),
        ("layers", pa.string()),
        ("weighting", pa.string()),
        ("postprocess", pa.string()),
        ("part", pa.string()),
        ("columns", pa.int32()),
        ("values", pa.large_list(pa.float32())),
    ]
)
"""What post-processings learnt from Wikitext's vectors: one array a row, row by row, of so many ``columns``."""

EXTRACTION = pa.schema(
    [
        ("source", pa.string()),
        ("share", pa.float64()),
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
"""Scores of vectors that nobody trained, in long form: where token vectors come from, the share of static averages
in them, which draw of random ones, and how they were averaged and shaped. A gap has a null value and a note."""

EXTRACTION_POINTS = pa.schema(
    [
        ("panel", pa.string()),
        ("series", pa.string()),
        ("point", pa.string()),
        ("x", pa.float64()),
        ("y", pa.float64()),
        ("spread", pa.float64()),
        ("tasks", pa.int32()),
    ]
)
"""Points of one figure of the extraction study: what each panel and series shows at ``point``. ``spread`` is the
standard deviation over so many ``tasks``, null where y is no mean of tasks."""

TOKEN_SIMILARITY = pa.schema(
    [
        ("run", pa.string()),
        ("seed", pa.int32()),
        ("sentence", pa.string()),
        ("row_place", pa.int32()),
        ("row_unit", pa.string()),
        ("column_place", pa.int32()),
        ("column_unit", pa.string()),
        ("cosine", pa.float64()),
        ("sentence_cosine", pa.float64()),
    ]
)
"""Cosines between the words or pieces of each of two sentences, places from 0. ``sentence_cosine`` is that of the run's
vectors of the two sentences, the same in every row of a run and seed."""

SCATTER = pa.schema(
    [
        ("run", pa.string()),
        ("x", pa.float64()),
        ("x_sd", pa.float64()),
        ("y", pa.float64()),
        ("y_sd", pa.float64()),
    ]
)
"""Means and standard deviations over seeds of two columns of a table, a row per run that has both."""

MODULUS_SURFACE = pa.schema([("k", pa.float64()), ("t", pa.float64()), ("loss", pa.float64())])
"""L_TMC at a ratio of moduli k and a cosine t, ratio by ratio."""
