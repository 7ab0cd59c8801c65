"""Columns of tables."""

import pyarrow as pa

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
"""Cells of one experiment's table, in the order of its runs; values are multiplied by the column's scale. Mean and sd
are over ``seeds`` seeds; a gap has a null mean and a note. ``difference`` is that to ``baseline``, the run that this
one is compared with (null if with none), ``detectable`` the smallest true difference that so many seeds could detect;
``n`` counts what one seed's value was computed from. ``published_source`` is the citation of the published value."""
