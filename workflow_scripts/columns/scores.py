"""Columns of what evaluations write for each run."""

import pyarrow as pa

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
