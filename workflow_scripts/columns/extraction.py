"""Columns of the extraction study."""

import pyarrow as pa

TOKEN_DOCUMENTS = pa.schema(
    [
        ("token_id", pa.int32()),
        ("token", pa.string()),
        ("documents", pa.int64()),
        ("all_documents", pa.int64()),
        ("all_tokens", pa.int64()),
    ]
)
"""In how many documents of a corpus each token occurs, for tokens that occur, ids ascending. The last two columns
count the whole corpus and are the same in every row."""

TOKEN_AVERAGES = pa.schema(
    [
        ("token_id", pa.int32()),
        ("layer", pa.int32()),
        ("count", pa.int64()),
        ("vector", pa.large_list(pa.float32())),
    ]
)
"""Means of a token's states over a corpus, for every layer, and how often the token occurs there."""

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
