"""Columns of what training reads and writes."""

import pyarrow as pa

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
